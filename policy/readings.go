package policy

// readings.go: the conversations that a Flow has read, and the conversation that a call belongs to.

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy/internal/origin"
)

// Bounds of the readings of a Flow, over all runs. A conversation that falls out is read again.
const (
	maxIndexes    = 32
	maxIndexBytes = 64 << 20
)

// outerKey finds the index of the conversation around a nested agent.
type outerKey struct{}

// caller says which conversation a call belongs to, and how far it has come.
type caller struct {
	at    step
	outer *origin.Index // of the conversation around a nested agent; nil means none, or not known
	inner bool          // the task of the agent comes from another agent
}

// step is a step of a run.
type step struct {
	tools **pawl.Tool // the first of the run
	key   llm.Key     // of the step
}

// callerOf returns the conversation that the call of v belongs to.
func callerOf(ctx context.Context, v *pawl.Invocation) caller {
	// Keys are unique within a run alone. The slice of the tools is made for a run, and identifies
	// the run while a reading holds it.
	key := ownKey(v.Key)
	stepKey := key[:max(0, strings.LastIndexByte(string(key), '/'))]
	c := caller{
		at:    step{&v.Tools()[0], stepKey},
		inner: !topLevel(key),
	}
	if c.inner {
		c.outer, _ = ctx.Value(outerKey{}).(*origin.Index)
	}
	return c
}

// reading is a conversation that a Flow has read, up to the step of its caller.
type reading struct {
	*origin.Index
	caller
}

// readings are the conversations that a Flow has read. They only save time: a conversation that is
// missing is read from its messages.
type readings struct {
	mu  sync.Mutex // taken before the lock of an index
	all []*reading // the one used last is first
}

// ofStep returns the index of the conversation of c if its step was read; otherwise nil.
func (rs *readings) ofStep(c caller) *origin.Index {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := rs.remove(func(r *reading) bool { return r.at == c.at && r.outer == c.outer })
	if r == nil {
		return nil
	}
	rs.all = slices.Insert(rs.all, 0, r)
	return r.Index
}

// read returns the index of the conversation of c, which has msgs. It reads the messages that an
// earlier step has not read. newIndex returns the index of a conversation without messages, and
// conduct the conduct of a tool.
func (rs *readings) read(c caller, msgs []llm.Message, newIndex func(caller) *origin.Index,
	conduct func(tool string) *origin.Conduct) *origin.Index {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := rs.remove(func(r *reading) bool {
		return r.outer == c.outer && r.inner == c.inner && r.Begins(msgs)
	})
	if r == nil {
		r = &reading{Index: newIndex(c)}
		// A call that another process executes has no messages here, so that nothing can be known
		// about its values.
		if len(msgs) == 0 {
			r.Distrust()
		}
	}

	r.Read(msgs, conduct)
	r.caller = c
	rs.add(r)
	return r.Index
}

// remove removes and returns the first reading for which is holds, or nil. rs.mu is locked.
func (rs *readings) remove(is func(*reading) bool) *reading {
	i := slices.IndexFunc(rs.all, is)
	if i < 0 {
		return nil
	}
	r := rs.all[i]
	rs.all = slices.Delete(rs.all, i, i+1)
	return r
}

// add adds r as the one used last, and drops readings beyond the bounds. rs.mu is locked.
func (rs *readings) add(r *reading) {
	rs.all = slices.Insert(rs.all, 0, r)
	total := 0
	for i, known := range rs.all {
		total += known.Bytes()
		if i > 0 && (i >= maxIndexes || total > maxIndexBytes) {
			rs.all = slices.Delete(rs.all, i, len(rs.all))
			return
		}
	}
}

// ownKey returns the key of the call of an agent that k belongs to: run/1/0/2/0 for its nested call
// run/1/0/2/0/s1.
func ownKey(k llm.Key) llm.Key {
	if topLevel(k) {
		return k
	}
	parts := strings.Split(string(k), "/")
	for len(parts) > 3 {
		number, nested := strings.CutPrefix(parts[len(parts)-1], "s")
		if !nested || strings.Trim(number, "0123456789") != "" {
			break
		}
		parts = parts[:len(parts)-1]
	}
	return llm.Key(strings.Join(parts, "/"))
}

// topLevel reports whether k is the key of a call of the outermost agent, such as run/1/0.
func topLevel(k llm.Key) bool { return strings.Count(string(k), "/") == 2 }
