// Package artifact stores results that are too large for the model, and lets the model read them
// page by page.
//
//	tool result, 400 KB ──▶ run ──▶ Memory.Put(run, artifact)
//	                         └────▶ model: the first lines, and "read run/1/0 with result_read"
//	model: result_read {"id":"run/1/0","line":200} ──▶ Memory.Get ──▶ one page
//
// Memory is the implementation for one process. Package store has implementations that outlive it.
// Reader provides the tool result_read, and is embedded in all of them.
package artifact

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Memory stores artifacts in memory, and drops the oldest when they exceed Limit. The zero value is
// ready to use. It is safe for concurrent use and must not be copied.
type Memory struct {
	Reader

	Limit int // stored bytes; 0 means 64 MiB

	mu        sync.Mutex
	artifacts map[id]pawl.Artifact
	order     []id // the oldest first
	size      int
}

type id struct {
	run string
	key llm.Key
}

var _ pawl.Artifacts = (*Memory)(nil)

const defaultLimit = 64 << 20

// Put stores a. It returns an error if a alone is larger than the limit.
func (m *Memory) Put(_ context.Context, run string, a pawl.Artifact) error {
	limit := cmp.Or(m.Limit, defaultLimit)
	if size(a) > limit {
		return fmt.Errorf("artifact %s: %d bytes are more than the %d that can be kept", a.Key, size(a), limit)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := id{run, a.Key}
	if m.artifacts == nil {
		m.artifacts = map[id]pawl.Artifact{}
	}
	if old, ok := m.artifacts[at]; ok {
		m.size -= size(old)
		m.order = slices.DeleteFunc(m.order, func(o id) bool { return o == at })
	}
	m.artifacts[at] = a
	m.order = append(m.order, at)
	for m.size += size(a); m.size > limit; m.order = m.order[1:] {
		m.size -= size(m.artifacts[m.order[0]])
		delete(m.artifacts, m.order[0])
	}
	return nil
}

// Get returns a stored artifact. The error is pawl.ErrNotFound if there is none.
func (m *Memory) Get(_ context.Context, run string, key llm.Key) (pawl.Artifact, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, ok := m.artifacts[id{run, key}]
	if !ok {
		return pawl.Artifact{}, fmt.Errorf("artifact %s: %w", key, pawl.ErrNotFound)
	}
	return a, nil
}

func size(a pawl.Artifact) int { return len(a.Text) + len(a.Data) }
