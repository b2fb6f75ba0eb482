// Package policy bounds the calls of an agent, and the effects of failures outside. Each policy is
// a struct of plain settings, as in a configuration file, and returns the middleware that enforces
// them:
//
//	agent := &pawl.Agent{
//		Model: openai.New("gpt-5-mini", nil),
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
// Rules, and Flow by the origin of arguments, decide about approval. The other policies for calls
// come after it, at any place in the list, so their clocks do not count the time that a person
// takes. The model receives each refusal with words about when or how to continue.
// Guard checks texts of the user, the model and tools.
//
// In lists of tools, an entry is a name, a pattern (file_*, as in package path), an effect
// (effect:write) or an MCP server (mcp:files, for all its tools and no other), in Rules also with
// conditions on arguments. A plain name without a tool, and an
// invalid pattern, end a run before it begins: a misspelt rule would stop nothing.
//
// A middleware has state (turns, failures, results) that lasts from run to run, and may be used by
// many agents and runs at once. Each call of a policy's Middleware gives fresh state. The state of
// Fallback lasts for one run.
package policy
