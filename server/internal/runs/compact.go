package runs

// compact.go: removes what deletions leave in the files of the stores.

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/store"
)

const (
	compactEvery = time.Minute
	compactTime  = 5 * time.Second // writes wait meanwhile: less than a third of a lease
)

// Compact removes the remains of deleted runs and memories from the files of their stores, if these
// can do so: now, and at most once a minute.
func (s *Service) Compact() { s.hub.compact() }

func (h *hub) compact() {
	stores := h.compacters()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remains++
	if len(stores) == 0 || h.remains > 1 || isClosed(h.drained) {
		return // the goroutine of the first deletion sees the others
	}
	h.wg.Go(func() { h.compactAll(stores) })
}

// compacters returns the stores that can be compacted, each once.
func (h *hub) compacters() (all []store.Compacter) {
	journal, ok := h.service.options.Journal.(store.Compacter)
	if ok {
		all = append(all, journal)
	}
	memories, ok := h.service.options.Memories.(store.Compacter)
	if ok && memories != journal {
		all = append(all, memories)
	}
	return all
}

// compactAll compacts until there are no new deletions, and once more when the server stops.
func (h *hub) compactAll(stores []store.Compacter) {
	for last := false; ; {
		h.mu.Lock()
		before := h.remains
		h.mu.Unlock()

		err := compactOnce(stores)
		if err != nil {
			h.service.options.Log.Warn("remains of deleted data are in the files of the store: "+
				"pawl runs prune removes them", "error", err)
		}
		if last {
			return
		}

		select {
		case <-h.drained:
			last = true
		case <-time.After(compactEvery):
		}
		if err == nil && h.nothingRemains(before) {
			return
		}
	}
}

// nothingRemains reports whether there were no deletions since before were counted, and starts to
// count anew then.
func (h *hub) nothingRemains(before int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.remains != before {
		return false
	}
	h.remains = 0
	return true
}

func compactOnce(stores []store.Compacter) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), compactTime)
	defer cancel()
	for _, s := range stores {
		err = errors.Join(err, s.Compact(ctx))
	}
	return err
}
