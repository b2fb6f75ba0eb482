// Package leak finds tool calls that a model with function calling wrote as text, and turns them
// into calls.
//
//	agent := &pawl.Agent{Model: m, Tools: tools, Middleware: []pawl.Middleware{leak.Calls()}}
//
// Servers turn a model's own call marks into calls. If the template, the parser or the model has a
// fault, the marks arrive as text, the run ends, and the user reads <tool_call>{"name": …}. Calls
// is the middleware against that. It knows the marks of the common families (Hermes and Qwen,
// Llama, Mistral, DeepSeek, GLM, Kimi, Granite, Phi, Cohere, InternLM, Gemma and gpt-oss, and the
// marks of Claude-like models), fenced {"name", "arguments"}, and replies that are one such object.
//
// It never guesses. A call must stand in such marks, name an offered tool, and have arguments that
// can be read as an object; marks with other content stay text. A reply with real calls, and a cut
// reply, pass unchanged. The pipeline validates the arguments, as for every call.
package leak

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// NoticeLeaked is the code of the notice about calls that were found in text.
const NoticeLeaked = "calls_leaked"

// Calls returns the middleware that turns calls written as text into calls. Text that cannot begin
// a call streams without delay.
func Calls() pawl.Middleware {
	return pawl.Middleware{Model: func(m llm.Model) llm.Model { return model{m} }}
}

type model struct{ inner llm.Model }

// Unwrap returns the inner model.
func (m model) Unwrap() llm.Model { return m.inner }

// Stream asks the inner model, and holds back what may be a call until it is known.
func (m model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	if len(req.Tools) == 0 {
		return m.inner.Stream(ctx, req)
	}
	return func(yield func(llm.Delta, error) bool) {
		f := filter{tools: req.Tools, at: map[int]int{}, yield: yield}
		for d, err := range m.inner.Stream(ctx, req) {
			if err != nil {
				yield(llm.Delta{}, err)
				return
			}
			if !f.add(d) {
				return
			}
		}
	}
}

// filter passes deltas on, but for text that may be a call.
type filter struct {
	tools []*llm.ToolSpec
	yield func(llm.Delta, error) bool
	at    map[int]int // the inner model's parts to ours
	next  int         // our next part

	held  strings.Builder // of the text part at hand, not passed on
	part  int             // that part, of the inner model's
	holds bool
	calls bool // the reply has real calls: nothing is looked for
	left  bool // the consumer stopped
}

func (f *filter) add(d llm.Delta) bool {
	if _, isCall := d.Part.(llm.ToolCall); isCall {
		f.calls = true
	}
	// A reply with real calls is understood by the server, and a cut reply has calls that may not
	// be whole: in both, marks stay text.
	if f.holds && f.endsText(d) {
		f.flush(!f.calls && !d.Finish.Cut())
	}

	text, isText := d.Part.(llm.Text)
	seals := d.Part == nil && d.Done
	switch {
	case isText && text.Opaque == nil && !f.calls:
		f.hold(d.Index, text.Text)
		d.Part = nil
		d.Done = false
		if saysNothing(d) {
			return !f.left
		}
	case seals && f.holds && d.Index == f.part:
		return !f.left // sealed when it is flushed
	}
	// Parts are numbered again, because a held text may become several parts, or none.
	if d.Part != nil || d.Done {
		d.Index = f.index(d.Index)
	}
	f.send(d)
	return !f.left
}

// endsText reports whether the text at hand is complete before d.
func (f *filter) endsText(d llm.Delta) bool {
	_, isText := d.Part.(llm.Text)
	more := isText && d.Index == f.part
	return d.Finish != "" || d.Part != nil && !more
}

// hold adds a fragment of part i to the text at hand, and passes on what cannot be a call.
func (f *filter) hold(i int, text string) {
	if !f.holds {
		f.part = i
		f.holds = true
	}
	f.held.WriteString(text)
	f.release()
}

// saysNothing reports whether nothing is left of a delta after its text was taken out.
func saysNothing(d llm.Delta) bool {
	aboutReply := d.Usage != nil || d.Finish != "" || d.Requests != 0
	aboutModel := d.Model != "" || d.ID != ""
	return !aboutReply && !aboutModel && d.Notice == nil
}

// index returns our number of the inner model's part i.
func (f *filter) index(i int) int {
	n, ok := f.at[i]
	if !ok {
		n = f.next
		f.at[i] = n
		f.next++
	}
	return n
}

func (f *filter) send(d llm.Delta) {
	if !f.left && !f.yield(d, nil) {
		f.left = true
	}
}

// release passes on the held text up to where a call may begin.
func (f *filter) release() {
	s := f.held.String()
	n := mayBegin(s, !f.began())
	if n == 0 {
		return
	}
	f.held.Reset()
	f.held.WriteString(s[n:])
	f.send(llm.Delta{Index: f.index(f.part), Part: llm.Text{Text: s[:n]}})
}

func (f *filter) began() bool { _, ok := f.at[f.part]; return ok }

// flush ends the text at hand: with look, the calls in it are made.
func (f *filter) flush(look bool) {
	s := f.held.String()
	f.held.Reset()
	f.holds = false
	rest := s
	calls := []llm.ToolCall(nil)
	if look {
		rest, calls = find(s, f.tools, !f.began())
	}

	// A part that was begun must be ended, also with an empty text. A reply that only had an empty
	// text keeps it.
	if rest != "" || f.began() {
		f.send(llm.Delta{Index: f.index(f.part), Part: llm.Text{Text: rest}, Done: true})
	} else if len(calls) == 0 {
		f.send(llm.Delta{Index: f.index(f.part), Part: llm.Text{}, Done: true})
	}
	if len(calls) == 0 {
		return
	}

	f.send(llm.Delta{Notice: &llm.Notice{
		Code: NoticeLeaked,
		Text: fmt.Sprintf("made %d of what the model wrote as text: %s", len(calls), calls[0].Name),
		Data: json.RawMessage(fmt.Sprintf(`{"calls":%d}`, len(calls))),
	}})
	for _, c := range calls {
		f.send(llm.Delta{Index: f.next, Part: c, Done: true})
		f.next++
	}
}

// Find returns the calls to tools in text, and the text without them, trimmed. Text without calls
// is returned unchanged.
func Find(text string, tools []*llm.ToolSpec) (rest string, calls []llm.ToolCall) {
	return find(text, tools, true)
}
