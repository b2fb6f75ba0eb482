package pawl

import (
	"context"

	"github.com/pawl-go/pawl/llm"
)

// scope is what the calls of a run share.
type scope struct {
	tools    []*Tool
	answer   *Tool  // one of tools, by which the answer is given; nil: as text
	layers   layers // the middleware around calls
	executor Executor
	slots    *slots // one semaphore a run, inner calls and inner runs included
	budget   *budget
	watched  bool        // whether anybody observes the events of the calls
	depth    int         // of calls inside calls
	within   *Invocation // the call that these calls are made in; nil: none
	recorder Recorder    // keeps what calls are about to do; nil: nobody
	durable  string      // the ID of the run that an engine keeps; "": it is not kept
	waits    bool        // whether a call may pend here
	replays  bool        // whether a call that is carried out again finds what those inside of it came to
	whole    bool        // whether replies are asked for whole
	away     bool        // whether the run is carried out in another process
	shelf    *shelf      // where what is too large for the model is kept; nil: nowhere
}

// Execute carries out one call of a tool of set, outside a run, through the same pipeline. Whatever goes wrong is in the
// Execution. A passive tool is refused: there is nobody to wait for.
func Execute(ctx context.Context, set Toolset, call llm.ToolCall) Execution {
	const key = "execute"
	t := Task{Key: key, Call: call}
	tools, err := set.Tools(ctx)
	if err != nil {
		return Execution{Key: key, Call: call, Outcome: OutcomeError, Error: err.Error(), err: err,
			Result: llm.ToolResult{CallID: call.ID, Key: key, IsError: true, Parts: []llm.Part{llm.Text{Text: err.Error()}}}}
	}
	t.scope = &scope{tools: tools, executor: Parallel{}, slots: &slots{free: defaultParallel}}
	return t.Do(ctx, func(Event) {})
}
