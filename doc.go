// Package pawl runs language models that call tools. The model decides which tools to call. pawl
// validates the calls, executes them and returns the results to the model, until the model answers
// or the run stops for another stated reason.
//
//	weather := pawl.Func("weather", "Current weather in a city.",
//		func(ctx context.Context, c City) (string, error) { return "rain in " + c.Name, nil })
//	agent := &pawl.Agent{Model: openai.New("gpt-6.1-terra", nil), Tools: []pawl.Toolset{weather}}
//	res, err := agent.Run(ctx, llm.User("Do I need an umbrella in Oslo?"))
//
// # Parts
//
// A [Tool] is a function that the model may call; [Func] makes one from a typed function. A
// [Toolset] supplies tools; a [Registry] may change during runs. An [Agent] is a model (package
// llm) with tools, instructions and [Limits]. An [Executor] executes the calls of one step;
// [Parallel] is the default. A [Middleware] wraps model requests or calls.
//
//	Agent.Run ──▶ loop ──▶ 1 act      Executor ──▶ Task.Do (each call) ──▶ Tool.Run
//	                       2 observe  append the results to the conversation, in call order
//	                       3 decide   Model.Stream ──Delta──▶ Response.Add; no calls: done, else 1
//
// [Agent.Run] returns a [Result]. [Agent.Stream] emits the same run as [Event]s. A Result is plain
// data: store it as JSON and continue it with [Agent.Resume], which first answers the pending calls
// ([PendingCall]).
//
// # Guarantees
//
// Every call has exactly one result before the next request. A call does not run if its arguments
// do not fit the schema of its tool. A call of a reply that was cut has no effect: in a streamed
// run a call that only reads may have started early; it is cancelled and its result dropped. Faults
// that the model can correct (an unknown tool, invalid arguments, an error of a tool, a panic, a
// timeout) are results. Faults that the program must handle are errors ([ToolError],
// [TranscriptError], llm.ProviderError). Every run ends, and reaching a limit is never reported as
// success: see [StopReason] and [Result].Limit.
//
// # What to skip
//
// Most programs need Agent, Func, llm.User and Result. [Task], [Execution] and [Executor] are for
// programs that execute calls on other machines, [Engine] for durable runs.
package pawl
