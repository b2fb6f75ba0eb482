// Package llm holds a conversation with one model: messages, a request, a reply, usage and errors.
// It knows nothing about agents. A program that only needs a model's reply imports this package and
// a provider. Package pawl adds the execution of tools, limits, approvals and durable runs.
//
//	Request                      Model                     Response
//	┌─────────────────┐          ┌──────────┐  Delta       ┌──────────────────────┐
//	│ Messages        │  Stream  │ openai   │  Delta       │ Message              │
//	│ Tools []ToolSpec│ ───────▶ │ anthropic│ ─────▶  Add  │ Finish FinishReason  │
//	│ Output, Settings│          │ gemini … │  Delta       │ Usage                │
//	└─────────────────┘          └──────────┘              └──────────────────────┘
//
// A Message is one turn of a conversation. It has a role and parts: Text, Reasoning, Media,
// ToolCall and ToolResult. A Decision is a part only in the input of a run.
//
//	user       Text "Do I need an umbrella in Oslo?"
//	assistant  Reasoning, ToolCall weather {"city":"Oslo"}
//	tool       ToolResult "Rain until the evening."
//	assistant  Text "Yes."
//
// A Model streams a reply as a sequence of Deltas. Response.Add joins them, so that adapters only
// translate. Complete does both and returns the whole reply:
//
//	res, err := llm.Complete(ctx, model, &llm.Request{Messages: []llm.Message{llm.User("Hello")}})
//
// Check reports why a list of messages is not a valid conversation, and Repair makes the smallest
// change that turns it into one. Each provider adds its own HistoryRules. Errors of providers are
// ProviderErrors.
//
// All types that cross a boundary have a fixed JSON form, in json.go and json_request.go. Readers
// who do not store conversations can skip both.
package llm
