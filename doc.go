// Package pawl runs language models that call tools. A model decides which tools to call; pawl checks the calls, carries them out,
// gives the results back, and goes on until there is an answer or another stated cause to stop.
//
//	weather := pawl.Func("weather", "Current weather in a city.",
//		func(ctx context.Context, c City) (string, error) { return "rain in " + c.Name, nil })
//	agent := &pawl.Agent{Model: openai.New("gpt-5-mini", nil), Tools: []pawl.Toolset{weather}}
//	res, err := agent.Run(ctx, llm.User("Do I need an umbrella in Oslo?"))
//
// # The parts
//
// A [Model] continues a conversation: an adapter of a provider, a script, or yours. A [Tool] is something the model may call; [Func] makes
// one from a typed function, and a [Toolset] supplies tools ([Registry] is one that changes while runs go on). An [Agent] is a model with
// tools, instructions and [Limits]. An [Executor] carries out the calls of one step ([Parallel] does unless you say
// otherwise), and a [Middleware] wraps model requests or calls.
//
//	Agent.Run ──▶ loop ──▶ 1 act      Executor ──▶ each open call: the pipeline ──▶ Tool.Run
//	                       2 observe  results go into the transcript, in call order
//	                       3 decide   Model.Stream ──Delta──▶ Response.Add; no calls: done, else back to 1
//
// [Agent.Run] returns a [Result]. [Agent.Stream] tells of the same run as [Event]s while it happens. A Result is plain data: store it
// as JSON, and go on from it with [Agent.Resume], which settles the calls that waited ([Waiting], [Decision]) first.
//
// # What holds, whatever the model does
//
// Every call has exactly one result before the model is asked again. No call runs with arguments that do not fit its tool's
// schema, nor out of a reply that was cut. What the model can mend (an unknown tool, bad arguments, a tool's error, a panic, a timeout) is a
// result, worded for it; what the program must know is an error ([Abort], [ToolError], [ProviderError]). No run is endless, and
// reaching a limit is never reported as success: see [Stop].
//
// # What to skip
//
// Most programs need Agent, Func, User and Result. [Task], [Execution] and [Executor] are for those who carry out calls elsewhere;
// [Delta] and [Response] for those who write a Model; [Key] and [Opaque] for those who store runs.
package pawl
