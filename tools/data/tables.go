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

// preview is the number of records shown of a stored table.
const preview = 5

// tableStore holds the tables of runs, up to a number of bytes. Beyond that, it drops the least
// recently used ones. Each table has a key, which is in the values of its run, so that no run finds
// the tables of another.
type tableStore struct {
	limit int

	mu    sync.Mutex
	byKey map[string]*table
	order []string // keys, the most recently used last
	size  int
}

// add stores a table and returns its key. The newest table is stored even if it is over the limit.
func (k *tableStore) add(t *table) (key string) {
	key = rand.Text()
	k.mu.Lock()
	defer k.mu.Unlock()

	k.byKey[key] = t
	k.order = append(k.order, key)
	k.size += t.size
	for k.size > k.limit && len(k.order) > 1 {
		oldest := k.order[0]
		k.order = k.order[1:]
		k.size -= k.byKey[oldest].size
		delete(k.byKey, oldest)
	}
	return key
}

func (k *tableStore) get(key string) *table {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.byKey[key]
	if t != nil {
		i := slices.Index(k.order, key)
		k.order = append(slices.Delete(k.order, i, i+1), key)
	}
	return t
}

// valueName returns the name of the run's value that holds the key of table name.
func valueName(name string) string { return "data.table." + name }

var goodName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,39}$`)

func checkName(where, name string) error {
	if name != "" && !goodName.MatchString(name) {
		return toolrun.Refuse("%s: %s is not a name of a table: use up to 40 letters, digits, - and _, a letter first",
			where, clip(name))
	}
	return nil
}

// save stores t for the run under name. An empty name stores nothing.
func (s *Set) save(ctx context.Context, name string, t *table) error {
	if name == "" {
		return nil
	}
	v := pawl.InvocationFrom(ctx)
	if v == nil {
		return toolrun.Refuse("save_as: no table can be stored outside a run; leave it out")
	}
	if t.size > s.tables.limit {
		return toolrun.Refuse("save_as: the table takes %d MiB, and %d MiB are the most that can be stored; "+
			"store less of it",
			t.size>>20, s.tables.limit>>20)
	}
	return v.Set(valueName(name), s.tables.add(t))
}

// source holds the arguments for the input of a call, and the name for its result.
type source struct {
	Records json.RawMessage `json:"records"`
	Table   string          `json:"table"`
	SaveAs  string          `json:"save_as"`
}

// input returns the table that a call uses: a stored one, or the records in the call.
func (s *Set) input(ctx context.Context, from source) (*table, error) {
	if err := checkName("save_as", from.SaveAs); err != nil {
		return nil, err
	}
	records := from.Records
	name := from.Table
	switch {
	case name != "" && len(records) > 0:
		return nil, toolrun.Refuse("give records or table, not both")
	case name == "" && len(records) == 0:
		return nil, toolrun.Refuse("give records (an array of objects, or the text of a CSV, JSON or JSONL file), " +
			"or table, the name of a table that an earlier call stored with save_as")
	case name == "":
		return s.records(ctx, records)
	}
	if err := checkName("table", name); err != nil {
		return nil, err
	}
	return s.stored(ctx, name)
}

// stored returns a table that an earlier call of the run stored.
func (s *Set) stored(ctx context.Context, name string) (*table, error) {
	var key string
	found := false
	if v := pawl.InvocationFrom(ctx); v != nil {
		var err error
		found, err = v.Get(valueName(name), &key)
		if err != nil {
			return nil, err
		}
	}
	if !found {
		return nil, toolrun.Refuse("table: no table %s is stored in this run; a call with save_as stores a "+
			"table, for the calls of later steps",
			clip(name))
	}

	// The run's values outlive the tables: those are dropped at the limit, and end with the
	// process.
	t := s.tables.get(key)
	if t == nil {
		return nil, toolrun.Refuse("table: %s is no longer stored; store it again with the same call", clip(name))
	}
	return t, nil
}
