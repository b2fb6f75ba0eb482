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
//	├ after the approval     Rate, Breaker, Cache; Guard, on results
//	└ each attempt           Timeouts
//
// Policies after the approval may stand at any place in the list, and their clocks do not count the
// time that a person takes. The model receives each refusal with words about when or how to
// continue.
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
