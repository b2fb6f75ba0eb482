// Package policy bounds the calls of an agent, and the effects of failures outside. Each policy is
// a struct of plain settings, as in a configuration file, and returns the middleware that enforces
// them:
//
//	agent := &pawl.Agent{
//		Model: openai.New("gpt-6.1-terra", nil),
//		Tools: []pawl.Toolset{policy.Timeouts{"http_*": 15 * time.Second}.Over(tools)},
//		Middleware: []pawl.Middleware{
//			policy.Rules{Deny: []string{"file_delete"}}.Middleware(),
//			policy.Rate{Tools: []string{"search"}, Every: time.Second}.Middleware(),
//			policy.Breaker{}.Middleware(),
//			policy.Cache{}.Middleware(),
//			policy.Fallback{Models: []llm.Model{other}}.Middleware(),
//		},
//	}
//
// Where each policy acts:
//
//	request to the model     Guard, on input and output; Fallback
//	call of the model
//	├ approval               Rules, Flow, Approve for one tool, AskBeforeWrites
//	├ after the approval     Guard, on results; Cache; Breaker; Rate
//	└ each attempt           Timeouts
//
// Each acts in this place and order, wherever it is listed (pawl.Middleware.Rank). Fallback acts
// within all other middleware but telemetry, so that each of its models receives what the agent's
// own would. Two Fallbacks, and two Caches of one tool, are an error before the run starts.
// So a result from the cache takes no turn of Rate, and neither does a call that the Breaker stops.
// The clocks after the approval do not count the time that a person takes. The model receives each
// refusal with words about when or how to continue.
//
// In lists of tools, an entry is a name, a pattern (file_*, as in package path), an effect
// (effect:write) or an MCP server (mcp:files, for all its tools and no other), in Rules also with
// conditions on arguments. A plain name without a tool, and an invalid pattern, end a run before it
// begins: a misspelt rule would stop nothing.
//
// A middleware has state (turns, failures, results) that lasts from run to run, and may be used by
// many agents and runs at once. Each call of a policy's Middleware gives fresh state. The state of
// Fallback lasts for one run. Nothing is stored: after a restart all state is fresh, and Rules and
// Flow decide from the call and the transcript alone.
//
// # The code
//
// Each policy can be read alone, after entries.go. An approval takes this path:
//
//	Rules.Approve            rules.go       the stricter of the lists and of Flow
//	├ Rules.listed           rules.go       Deny, then Ask, then Allow, then the defaults
//	│ └ condition.met        arguments.go   yes, no or unsure; unsure counts for the stricter list
//	└ Flow.Approve           flow.go        allow, ask or deny, by the mode
//	  ├ Flow.index           readings.go    the conversation of the call, read once
//	  └ origin.Index.Judge   judge.go       why the call needs a question; empty means none
package policy
