package policy

// breaker.go: Breaker, which blocks a tool whose infrastructure is down.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/llm"
)

// Breaker blocks a tool whose infrastructure is down. After Failures in a row, its calls are
// blocked for Pause; then one call is let through, and its outcome decides.
//
// Only errors for which pawl.IsRetryable is true count as failures, after the pipeline's own
// retries: timeouts, no connection, a lost connection, and a service that is busy or away (429,
// 502, 503, 504). A tool that reports an error in words is available, and so is a service that
// refuses a request (400, 401, 403, 404). A call that was refused here, such as one without the
// credential of its caller, says nothing about the tool. The zero value is ready.
//
// A blocked call was certainly not sent, and is pawl.OutcomeBlocked.
type Breaker struct {
	// Tools are the tools that it counts, each by itself. Nil means every tool.
	Tools []string
	// Failures is the number of failures in a row that block a tool. 0 means 5.
	Failures int
	// Pause is the time for which a tool is blocked. 0 means 30 s.
	Pause time.Duration
}

// Middleware returns the middleware that holds calls to b, with no failure so far.
func (b Breaker) Middleware() pawl.Middleware {
	wrong := notNegative("circuit breaker", number{"Failures", int64(b.Failures)}, number{"Pause", int64(b.Pause)})
	b.Failures = cmp.Or(b.Failures, 5)
	b.Pause = cmp.Or(b.Pause, 30*time.Second)
	s := &breakers{Breaker: b, tools: map[string]*health{}}
	return pawl.Middleware{
		Rank:  rankBreaker,
		Check: func(tools []*pawl.Tool) error { return cmp.Or(wrong, checkEntries("circuit breaker", b.Tools, tools)) },
		Approved: func(next pawl.ToolFunc) pawl.ToolFunc {
			return func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
				v := pawl.InvocationFrom(ctx)
				t := calledTool(v, b.Tools)
				if t == nil {
					return next(ctx, call)
				}

				if wait, ok := s.begin(t.Name); !ok {
					text := fmt.Sprintf("%s failed %d times in a row and is not called for now. "+
						"Try again in %v, or go on without it.", t.Name, b.Failures, readable(wait))
					return llm.ToolResult{}, delivery.NewError(delivery.NotSent, text, pawl.BlockError(text))
				}
				res, err := next(ctx, call)

				// A call that ended before its tool started says nothing about the tool.
				started := v.Attempt > 0
				s.record(t.Name, err, started && ctx.Err() == nil && !refusedHere(err))
				return res, err
			}
		},
	}
}

// refusedHere reports whether err is of a call that did not leave this process for a reason that is
// not the state of its service.
func refusedHere(err error) bool {
	var e *delivery.Error
	return errors.As(err, &e) && e.Certainty == delivery.NotSent && !pawl.IsRetryable(err)
}

// breakers has the health of all tools.
type breakers struct {
	Breaker
	mu    sync.Mutex
	tools map[string]*health
}

// health is the state of one tool.
type health struct {
	failures int       // in a row
	until    time.Time // when the next call may try, after too many failures
}

// begin reports whether the call may run. After the pause one call may, and the pause begins again,
// so that the others wait for its outcome. If it has none, another call may run after that pause.
func (s *breakers) begin(tool string) (wait time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.tools[tool]
	if h == nil || h.failures < s.Failures {
		return 0, true
	}

	now := time.Now()
	wait = h.until.Sub(now)
	if wait > 0 {
		return wait, false
	}
	h.until = now.Add(s.Pause)
	return 0, true
}

// record records how a call ended. A call that did not start, or was cancelled from outside, has no
// outcome and lets another try.
func (s *breakers) record(tool string, err error, hasOutcome bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.tools[tool]
	switch {
	// The call was the one try of a half-open breaker. The next call becomes the try.
	case !hasOutcome:
		if h != nil {
			h.until = time.Time{}
		}
	// An error about the arguments says that the tool works.
	case !pawl.IsRetryable(err):
		delete(s.tools, tool)
	default:
		if h == nil {
			h = &health{}
			s.tools[tool] = h
		}
		h.failures++
		if h.failures >= s.Failures {
			h.until = time.Now().Add(s.Pause)
		}
	}
}
