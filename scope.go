package pawl

import (
	"context"
	"sync/atomic"
)

// scope is what the calls of a run share.
type scope struct {
	tools    []*Tool
	answer   *Tool  // one of tools, by which the answer is given; nil: as text
	layers   layers // the middleware around calls
	executor Executor
	slots    chan struct{} // one semaphore a run, inner calls and inner runs included
	budget   *budget
	messages []Message   // at the start of the step
	quiet    bool        // nobody watches: only call_completed matters
	depth    int         // of calls inside calls
	within   *Invocation // the call that these calls are made in; nil: none
	waits    bool        // whether a call may pend here
	whole    bool        // whether replies are asked for whole
	left     Limits      // what inner runs may use
}

// budget counts the calls that are begun against Limits.Calls, inner ones included.
type budget struct {
	begun   atomic.Int64
	limit   int64       // 0: none
	refused atomic.Bool // whether a call was
	outer   *budget     // of the run that this one is inside; nil: none
}

func (b *budget) take() error {
	for o := b; o != nil; o = o.outer {
		if n := o.begun.Add(1); o.limit > 0 && n > o.limit {
			o.refused.Store(true)
			for u := b; ; u = u.outer { // nothing was begun
				if u.begun.Add(-1); u == o {
					return fail(OutcomeSkipped, "Not run: the limit of %d calls was reached. Answer with what you have.", o.limit)
				}
			}
		}
	}
	return nil
}

// leaves reports whether n further calls may begin, whatever else goes on.
func (b *budget) leaves(n int) bool {
	for ; b != nil; b = b.outer {
		if b.limit > 0 && b.begun.Load()+int64(n) > b.limit {
			return false
		}
	}
	return true
}

// giveBack undoes take: the call counts as never begun.
func (b *budget) giveBack() {
	for ; b != nil; b = b.outer {
		b.begun.Add(-1)
	}
}

// Execute carries out one call of a tool of set, outside a run, through the same pipeline. Whatever goes wrong is in the
// Execution. A passive tool is refused: there is nobody to wait for.
func Execute(ctx context.Context, set Toolset, call ToolCall) Execution {
	const key = "execute"
	t := Task{Key: key, Call: call}
	tools, err := set.Tools(ctx)
	if err != nil {
		return Execution{Key: key, Call: call, Outcome: OutcomeError, Error: err.Error(), err: err,
			Result: ToolResult{CallID: call.ID, Key: key, IsError: true, Parts: []Part{Text{Text: err.Error()}}}}
	}
	t.scope = &scope{tools: tools, executor: Parallel{}, slots: make(chan struct{}, defaultParallel)}
	return t.Do(ctx, func(Event) {})
}
