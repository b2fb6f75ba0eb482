package policy

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

// Cache answers calls of Pure tools with what an equal call gave: the same tool by name and schema, the same arguments whatever their order and spacing. Calls
// that are equal and run at the same time run once. Results of other effects are never kept, nor are errors. A call that is answered so was
// approved as any other; it takes no slot and nothing of the budget, and its Execution is marked Cached. The zero value is ready.
type Cache struct {
	Tools []string      // nil: every Pure tool; to name another is an error
	Bytes int           // how much is kept, by the size of results; the longest unused goes first; 0: 64 MiB
	Age   time.Duration // how long a result is good for; 0: as long as it is kept
}

// Middleware returns the middleware that keeps results as c says, with nothing kept yet.
func (c Cache) Middleware() pawl.Middleware {
	if c.Bytes <= 0 {
		c.Bytes = 64 << 20
	}
	s := &results{Cache: c, byKey: map[string]*list.Element{}, flights: map[string]*flight{}}
	return pawl.Middleware{
		Check: func(tools []*pawl.Tool) error {
			if err := check("cache", c.Tools, tools); err != nil {
				return err
			}
			for _, t := range tools {
				if slices.Contains(c.Tools, t.Name) && t.Effect != pawl.Pure {
					return fmt.Errorf("cache: the effect of %s is %s, and only what a pure tool gives can be kept", t.Name, t.Effect)
				}
			}
			return nil
		},
		Approved: func(next pawl.ToolFunc) pawl.ToolFunc {
			return func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
				v := pawl.InvocationFrom(ctx)
				t := called(v, c.Tools)
				if t == nil || t.Effect != pawl.Pure {
					return next(ctx, call)
				}
				res, kept, err := s.get(ctx, t.Digest(call.Args), func() (llm.ToolResult, error) { return next(ctx, call) })
				if kept {
					v.FromCache()
				}
				return res, err
			}
		},
	}
}

// results is what is kept, and what is on its way.
type results struct {
	Cache
	mu      sync.Mutex
	byKey   map[string]*list.Element // of order
	order   list.List                // of *entry, the last used first
	bytes   int
	flights map[string]*flight
}

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

// get returns what is kept for key, or what run gives. Of equal calls one runs, under its own context; when that gave nothing to keep, the
// others run themselves.
func (s *results) get(ctx context.Context, key string, run func() (llm.ToolResult, error)) (res llm.ToolResult, kept bool, err error) {
	s.mu.Lock()
	if e := s.kept(key); e != nil {
		s.mu.Unlock()
		return copied(e.res), true, nil
	}
	f := s.flights[key]
	if f == nil {
		f = &flight{done: make(chan struct{})}
		s.flights[key] = f
		s.mu.Unlock()
		return s.fly(key, f, run)
	}
	s.mu.Unlock()
	select {
	case <-f.done:
	case <-ctx.Done():
		return res, false, context.Cause(ctx)
	}
	if f.ok {
		return copied(f.res), true, nil
	}
	res, err = run()
	return res, false, err
}

// fly runs the call that others may wait for.
func (s *results) fly(key string, f *flight, run func() (llm.ToolResult, error)) (res llm.ToolResult, kept bool, err error) {
	defer func() { // whatever run does
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.flights, key)
		if f.ok {
			s.keep(key, f.res)
		}
		close(f.done)
	}()
	res, err = run()
	if err == nil && !res.IsError {
		f.res, f.ok = copied(res), true
	}
	return res, false, err
}

// kept returns the entry for key, which is now the last used; nil if there is none, or it is too old.
func (s *results) kept(key string) *entry {
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

// keep keeps a result, and drops those unused for longest until all fit. One that is larger than all of the cache is not kept.
func (s *results) keep(key string, res llm.ToolResult) {
	e := &entry{key: key, res: res, size: size(res), made: time.Now()}
	if e.size > s.Bytes {
		return
	}
	s.byKey[key] = s.order.PushFront(e)
	for s.bytes += e.size; s.bytes > s.Bytes; {
		s.drop(s.order.Back())
	}
}

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

// copied returns r with a list of parts of its own: a middleware outside may change it.
func copied(r llm.ToolResult) llm.ToolResult {
	r.Parts = slices.Clone(r.Parts)
	return r
}
