package policy

// cache.go: Cache, which answers equal calls of Pure tools with one result.

import (
	"container/list"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Cache answers calls of Pure tools with the result of an equal call: the same tool by name and
// schema, and the same arguments in any order and spacing. Equal calls at the same time run once.
// Errors, and results of other effects, are never stored. A cached call is approved as any other;
// it takes no slot and no budget, and its Execution is marked Cached. The zero value is ready.
type Cache struct {
	// Tools are the tools whose results are stored. Nil means every Pure tool; another tool is an
	// error.
	Tools []string

	// Bytes bounds the size of the stored results; the longest unused is dropped first. 0 means 64
	// MiB.
	Bytes int

	// Age is the time for which a result is valid. 0 means for ever.
	Age time.Duration
}

// Middleware returns the middleware that caches results, with an empty cache. An agent may have
// several for different tools, and one for each tool.
func (c Cache) Middleware() pawl.Middleware {
	check := c.check
	if c.Bytes <= 0 {
		c.Bytes = 64 << 20
	}
	s := &results{Cache: c, byKey: map[string]*list.Element{}, flights: map[string]*flight{}}
	return pawl.Middleware{
		Rank:  rankCache,
		Check: check,
		Sole:  c.caches,
		Approved: func(next pawl.ToolFunc) pawl.ToolFunc {
			return func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
				v := pawl.InvocationFrom(ctx)
				t := calledTool(v, c.Tools)
				// Any other call must be executed: a read may have changed, and a write must
				// happen.
				if t == nil || t.Effect != pawl.EffectPure {
					return next(ctx, call)
				}

				run := func() (llm.ToolResult, error) { return next(ctx, call) }
				res, stored, err := s.get(ctx, t.Digest(call.Args), run)
				if stored {
					v.FromCache()
				}
				return res, err
			}
		},
	}
}

// check reports tools whose results cannot be cached.
func (c Cache) check(tools []*pawl.Tool) error {
	if err := notNegative("cache", number{"Bytes", int64(c.Bytes)}, number{"Age", int64(c.Age)}); err != nil {
		return err
	}
	if err := checkEntries("cache", c.Tools, tools); err != nil {
		return err
	}
	for _, t := range tools {
		if slices.Contains(c.Tools, t.Name) && t.Effect != pawl.EffectPure {
			return fmt.Errorf("cache: the effect of %s is %s, and only results of pure tools can be cached",
				t.Name, t.Effect)
		}
	}
	return nil
}

// caches names the cache of each tool whose results are stored.
func (c Cache) caches(tools []*pawl.Tool) (all []string) {
	for _, t := range tools {
		if t.Effect == pawl.EffectPure && matchesAny(c.Tools, t) {
			all = append(all, "the cache of "+t.Name)
		}
	}
	return all
}

// results are the stored results and the calls in flight.
type results struct {
	Cache
	mu      sync.Mutex
	byKey   map[string]*list.Element // of order
	order   list.List                // of *entry, the last used first
	bytes   int
	flights map[string]*flight
}

// entry is a stored result.
type entry struct {
	key  string
	res  llm.ToolResult
	size int
	made time.Time
}

// flight is a call that others wait for.
type flight struct {
	done chan struct{}
	res  llm.ToolResult
	ok   bool // res is good for the others too
}

// get returns the stored result for key, or the result of run. Of equal calls one runs, under its
// own context. If its result cannot be stored, the others run themselves.
func (s *results) get(ctx context.Context, key string, run func() (llm.ToolResult, error)) (res llm.ToolResult,
	stored bool, err error) {
	s.mu.Lock()
	if e := s.stored(key); e != nil {
		s.mu.Unlock()
		return e.res.Clone(), true, nil
	}
	f := s.flights[key]
	if f == nil {
		f = &flight{done: make(chan struct{})}
		s.flights[key] = f
		s.mu.Unlock()
		return s.runFlight(key, f, run)
	}
	s.mu.Unlock()

	// An equal call runs. Its error may be that it was cancelled, which is no result for this call.
	select {
	case <-f.done:
	case <-ctx.Done():
		return res, false, context.Cause(ctx)
	}
	if f.ok {
		return f.res.Clone(), true, nil
	}
	res, err = run()
	return res, false, err
}

// runFlight runs the call that others may wait for.
func (s *results) runFlight(key string, f *flight, run func() (llm.ToolResult, error)) (res llm.ToolResult,
	stored bool, err error) {
	// The others must not wait for ever, also if run panics.
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.flights, key)
		if f.ok {
			s.store(key, f.res)
		}
		close(f.done)
	}()

	res, err = run()
	if err == nil && !res.IsError {
		f.res = res.Clone()
		f.ok = true
	}
	return res, false, err
}

// stored returns the entry for key and marks it as used last. Nil means that there is none, or that
// it is too old. s.mu is locked.
func (s *results) stored(key string) *entry {
	at := s.byKey[key]
	if at == nil {
		return nil
	}
	e := at.Value.(*entry)
	if s.Age > 0 && time.Since(e.made) > s.Age {
		s.drop(at)
		return nil
	}
	s.order.MoveToFront(at)
	return e
}

// store stores a result and drops the longest unused until all fit. A result larger than the cache
// is not stored. s.mu is locked.
func (s *results) store(key string, res llm.ToolResult) {
	e := &entry{key: key, res: res, size: size(res), made: time.Now()}
	if e.size > s.Bytes {
		return
	}
	s.byKey[key] = s.order.PushFront(e)
	s.bytes += e.size
	for s.bytes > s.Bytes {
		s.drop(s.order.Back())
	}
}

// drop removes an entry. s.mu is locked.
func (s *results) drop(at *list.Element) {
	e := s.order.Remove(at).(*entry)
	s.bytes -= e.size
	delete(s.byKey, e.key)
}

// size is about what a result takes, the entry included.
func size(r llm.ToolResult) int {
	n := 256 + len(r.Data)
	for _, p := range r.Parts {
		switch p := p.(type) {
		case llm.Text:
			n += len(p.Text)
		case llm.Media:
			n += len(p.Data) + len(p.URL)
		}
		n += 64
	}
	return n
}
