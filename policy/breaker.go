package policy

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Breaker stops calling a tool whose infrastructure is down, and spares the model and the tool further tries: after Failures in a row its calls are
// blocked for Pause; then one call is let through, and how it ends decides. Only what pawl.IsRetryable reports counts as a
// failure (timeouts, and what a tool said Retryable of), after the pipeline's own repeats: an error that a tool tells in
// words shows that it is there. The zero value is ready.
type Breaker struct {
	Tools    []string      // nil: every tool, each by itself
	Failures int           // 0: 5
	Pause    time.Duration // 0: 30 s
}

// Middleware returns the middleware that holds calls to b, with no failure so far.
func (b Breaker) Middleware() pawl.Middleware {
	if b.Failures <= 0 {
		b.Failures = 5
	}
	if b.Pause <= 0 {
		b.Pause = 30 * time.Second
	}
	s := &breakers{Breaker: b, tools: map[string]*health{}}
	return pawl.Middleware{
		Check: func(tools []*pawl.Tool) error { return check("circuit breaker", b.Tools, tools) },
		Approved: func(next pawl.ToolFunc) pawl.ToolFunc {
			return func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
				v := pawl.InvocationFrom(ctx)
				t := called(v, b.Tools)
				if t == nil {
					return next(ctx, call)
				}
				if wait, ok := s.begin(t.Name); !ok {
					return llm.ToolResult{}, pawl.Block(fmt.Sprintf("%s failed %d times in a row and is not called for now. Try again in %v, or go on without it.",
						t.Name, b.Failures, readable(wait)))
				}
				res, err := next(ctx, call)
				s.end(t.Name, err, v.Attempt > 0 && ctx.Err() == nil)
				return res, err
			}
		},
	}
}

// breakers is the health of the tools.
type breakers struct {
	Breaker
	mu    sync.Mutex
	tools map[string]*health
}

// health is what is known of one tool.
type health struct {
	failures int       // in a row
	until    time.Time // with too many: when the next call may try
}

// begin reports whether the call may run. When the pause is over one may, and the pause begins anew, so that the others wait for how it ends; if it
// never does, the next may try after another pause.
func (s *breakers) begin(tool string) (wait time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.tools[tool]
	if h == nil || h.failures < s.Failures {
		return 0, true
	}
	now := time.Now()
	if wait = h.until.Sub(now); wait > 0 {
		return wait, false
	}
	h.until = now.Add(s.Pause)
	return 0, true
}

// end notes how a call ended. One that was not begun, or was ended from outside, says nothing, but lets another try.
func (s *breakers) end(tool string, err error, says bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.tools[tool]
	switch {
	case !says:
		if h != nil {
			h.until = time.Time{}
		}
	case !pawl.IsRetryable(err):
		delete(s.tools, tool)
	default:
		if h == nil {
			h = &health{}
			s.tools[tool] = h
		}
		if h.failures++; h.failures >= s.Failures {
			h.until = time.Now().Add(s.Pause)
		}
	}
}
