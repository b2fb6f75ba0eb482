package llm

// model.go: Model, Request, Settings, ToolChoice, Delta, Notice, Usage, FinishReason and Complete.

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"github.com/pawl-go/pawl/internal/background"
)

// Model continues a conversation. It is the only contract of a driver. Implementations are the
// adapters of providers (package provider/openai and others), react.New for models without tool
// calls, and script.Model for tests.
//
// Stream sends one request and yields the reply in fragments. The last Delta has Finish set. An
// error ends the sequence. If the caller breaks out of the range or cancels ctx, Stream ends the
// request and releases its resources.
//
// A Model must not change req. It must not keep any part of req after the call, except in a cache.
// A Model must be safe for concurrent use.
type Model interface {
	Stream(ctx context.Context, req *Request) iter.Seq2[Delta, error]
}

// Request is one request to a Model.
type Request struct {
	Key      Key             // the place in the run; never sent
	Model    string          // overrides the Model's own name; "" means no change
	Messages []Message       // instructions first; every call has its result
	Tools    []*ToolSpec     // in a fixed order, so that the request's bytes are stable
	Choice   ToolChoice      // ignored if there are no Tools
	Output   json.RawMessage // JSON Schema that the final text must fit; nil means free text
	Settings Settings        // parameters of the request; the zero value means the model's own
	// Whole asks for an answer without streaming: the caller needs no fragments.
	Whole bool
	// Turn is the index in Messages of the user's last message, where the current turn begins. It
	// is never sent.
	Turn int
	// Edited is the index in Messages before which the beginning of the conversation was edited: a
	// cut, a result put away, a new tool. The replies before it were written after another
	// beginning. An adapter leaves out their reasoning if its provider binds reasoning to what
	// stands before it. It is never sent. 0 means no edit.
	Edited int
	// Summarize asks the provider to summarize Messages, and to answer from the summary, with which
	// the reply begins: see Compactor. A Model without that ability ignores it. It is never sent.
	Summarize bool
	// Background is Delta.Background of an earlier request with this Key. The Model whose provider
	// computes that reply fetches it and sends nothing else; other Models ignore it. nil means no
	// such reply.
	Background *Opaque
}

// KeepReply returns the context of a request whose reply stays at the provider if keeps reports
// true when the request ends early. An engine that has stored Delta.Background fetches the reply
// later, so that the adapter must not cancel it. The Model calls keeps when the request has ended.
func KeepReply(ctx context.Context, keeps func() bool) context.Context {
	return background.With(ctx, keeps)
}

// OutputHolder is an optional ability of a Model.
//
// HoldsOutput reports whether the provider can hold a reply to req.Output while it offers
// req.Tools, or whether the Model asks for the output by its own means. If it returns true,
// req.Output is sent. If it returns false, or if the Model has no such method, a run with tools and
// an output schema offers the tool final_answer instead. Without tools, the output schema is always
// sent. The function As finds the ability through wrappers.
type OutputHolder interface {
	HoldsOutput(req *Request) bool
}

// Settings tune a request. The zero value means the provider's defaults.
type Settings struct {
	// MaxTokens limits the reply. 0 means the provider's default.
	MaxTokens   int      `json:"max_tokens,omitzero"`
	Temperature *float64 `json:"temperature,omitzero"` // nil means the provider's default
	TopP        *float64 `json:"top_p,omitzero"`       // nil means the provider's default
	// StopSequences end the reply when the model writes one of them.
	StopSequences []string `json:"stop,omitzero"`
	// Effort is the reasoning effort, in the provider's words. Empty means the provider's default.
	Effort string `json:"effort,omitzero"`
	// Parallel allows several calls in one reply. Nil means the provider's default.
	Parallel *bool `json:"parallel_calls,omitzero"`
	// Options are JSON objects that are merged into the body unchanged, by provider name: "openai",
	// "openai-chat", "anthropic", "gemini", or the name of a server, such as "groq".
	Options map[string]json.RawMessage `json:"options,omitzero"`
}

// ToolMode is the way in which a model may use tools.
type ToolMode int

// The tool modes. A forced choice (ToolRequired, ToolNamed) applies only to the first request of a
// run; otherwise the run could not end.
const (
	ToolAuto ToolMode = iota // the model decides
	// Text only; the tools stay listed, for the provider's prompt cache.
	ToolNone
	ToolRequired // at least one call
	ToolNamed    // one of Names
)

// ToolChoice controls whether and how a model uses tools. The zero value is ToolAuto.
type ToolChoice struct {
	Mode ToolMode // whether the model may call tools, or must
	// Names holds the allowed tools for ToolNamed: one name, or several if the provider supports
	// it. With another mode they are an error.
	Names []string
}

// Named returns the choice that forces one of names.
func Named(names ...string) ToolChoice { return ToolChoice{ToolNamed, names} }

// Check returns an error if the choice cannot be sent with tools. The error names the tool that is
// not offered, and the tools that are.
func (c ToolChoice) Check(tools []*ToolSpec) error {
	if c.Mode < ToolAuto || c.Mode > ToolNamed {
		return fmt.Errorf("tool choice: the unknown mode %d; use one of the constants, such as ToolAuto", c.Mode)
	}
	if c.Mode != ToolNamed {
		if len(c.Names) > 0 {
			return fmt.Errorf("tool choice: Names need the mode ToolNamed, as in llm.Named(%q)", c.Names[0])
		}
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
	Index int // the part of the message; a new part has the next number, from 0
	// Part holds the bytes to append: Text, Reasoning, Media or ToolCall. Nil means none.
	Part   Part
	Done   bool         // the part at Index is complete: no fragment of it follows
	Usage  *Usage       // the figures so far; the last one counts; nil means no change
	Finish FinishReason // set on the last Delta of a reply only
	Model  string       // the model name that the provider reports; "" means no change
	ID     string       // the provider's id of the reply; "" means no change
	Notice *Notice      // news for observers that is not part of the reply; it becomes an event
	// Background identifies a reply that the provider computes in the background. A caller that
	// stores it can fetch the reply after a restart, with Request.Background. nil means no change.
	Background *Opaque
	// Requests is the number of further requests to a provider, besides the answered request:
	// repeated requests, and requests of a wrapper. The values of all deltas add up. A model that
	// replies without a request yields -1 once. A Model that fails after it has sent a request
	// yields 1 before the error.
	Requests int
}

// Notice is news about a reply or a call that is not part of the conversation: a retry, a decision
// that could not be read, a dropped tool.
type Notice struct {
	Code string `json:"code"` // stable, for programs: "retry", "DecisionExtractionFailed"
	Text string `json:"text"` // for people
	// Data has details, for programs. nil means none.
	Data json.RawMessage `json:"data,omitzero"`
}

// FinishReason is the reason why a reply ended.
type FinishReason string

// The finish reasons. If a provider reports an ordinary stop for a reply with complete calls, the
// reason is FinishReasonToolCalls. FinishReasonLength and FinishReasonContentFilter take precedence
// over it, because the last call may be cut.
const (
	FinishReasonStop          FinishReason = "stop"
	FinishReasonLength        FinishReason = "length"
	FinishReasonToolCalls     FinishReason = "tool_calls"
	FinishReasonContentFilter FinishReason = "content_filter"
	FinishReasonError         FinishReason = "error"
	FinishReasonOther         FinishReason = "other"
)

// Cut reports whether the reply was cut short, so that none of its calls may be executed.
func (f FinishReason) Cut() bool {
	return f == FinishReasonLength || f == FinishReasonContentFilter || f == FinishReasonError
}

// known reports whether f is on the list of finish reasons. An adapter maps any other reason to
// FinishReasonOther.
func (f FinishReason) known() bool {
	switch f {
	case FinishReasonStop, FinishReasonLength, FinishReasonToolCalls,
		FinishReasonContentFilter, FinishReasonError, FinishReasonOther:
		return true
	}
	return false
}

// Usage counts tokens, in the same way for all providers: Input includes the tokens read from or
// written to a cache, and Output includes Reasoning.
type Usage struct {
	Input      int `json:"input"`       // tokens of the request
	Output     int `json:"output"`      // tokens of the reply
	Reasoning  int `json:"reasoning"`   // the part of Output that is reasoning
	CacheRead  int `json:"cache_read"`  // the part of Input that was read from a cache
	CacheWrite int `json:"cache_write"` // the part of Input that was written to a cache
	// CacheWriteLong is the part of CacheWrite with a longer lifetime than the provider's default:
	// 1 hour at Anthropic, 12 hours at OpenAI.
	CacheWriteLong int `json:"cache_write_long,omitzero"`
	// Cost is the known part of the cost, in US dollars: see CostKnown.
	Cost float64 `json:"cost,omitzero"`
	// Priced is the part of Total that Cost covers. 0 means that the cost is unknown.
	Priced int             `json:"priced,omitzero"`
	Raw    json.RawMessage `json:"-"` // the provider's own figures; nil means not stored
}

// CostKnown reports whether Cost is the cost of all tokens. It is true for a free reply. If it is
// false, the true cost may be above Cost.
func (u Usage) CostKnown() bool { return u.Priced >= u.Total() }

// Total returns Input plus Output. The other counts are parts of these two.
func (u Usage) Total() int { return u.Input + u.Output }

// plausible returns u without figures that no reply can have. Negative figures would reduce the
// usage of a budget, and huge or invalid figures could not be stored.
func (u *Usage) plausible() Usage {
	const most = 1 << 30
	c := *u
	for _, n := range []*int{&c.Input, &c.Output, &c.Reasoning, &c.CacheRead, &c.CacheWrite, &c.CacheWriteLong} {
		*n = min(max(*n, 0), most)
	}
	c.Cost = min(c.Cost, most)
	if !(c.Cost >= 0) { // also true for NaN
		c.Cost = 0
	}
	c.Priced = min(max(c.Priced, 0), c.Total())
	if c.Priced == 0 && c.Cost > 0 {
		c.Priced = c.Total() // the provider states the cost
	}
	return c
}

// Add adds the figures of v. Raw is dropped.
func (u *Usage) Add(v Usage) {
	u.Input += v.Input
	u.Output += v.Output
	u.Reasoning += v.Reasoning
	u.CacheRead += v.CacheRead
	u.CacheWrite += v.CacheWrite
	u.CacheWriteLong += v.CacheWriteLong
	u.Cost += v.Cost
	u.Priced += v.Priced
	u.Raw = nil
}

// Plus returns the sum of u and v, without Raw.
func (u Usage) Plus(v Usage) *Usage {
	u.Add(v)
	return &u
}

// Complete sends one request to m and returns the whole reply. It sets Whole on a copy of req, so
// that the adapter answers without streaming. With an error, the reply is what came before the
// error, and never nil. Calls are not executed: see Agent.Once and Agent.Run.
func Complete(ctx context.Context, m Model, req *Request) (*Response, error) {
	whole := *req
	whole.Whole = true
	resp := new(Response)
	for d, err := range m.Stream(ctx, &whole) {
		if err == nil {
			err = resp.Add(d)
		}
		if err != nil {
			return resp, err
		}
	}
	return resp, resp.Err()
}
