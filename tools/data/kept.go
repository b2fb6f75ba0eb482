package data

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"regexp"
	"slices"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

// saveSchema and fromSchema are the arguments by which a table is kept, and used again.
const (
	saveSchema = `"save_as":{"type":"string","pattern":"^([A-Za-z][A-Za-z0-9_-]{0,39})?$","description":"Keep all of the result under this name, as a table that later calls take; the answer then shows its first 5 records."}`
	fromSchema = `"table":{"type":"string","description":"Instead of records: the name of a kept table."}`
)

// preview is how many records are shown of a table that is kept.
const preview = 5

// keeper holds the tables of runs, up to a number of bytes; then those that were not used for longest go. It knows a table by a key of its own, which stands in the values of
// the run whose table it is, so that no run finds the tables of another.
type keeper struct {
	limit int

	mu    sync.Mutex
	byKey map[string]*table
	order []string // of keys, the one used last at the end
	size  int
}

func (k *keeper) put(t *table) (key string) {
	key = rand.Text()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.byKey[key] = t
	k.order = append(k.order, key)
	for k.size += t.size; k.size > k.limit && len(k.order) > 1; k.order = k.order[1:] {
		k.size -= k.byKey[k.order[0]].size
		delete(k.byKey, k.order[0])
	}
	return key
}

func (k *keeper) get(key string) *table {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.byKey[key]
	if t != nil {
		i := slices.Index(k.order, key)
		k.order = append(slices.Delete(k.order, i, i+1), key)
	}
	return t
}

// valueName is the run's value that has the key of the table name.
func valueName(name string) string { return "data.table." + name }

var goodName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,39}$`)

func checkName(where, name string) error {
	if name != "" && !goodName.MatchString(name) {
		return toolrun.Refuse("%s: %s is no name of a table: use up to 40 letters, digits, - and _, a letter first", where, clip(name))
	}
	return nil
}

// save keeps t for the run under name; "" keeps nothing.
func (s *Set) save(ctx context.Context, name string, t *table) error {
	if name == "" {
		return nil
	}
	v := pawl.InvocationFrom(ctx)
	if v == nil {
		return toolrun.Refuse("save_as: nothing can be kept here, outside a run; leave it out")
	}
	if t.size > s.kept.limit {
		return toolrun.Refuse("save_as: the table takes %d MiB, and %d MiB are the most that can be kept; keep less of it", t.size>>20, s.kept.limit>>20)
	}
	return v.Set(valueName(name), s.kept.put(t))
}

// input returns the table that a call is about: one that is kept, or the records it gives.
func (s *Set) input(ctx context.Context, records json.RawMessage, name string) (*table, error) {
	switch {
	case name != "" && len(records) > 0:
		return nil, toolrun.Refuse("give records or table, not both")
	case name == "" && len(records) == 0:
		return nil, toolrun.Refuse("give records (an array of objects, or the text of a CSV, JSON or JSONL file), or table, the name of a table that an earlier call kept with save_as")
	case name == "":
		return s.given(ctx, records)
	}
	if err := checkName("table", name); err != nil {
		return nil, err
	}
	var key string
	if v := pawl.InvocationFrom(ctx); v != nil {
		found, err := v.Get(valueName(name), &key)
		if err != nil {
			return nil, err
		}
		if found {
			if t := s.kept.get(key); t != nil {
				return t, nil
			}
			return nil, toolrun.Refuse("table: %s is kept no longer; make it again, by the call that did with save_as", clip(name))
		}
	}
	return nil, toolrun.Refuse("table: nothing is kept as %s in this run; a call with save_as keeps a table, for the calls of later steps", clip(name))
}
