// Package artifact stores results that are too large for the model, and reads them page by page.
package artifact

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Memory keeps artifacts in memory, and lets the oldest go when there are too many. The zero value is ready to use; it may be used
// concurrently and must not be copied.
type Memory struct {
	Reader

	Limit int // bytes kept; 0: 64 MiB

	mu    sync.Mutex
	kept  map[id]pawl.Artifact
	order []id // the oldest first
	size  int
}

type id struct {
	run string
	key llm.Key
}

var _ pawl.Artifacts = (*Memory)(nil)

const defaultLimit = 64 << 20

// Put keeps a. One that is larger than the limit is refused.
func (m *Memory) Put(_ context.Context, run string, a pawl.Artifact) error {
	limit := m.Limit
	if limit == 0 {
		limit = defaultLimit
	}
	if size(a) > limit {
		return fmt.Errorf("artifact %s: %d bytes are more than the %d that can be kept", a.Key, size(a), limit)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := id{run, a.Key}
	if m.kept == nil {
		m.kept = map[id]pawl.Artifact{}
	}
	if old, ok := m.kept[at]; ok {
		m.size -= size(old)
		m.order = slices.DeleteFunc(m.order, func(o id) bool { return o == at })
	}
	m.kept[at] = a
	m.order = append(m.order, at)
	for m.size += size(a); m.size > limit; m.order = m.order[1:] {
		m.size -= size(m.kept[m.order[0]])
		delete(m.kept, m.order[0])
	}
	return nil
}

// Get returns what was kept.
func (m *Memory) Get(_ context.Context, run string, key llm.Key) (pawl.Artifact, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, ok := m.kept[id{run, key}]
	if !ok {
		return pawl.Artifact{}, fmt.Errorf("%s: %w", key, pawl.ErrNoArtifact)
	}
	return a, nil
}

func size(a pawl.Artifact) int { return len(a.Text) + len(a.Data) }
