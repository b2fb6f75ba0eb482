// Package react lets a model that only writes text use tools: New makes a llm.Model over a
// llm.Model without function calling.
//
//	m := react.New(openai.NewChat("a-small-model", &openai.Options{BaseURL: url}), nil)
//	agent := &pawl.Agent{Model: m, Tools: []pawl.Toolset{weather}}
//
// Each request asks for one decision: why (thought), what (call_tool or final_answer), and the tool
// with its arguments or the answer. The text is read, the decision is checked, and the reply has
// the form of a model with function calling:
//
//	request ─▶ prompt, history as text ─▶ text ─▶ read ─▶ check ─▶ Reasoning, ToolCall | Text
//	                     ▲                          │       │
//	                     └──────── the faults ──────┴───────┘
//
// After MaxRetries faults, the request fails with *DecisionError.
//
// So the transcript is neutral: calls and results as everywhere, thoughts as Reasoning. A run may
// begin with one driver and continue with another. Only the request is text: the call of a reply as
// thought and action, its result as a message of the user that begins "Observation: ".
//
// Models write messy text, and Read accepts it: fences around everything, prose before and after,
// Markdown in labels, arguments as text inside JSON. It does not accept inventions: text after the
// first action was written before its result was known, so it is cut there, and an observation that
// the model wrote itself is never used.
//
// An answer is emitted while it is written, in formats JSON and XML, where its beginning shows that
// the reply is an answer.
//
// A decision that cannot be read or executed emits a notice, DecisionExtractionFailed or
// DecisionValidationFailed, and the model receives its faults, such as an unknown tool or bad
// arguments. With Lenient the latter are calls, which the pipeline answers.
package react

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

// Codes of a Model's notices. Their Data is {"attempt","attempts","faults","reply"}, and {"notes"}
// for NoticeMended.
const (
	NoticeExtraction = "DecisionExtractionFailed" // a reply held no decision
	NoticeValidation = "DecisionValidationFailed" // a decision could not be executed
	NoticeMended     = "DecisionMended"           // a decision was repaired, or cut after its end
)

// Format is how decisions are written.
type Format string

// The formats. All but Plain show the history as Thought, Action, Action Input and Observation, XML
// with tags for the first three.
const (
	JSON  Format = "json"  // one JSON object: thought, type, tool, args, answer
	Text  Format = "text"  // Thought: … Action: … Action Input: … or Final Answer: …
	XML   Format = "xml"   // <thought>, <tool>, <args>, <answer>
	Plain Format = "plain" // Calling tool: NAME with args: {…}; any other reply is the answer
)

// Formats returns all formats, the default first.
func Formats() []Format { return []Format{JSON, Text, XML, Plain} }

// Options tune a Model. Nil, and every zero field, stands for the default.
type Options struct {
	Format Format // how decisions are written; empty means JSON

	// MaxRetries is the number of retries after a bad decision. 0 means 2, negative means none.
	MaxRetries int

	// Parallel allows several calls in one decision. If it is false, all after the first are cut
	// off.
	Parallel bool

	// Lenient makes calls of unknown tools and of bad arguments, which the pipeline answers as in
	// native calling.
	Lenient bool

	// Enforce sends the decision's JSON Schema as the request's Output, for providers that hold a
	// model to a schema. It is for format JSON only.
	Enforce bool

	// Prompt replaces the page that describes how to decide: a text/template over PromptData, in
	// which {{template "tools" .}} lists the tools. Empty means the page of the format.
	Prompt string

	// Decision replaces the form of a decision. It is for format JSON only. Nil means the five
	// fields.
	Decision *Form

	// FinalViaInference asks once more, over the whole conversation, when the model has decided to
	// answer; this reply is the answer.
	FinalViaInference bool
	// FinalModel is the model that writes the answer. Nil means the model of the other requests.
	FinalModel llm.Model
	// FinalSettings are the settings of that request. Nil means the settings of the other requests.
	FinalSettings *llm.Settings
}

// Model is a llm.Model over a model that only writes text. It may be used concurrently.
type Model struct {
	inner llm.Model
	opts  Options
	page  page
	err   error // a fault of the options, returned by the first request
}

var (
	_ llm.Model        = (*Model)(nil)
	_ llm.OutputHolder = (*Model)(nil)
	_ llm.Pricer       = (*Model)(nil)
)

// New returns a Model over model. A fault in opts, which may be nil, is the error of its first
// request.
func New(model llm.Model, opts *Options) *Model {
	m := &Model{inner: model}
	m.opts = *cmp.Or(opts, new(Options))
	o := &m.opts
	o.Format = cmp.Or(o.Format, JSON)
	o.MaxRetries = cmp.Or(o.MaxRetries, 2)
	switch {
	case !slices.Contains(Formats(), o.Format):
		m.err = fmt.Errorf("react: unknown format %q; known: %v", o.Format, Formats())
	// Both need a schema of the reply, which only JSON has.
	case o.Format != JSON && (o.Decision != nil || o.Enforce):
		m.err = fmt.Errorf("react: Decision and Enforce are for format %s, not for %s", JSON, o.Format)
	case o.Decision != nil && o.Decision.Read == nil:
		m.err = fmt.Errorf("react: Decision has no Read")
	default:
		m.page, m.err = newPage(o)
	}
	return m
}

// Unwrap returns the inner model.
func (m *Model) Unwrap() llm.Model { return m.inner }

// Compact reports that no provider shortens the conversation: it is sent as text, which cannot hold
// a provider's summary.
func (m *Model) Compact(*llm.Request, int) (r *llm.Request, ok bool) { return nil, false }

// Compacted reports that no part is a provider's summary.
func (m *Model) Compacted(llm.Part) bool { return false }

// MaxCost returns the cost of all attempts at one decision, with the final answer. It is unknown if
// the price of the inner model or of Options.FinalModel is.
func (m *Model) MaxCost(req *llm.Request) (dollars float64, known bool) {
	p, ok := llm.As[llm.Pricer](m.inner)
	if !ok {
		return 0, false
	}
	dollars, known = p.MaxCost(req)
	// One attempt and its retries, and one request for the answer.
	dollars *= float64(max(0, m.opts.MaxRetries) + 2)
	if m.opts.FinalModel == nil || !known {
		return dollars, known
	}
	p, ok = llm.As[llm.Pricer](m.opts.FinalModel)
	if !ok {
		return 0, false
	}
	final, known := p.MaxCost(req)
	return dollars + final, known
}

// HoldsOutput reports true: the page on decisions has the schema of the answer, with any tools.
func (m *Model) HoldsOutput(*llm.Request) bool { return true }

// Stream asks until it gets an executable decision, and yields it as a reply: the thought as
// Reasoning, the calls as calls, the answer as text. Usage is the sum of all requests. It fails
// with *DecisionError if no attempt gave a decision, or with the error of the inner model.
func (m *Model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		if m.err != nil {
			yield(llm.Delta{}, m.err)
			return
		}
		out := &reply{yield: yield}
		err := m.run(ctx, req, out)
		if err == nil || err == errLeft {
			return
		}
		// Rejected attempts cost money too, although no reply came of them.
		_, counted := err.(*DecisionError) // it has the usage
		if !counted && out.replies > 0 {
			err = cmp.Or(out.send(llm.Delta{Usage: &out.usage, Requests: out.replies}), err)
		}
		if err != errLeft {
			yield(llm.Delta{}, err)
		}
	}
}

// run makes one reply.
func (m *Model) run(ctx context.Context, req *llm.Request, out *reply) error {
	started := time.Now()
	inner, err := m.request(req)
	if err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		// Each attempt has a key of its own: an engine would return the stored reply of the first
		// to all of them.
		if attempt > 1 && req.Key != "" {
			inner.Key = req.Key + llm.Key("/retry"+strconv.Itoa(attempt-1))
		}
		early := m.earlyAnswer(req, out)
		resp, err := out.ask(ctx, m.inner, inner, early.part())
		if err != nil {
			return err
		}
		text := resp.Message.Text()
		// The provider has ended the reply, and would end the next one too.
		if m.isBroken(resp) {
			return out.finish(resp, llm.Text{Text: text})
		}

		stage, d, calls, faults := m.decide(req, resp)
		if stage == "" {
			return m.accept(ctx, req, resp, d, calls, early, out)
		}
		attempts := max(0, m.opts.MaxRetries) + 1
		if err := out.reject(stage, attempt, attempts, faults, text); err != nil {
			return err
		}
		if attempt >= attempts {
			return &DecisionError{
				Stage:    stage,
				Attempts: attempt,
				Faults:   faults,
				Reply:    text,
				Usage:    out.usage,
				Key:      req.Key,
				started:  started,
				ended:    time.Now(),
			}
		}

		// The model sees its faulty reply and what is wrong with it. Neither enters the transcript.
		if text != "" {
			inner.Messages = append(inner.Messages, llm.Assistant(llm.Text{Text: text}))
		}
		inner.Messages = append(inner.Messages, llm.User(m.page.retry(faults, resp.Finish.Cut())))
		// The background has the reply that was rejected.
		inner.Background = nil
	}
}

// isBroken reports whether the provider ended a reply, which is no answer yet, by a filter or an
// error.
func (m *Model) isBroken(resp *llm.Response) bool {
	switch resp.Finish {
	case llm.FinishReasonContentFilter, llm.FinishReasonError:
		return m.opts.FinalViaInference || !m.answers(resp.Message.Text())
	}
	return false
}

// accept makes the reply of a decision that can be used.
func (m *Model) accept(ctx context.Context, req *llm.Request, resp *llm.Response, d Decision,
	calls []llm.ToolCall, early *earlyAnswer, out *reply) error {
	if len(d.Notes) > 0 {
		if err := out.notice(NoticeMended, d.Notes[0], map[string]any{"notes": d.Notes}); err != nil {
			return err
		}
	}
	if early.started() {
		return early.finish(resp, d)
	}
	return m.finish(ctx, req, resp, d, calls, out)
}

// reject emits the notice of a decision that cannot be used.
func (r *reply) reject(stage string, attempt, attempts int, faults []string, text string) error {
	code := NoticeExtraction
	if stage == Validation {
		code = NoticeValidation
	}
	return r.notice(code, faults[0], map[string]any{
		"attempt":  attempt,
		"attempts": attempts,
		"faults":   faults,
		"reply":    clip(text, 2000),
	})
}

// request is what the inner model is asked: the prompt, and the conversation as text.
func (m *Model) request(req *llm.Request) (*llm.Request, error) {
	inner := &llm.Request{Key: req.Key, Model: req.Model, Settings: req.Settings, Whole: req.Whole,
		Background: req.Background}
	inner.Settings.Parallel = nil // about native calls
	schema := m.schema(req)
	prompt, err := m.page.prompt(req, schema)
	if err != nil {
		return nil, err
	}
	inner.Messages = m.opts.Format.history(takenBy(m.inner, req), prompt)
	if hint := choiceHint(req); hint != "" {
		inner.Messages = append(inner.Messages, llm.User(hint))
	}
	// The server then forces the form of a decision, where it can.
	if m.opts.Enforce {
		inner.Output = schema
	}
	return inner, nil
}

// decide reads and checks a reply. stage is empty if its calls or its answer can be used; otherwise
// faults has the reasons.
func (m *Model) decide(req *llm.Request, resp *llm.Response) (stage string, d Decision, calls []llm.ToolCall,
	faults []string) {
	d, err := m.read(resp.Message.Text())
	// Models forget the form and write only the JSON that the task asks for. It is read after
	// decisions, which are the stronger evidence.
	if err != nil || d.Type != CallTool && d.Type != FinalAnswer {
		if answer, ok := m.bareAnswer(req, resp.Message.Text()); ok {
			d = answer
			err = nil
		}
	}
	if err != nil {
		return Extraction, d, nil, []string{err.Error()}
	}
	if len(d.More) > 0 && !m.opts.Parallel {
		d.More = nil
		d.Notes = append(d.Notes, "cut off the calls after the first")
	}
	calls, faults = m.check(req, &d)
	if len(faults) > 0 {
		stage = Validation
	}
	return stage, d, calls, faults
}

// bareAnswer reads a reply that is one JSON value and no decision. It is the answer if it fits the
// requested output, or if it is a string and no output is requested.
func (m *Model) bareAnswer(req *llm.Request, text string) (d Decision, ok bool) {
	_, text = cutThinking(text)
	text = strings.TrimSpace(text)
	if loc := fenceOpen.FindStringIndex(text); loc != nil {
		text = strings.TrimSpace(strings.TrimSuffix(text[loc[1]:], "```"))
	}
	if m.opts.Decision != nil || !json.Valid([]byte(text)) {
		return d, false
	}
	d = Decision{Type: FinalAnswer, Answer: text, Notes: []string{"read the JSON of the reply as the answer"}}
	if len(req.Output) == 0 {
		return d, json.Unmarshal([]byte(text), &d.Answer) == nil
	}
	form := llm.ToolSpec{Name: "answer", Input: req.Output, NoRepair: true}
	return d, text[0] != '{' || form.Validate(json.RawMessage(text)) == nil
}

// answers reports whether text is an answer, or the certain beginning of an answer.
func (m *Model) answers(text string) bool {
	d, err := m.read(text)
	return err == nil && d.Type == FinalAnswer && strings.TrimSpace(d.Answer) != ""
}

func (m *Model) read(text string) (Decision, error) {
	if f := m.opts.Decision; f != nil {
		return readForm(text, f)
	}
	return Read(text, m.opts.Format)
}

// finish makes the reply of a decision.
func (m *Model) finish(ctx context.Context, req *llm.Request, resp *llm.Response, d Decision,
	calls []llm.ToolCall, out *reply) error {
	own, _ := splitThinking(resp.Message)
	parts := thoughts(own, d.Thought)
	if len(calls) > 0 {
		for _, c := range calls {
			parts = append(parts, c)
		}
		return out.finish(resp, parts...)
	}
	if !m.opts.FinalViaInference {
		return out.finish(resp, append(parts, llm.Text{Text: d.Answer})...)
	}

	// The thoughts are sent before the answer is asked for, so that a reader need not wait for
	// both.
	if err := out.parts(parts...); err != nil {
		return err
	}
	return m.finalAnswer(ctx, req, out)
}

// finalAnswer asks for the answer in a request of its own, which may go to another model, and sends
// what it says.
func (m *Model) finalAnswer(ctx context.Context, req *llm.Request, out *reply) error {
	final := &llm.Request{Model: req.Model, Output: req.Output, Settings: req.Settings, Whole: req.Whole}
	final.Settings.Parallel = nil
	if req.Key != "" {
		final.Key = req.Key + "/final"
	}

	model := m.inner
	// The name in the request belongs to the other model.
	if m.opts.FinalModel != nil {
		model = m.opts.FinalModel
		final.Model = ""
	}
	if m.opts.FinalSettings != nil {
		final.Settings = *m.opts.FinalSettings
	}

	final.Messages = req.Messages
	final.Messages = m.opts.Format.history(takenBy(model, final), m.page.final())
	resp, err := out.ask(ctx, model, final, out.texts)
	if err != nil {
		return err
	}
	return out.finish(resp)
}

// ownReasoning marks reasoning of the model outside of its decision. It is shown, and not sent
// back.
var ownReasoning = &llm.Opaque{Provider: "react", Data: json.RawMessage(`"own"`)}

func clip(s string, n int) string { return text.Clip(s, n) }
