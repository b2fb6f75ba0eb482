package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
)

// Model continues a conversation: a provider's adapter (package provider/openai), react.New over a model without function
// calling, a script.Model in tests, or yours. It is the driver contract, and the only one.
//
// Stream sends one request and yields the reply in fragments. The last Delta has Finish set; after an error nothing
// follows. Breaking out of the loop, or cancelling ctx, ends the request and frees what it holds. Nothing of
// req may be changed or kept beyond the call, other than as a cache. A Model may be used concurrently.
type Model interface {
	Stream(ctx context.Context, req *Request) iter.Seq2[Delta, error]
}

// Request is what a Model is asked.
type Request struct {
	Key      Key             // where in the run; never sent
	Model    string          // overrides the Model's own name; "" leaves it
	Messages []Message       // instructions first; every call has its result
	Tools    []*ToolSpec     // in a fixed order, so that the bytes are stable
	Choice   ToolChoice      // of no effect without Tools
	Output   json.RawMessage // JSON Schema that the final text must fit; nil: free text
	Settings Settings
	Whole    bool // the caller wants no fragments: answer without streaming
	Turn     int  // where in Messages the turn at hand begins, the user's last message; never sent
}

// OutputHolder is what a Model has that says whether its provider can hold the reply to req to req.Output while req.Tools are offered,
// or asks for it by means of its own. Where it can, req.Output is sent; where it cannot, and with a Model that does not say, a run with tools and an
// output offers the tool final_answer instead. Without tools the output is always sent. A Model that wraps another passes the question on.
type OutputHolder interface {
	HoldsOutput(req *Request) bool
}

// Settings tune a request. The zero value leaves everything to the provider.
type Settings struct {
	MaxTokens   int                        `json:"max_tokens,omitzero"`     // bound on the reply; 0: the provider's default
	Temperature *float64                   `json:"temperature,omitzero"`    // nil: the provider's default
	TopP        *float64                   `json:"top_p,omitzero"`          // nil: the provider's default
	Stop        []string                   `json:"stop,omitzero"`           // sequences that end the reply
	Effort      string                     `json:"effort,omitzero"`         // reasoning effort, in the provider's words; "": its default
	Parallel    *bool                      `json:"parallel_calls,omitzero"` // whether one reply may have several calls; nil: the provider's default
	Options     map[string]json.RawMessage `json:"options,omitzero"`        // provider name ("openai", "openai-chat", "anthropic", "gemini", or a server's: "groq") to a JSON object that is merged into the body untouched
}

// ToolMode is how a model may use tools.
type ToolMode int

// The tool modes. A forced choice (ToolRequired, ToolNamed) holds for a run's first request only, or the run
// could not end.
const (
	ToolAuto     ToolMode = iota // the model decides
	ToolNone                     // text only; the tools stay listed, for the provider's prompt cache
	ToolRequired                 // at least one call
	ToolNamed                    // one of Names
)

// ToolChoice controls whether and how a model uses tools. The zero value is auto.
type ToolChoice struct {
	Mode  ToolMode
	Names []string // with ToolNamed: one name, or a subset where the provider has that
}

// Named returns the choice that forces one of names.
func Named(names ...string) ToolChoice { return ToolChoice{ToolNamed, names} }

// Check reports whether the choice can be sent with tools: an error names what is not offered, and what is.
func (c ToolChoice) Check(tools []*ToolSpec) error {
	if c.Mode != ToolNamed {
		return nil
	}
	if len(c.Names) == 0 {
		return fmt.Errorf("tool choice: named, but no name is given")
	}
	for _, n := range c.Names {
		if !slices.ContainsFunc(tools, func(t *ToolSpec) bool { return t.Name == n }) {
			return fmt.Errorf("tool choice: no tool %q is offered; offered: %s", n, toolNames(tools))
		}
	}
	return nil
}

// Delta is a fragment of a reply.
type Delta struct {
	Index  int          // which part of the message; a new part takes the next number, from 0
	Part   Part         // Text, Reasoning, Media or ToolCall with the bytes to append; nil: none in this delta
	Done   bool         // the part at Index is sealed: nothing more will be added to it
	Usage  *Usage       // the figures so far; the last one wins; nil: no news
	Finish FinishReason // set on the last delta of a reply and nowhere else
	Model  string       // the name the provider answers under; "": no news
	ID     string       // the provider's id of the reply; "": no news
	Notice *Notice      // something to tell the observer that is no part of the reply; it becomes an event
}

// Notice is news about a reply or a call that is not part of the conversation: a retry, a decision that could not be
// read, a tool left out.
type Notice struct {
	Code string          `json:"code"` // stable, for programs: "retry", "DecisionExtractionFailed"
	Text string          `json:"text"` // for people
	Data json.RawMessage `json:"data,omitzero"`
}

// FinishReason says why a reply ended.
type FinishReason string

// The finish reasons. FinishToolCalls stands where whole calls came with a stop-like reason, whatever the provider said;
// FinishLength and FinishContentFilter win over it, since the last call may have been cut.
const (
	FinishStop          FinishReason = "stop"
	FinishLength        FinishReason = "length"
	FinishToolCalls     FinishReason = "tool_calls"
	FinishContentFilter FinishReason = "content_filter"
	FinishError         FinishReason = "error"
	FinishOther         FinishReason = "other"
)

// Cut reports whether the reply was cut short, so that none of its calls may run.
func (f FinishReason) Cut() bool {
	return f == FinishLength || f == FinishContentFilter || f == FinishError
}

// Usage counts tokens, normalised over providers: Input includes what was read from or written to a cache, Output
// includes Reasoning.
type Usage struct {
	Input      int             `json:"input"`
	Output     int             `json:"output"`
	Reasoning  int             `json:"reasoning"`
	CacheRead  int             `json:"cache_read"`
	CacheWrite int             `json:"cache_write"`
	Cost       float64         `json:"cost,omitzero"` // in US dollars, where the provider or a middleware knows it
	Raw        json.RawMessage `json:"-"`             // the provider's own figures; nil where not kept
}

// Total returns Input plus Output; the rest are parts of them.
func (u Usage) Total() int { return u.Input + u.Output }

// plausible returns u without figures that no reply can have: they would take back what a budget has counted, or could not be stored.
func (u *Usage) plausible() Usage {
	const most = 1 << 30
	c := *u
	for _, n := range []*int{&c.Input, &c.Output, &c.Reasoning, &c.CacheRead, &c.CacheWrite} {
		*n = min(max(*n, 0), most)
	}
	if c.Cost = min(c.Cost, most); !(c.Cost >= 0) { // not a number, too
		c.Cost = 0
	}
	return c
}

// Add adds the figures of v; Raw is dropped.
func (u *Usage) Add(v Usage) {
	u.Input += v.Input
	u.Output += v.Output
	u.Reasoning += v.Reasoning
	u.CacheRead += v.CacheRead
	u.CacheWrite += v.CacheWrite
	u.Cost += v.Cost
	u.Raw = nil
}

// Complete asks m once and returns the whole reply. It sets req.Whole on a copy, so the adapter answers without streaming.
// Calls are not run: see Generate and Agent.Run.
func Complete(ctx context.Context, m Model, req *Request) (*Response, error) {
	whole := *req
	whole.Whole = true
	resp := new(Response)
	for d, err := range m.Stream(ctx, &whole) {
		if err == nil {
			err = resp.Add(d)
		}
		if err != nil {
			return nil, err
		}
	}
	return resp, resp.Err()
}
