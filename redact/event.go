package redact

import (
	"bytes"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/llm/derivation"
	"github.com/pawl-go/pawl/redact/internal/secret"
)

// watch redacts the events of one run. It hides the values of secret arguments from the call on.
type watch struct {
	*redaction
	redactor *Redactor
	base     *redaction // of the Redactor, at the time when redaction was made
	marks    map[string]*mark
	learnt   []string
	parts    []*partText
	seq      int64
}

const (
	minLearnt = 6   // the least bytes of an argument that is also hidden elsewhere
	maxLearnt = 256 // the most arguments of a run that are hidden elsewhere
)

// partText is a part of a reply that arrives in fragments.
type partText struct {
	last   pawl.Event // the last fragment, without its text
	stream *secret.Stream
	whole  []byte // arguments that are emitted when they are complete
}

// current updates the set of hidden values.
func (w *watch) current() {
	base := w.redactor.now()
	if base == w.base {
		return
	}
	w.base = base
	w.rebuild()
}

func (w *watch) rebuild() {
	w.redaction = w.base
	if len(w.learnt) == 0 && len(w.marks) == 0 {
		return
	}
	x := w.base.clone()
	x.mark(w.marks)
	x.learn(formsOf(w.learnt))
	w.redaction = x
}

func formsOf(secrets []string) (forms []string) {
	for _, s := range secrets {
		forms = append(forms, secret.Forms(s)...)
	}
	return forms
}

// learn records the secret arguments of a call.
func (w *watch) learn(c *llm.ToolCall) {
	n := len(w.learnt)
	w.learnt = w.toLearn(c, w.learnt)
	if len(w.learnt) > n {
		w.rebuild()
	}
}

// toLearn appends the secret arguments of a call to the known ones.
func (x *redaction) toLearn(c *llm.ToolCall, known []string) []string {
	m := x.markOf(c.Name)
	if m == nil {
		return known
	}
	for _, s := range x.secretsIn(c.Args, m) {
		switch {
		case len(known) >= maxLearnt:
			return known
		case len(s) < minLearnt, s == secret.Mask, slices.Contains(known, s):
		default:
			known = append(known, s)
		}
	}
	return known
}

func (w *watch) learnMessages(msgs []llm.Message) {
	if w.redaction == nil || len(w.redaction.marks) == 0 {
		return
	}
	if w.base == nil {
		w.base = w.redaction
	}
	for _, m := range msgs {
		for _, c := range m.Calls() {
			w.learn(&c)
		}
	}
}

// emit redacts e, and yields it after the text that was held back before it. It reports whether the
// consumer wants more.
func (w *watch) emit(e pawl.Event, yield func(pawl.Event) bool) bool {
	w.current()
	if e.Kind == pawl.EventRunStarted && len(e.Offered) > 0 {
		w.addMarks(marksOf(e.Offered))
	}

	more := true
	// Events get new numbers: held text is released as events of its own, and consumers expect
	// numbers without gaps.
	send := func(e pawl.Event) {
		if more {
			w.seq++
			e.Seq = w.seq
			more = yield(e)
		}
	}
	if w.redaction == nil {
		send(e)
		return more
	}

	switch e.Kind {
	case pawl.EventText, pawl.EventReasoning, pawl.EventCallDelta:
		send(w.fragment(e))
		return more
	case pawl.EventCallReady:
		// The call is complete, so that its marked arguments are known. Later events and texts are
		// searched for them too.
		w.learn(e.Call)
		w.flush(e.Run, send, func(p *partText) bool { return p.is(pawl.EventCallDelta, e.Index) })
	case pawl.EventTextRetracted:
		w.flush(e.Run, send, func(p *partText) bool {
			isProse := p.is(pawl.EventText, e.Index) || p.is(pawl.EventReasoning, e.Index)
			return isProse || p.is(pawl.EventCallDelta, e.Index)
		})
	case pawl.EventResponseReceived, pawl.EventRequestStarted, pawl.EventStep, pawl.EventRunEnded:
		w.flush(e.Run, send, func(*partText) bool { return true })
	}
	send(w.event(e))
	return more
}

// addMarks adds the marks of the tools of the run.
func (w *watch) addMarks(marks map[string]*mark) {
	if len(marks) == 0 {
		return
	}
	x := redaction{marks: w.marks}
	x.mark(marks)
	w.marks = x.marks
	w.rebuild()
}

// is reports whether p is a part of this kind at this place of the reply.
func (p *partText) is(kind pawl.EventKind, index int) bool {
	return p.last.Kind == kind && p.last.Index == index
}

// fragment returns e with the text that may be emitted.
func (w *watch) fragment(e pawl.Event) pawl.Event {
	p := w.part(e)
	text := e.Text
	e.Call = apply(e.Call, w.call)
	e.Text = ""
	p.last = e

	if e.Kind == pawl.EventCallDelta && len(w.redaction.marks) > 0 {
		// Marked arguments, and arguments of a tool that is not known yet, are held as a whole.
		named := e.Call.Name != ""
		marked := w.markOf(e.Call.Name) != nil
		if p.whole != nil || !named || marked {
			p.whole = append(p.whole, text...)
			if !named || marked {
				return e
			}
			text = string(p.whole) // the name arrived late
			p.whole = nil
		}
	}
	e.Text = p.stream.Write(text)
	return e
}

// part returns the part that the fragment e belongs to.
func (w *watch) part(e pawl.Event) *partText {
	for _, p := range slices.Backward(w.parts) {
		if p.last.Run == e.Run && p.is(e.Kind, e.Index) {
			return p
		}
	}
	p := &partText{stream: w.find.Stream()}
	w.parts = append(w.parts, p)
	return p
}

// flush emits the held text of the parts of run that are complete.
func (w *watch) flush(run llm.Key, send func(pawl.Event), complete func(*partText) bool) {
	w.parts = slices.DeleteFunc(w.parts, func(p *partText) bool {
		if p.last.Run != run || !complete(p) {
			return false
		}
		e := p.last
		e.Text = p.stream.Flush()
		if p.whole != nil {
			e.Text = string(w.json(p.whole, w.markOf(e.Call.Name)))
		}
		if e.Text != "" {
			send(e)
		}
		return true
	})
}

// event returns e without secrets. It does not handle fragments.
func (w *watch) event(e pawl.Event) pawl.Event {
	switch e.Kind {
	case pawl.EventCallStarted:
		w.learn(e.Call)
	case pawl.EventCallCompleted:
		w.learn(&e.Execution.Call)
	case pawl.EventResponseReceived:
		w.learnMessages([]llm.Message{e.Response.Message})
	}

	// Every field that can contain a text. A field that is added to Event needs a line here.
	e.Agent = w.text(e.Agent)
	e.Model = w.text(e.Model)
	e.Text = w.text(e.Text)
	e.Error = w.text(e.Error)
	e.Data = w.json(e.Data, nil)
	e.Spent = apply(e.Spent, w.spent)
	e.Call = apply(e.Call, w.call)
	e.Response = apply(e.Response, w.response)
	e.Execution = apply(e.Execution, w.execution)
	e.Message = apply(e.Message, w.message)
	if e.Result != nil {
		w.learnMessages(e.Result.Messages)
		e.Result = apply(e.Result, w.result)
	}
	e.Completed = apply(e.Completed, w.step)
	return e
}

// apply returns f of what p points to. A nil pointer stays nil.
func apply[T any](p *T, f func(T) T) *T {
	if p == nil {
		return nil
	}
	v := f(*p)
	return &v
}

// applyAll returns f of each element. A nil slice stays nil.
func applyAll[T any](list []T, f func(T) T) []T {
	list = slices.Clone(list)
	for i, v := range list {
		list[i] = f(v)
	}
	return list
}

func (x *redaction) call(c llm.ToolCall) llm.ToolCall {
	c.Args = x.json(c.Args, x.markOf(c.Name))
	c.ID = x.text(c.ID)
	c.Name = x.text(c.Name)
	c.Opaque = x.opaque(c.Opaque)
	return c
}

func (x *redaction) opaque(o *llm.Opaque) *llm.Opaque {
	if o == nil {
		return nil
	}
	if data := x.json(o.Data, nil); !bytes.Equal(data, o.Data) {
		o = &llm.Opaque{Provider: o.Provider, Data: data}
	}
	return o
}

func (x *redaction) response(r llm.Response) llm.Response {
	return llm.Response{
		Message: x.message(r.Message),
		Finish:  r.Finish,
		Usage:   x.usage(r.Usage),
		Model:   x.text(r.Model),
		ID:      x.text(r.ID),
	}
}

func (x *redaction) usage(u llm.Usage) llm.Usage {
	u.Raw = x.json(u.Raw, nil)
	return u
}

func (x *redaction) spent(s pawl.Spent) pawl.Spent {
	s.Usage = x.usage(s.Usage)
	return s
}

func (x *redaction) message(m llm.Message) llm.Message {
	m.Parts = applyAll(m.Parts, x.part)
	return m
}

func (x *redaction) part(p llm.Part) llm.Part {
	switch p := p.(type) {
	case llm.Text:
		return llm.Text{Text: x.text(p.Text), Opaque: x.opaque(p.Opaque), Label: x.label(p.Label)}
	case llm.Reasoning:
		return llm.Reasoning{Text: x.text(p.Text), Opaque: x.opaque(p.Opaque)}
	case llm.Media:
		p.URL = x.text(p.URL)
		p.Label = x.label(p.Label)
		// Most media are large and have no secret, so that they are not copied.
		if x.find.Find(string(p.Data)) {
			p.Data = []byte(x.text(string(p.Data)))
		}
		return p
	case llm.ToolCall:
		return x.call(p)
	case llm.ToolResult:
		return x.toolResult(p)
	case llm.Decision:
		return x.decision(p, nil)
	}
	return p
}

// label redacts sources and readers: a model may call a tool by any name, and a reader may be an
// address.
func (x *redaction) label(l *llm.Label) *llm.Label {
	if l == nil {
		return nil
	}

	hidden := *l
	hidden.From = applyAll(l.From, func(s llm.Source) llm.Source {
		return llm.Source{Kind: x.text(s.Kind), Name: x.text(s.Name)}
	})
	hidden.Readers = applyAll(l.Readers, x.text)
	return &hidden
}

func (x *redaction) toolResult(r llm.ToolResult) llm.ToolResult {
	r.Label = x.label(r.Label)
	r.Parts = applyAll(r.Parts, x.part)
	r.CallID = x.text(r.CallID)
	r.Data = x.json(r.Data, nil)
	return r
}

// decision hides the fields that m marks in the arguments that a person set.
func (x *redaction) decision(d llm.Decision, m *mark) llm.Decision {
	d.By = x.text(d.By)
	d.Identity = x.text(d.Identity)
	d.Reason = x.text(d.Reason)
	d.Args = x.json(d.Args, m)
	d.Result = apply(d.Result, x.toolResult)
	return d
}

func (x *redaction) execution(e pawl.Execution) pawl.Execution {
	m := x.markOf(e.Call.Name)
	e.Call = x.call(e.Call)
	e.Result = x.toolResult(e.Result)
	e.Error = x.text(e.Error)
	e.Spent = x.spent(e.Spent)
	e.Pending = applyAll(e.Pending, x.waiting)
	e.Values = x.values(e.Values)
	e.Repairs = applyAll(e.Repairs, func(s string) string { return x.repair(s, m) })
	e.Decision = apply(e.Decision, func(d llm.Decision) llm.Decision { return x.decision(d, m) })
	e.Derivations = applyAll(e.Derivations, func(d derivation.Value) derivation.Value { return x.derivation(d, m) })
	e.SetErr(x.error(e.Err()))
	return e
}

// derivation hides secrets in why a value needed no question.
func (x *redaction) derivation(d derivation.Value, m *mark) derivation.Value {
	if m != nil {
		if of := m.inside(d.Arg); of != nil && of.whole {
			d.Value = secret.Mask
		}
	}
	d.Arg = x.text(d.Arg)
	d.Value = x.text(d.Value)
	d.Call = x.text(d.Call)
	d.Name = x.text(d.Name)
	return d
}

// repair hides the details of the repair of a marked field.
func (x *redaction) repair(s string, m *mark) string {
	field, _, ok := strings.Cut(s, ": ")
	if !ok || m == nil {
		return x.text(s)
	}
	for name := range strings.FieldsFuncSeq(field, func(c rune) bool { return c == '.' || c == '[' }) {
		m = m.inside(strings.TrimSuffix(name, "]"))
		if m != nil && m.whole {
			return x.text(field) + ": " + secret.Mask
		}
	}
	return x.text(s)
}

func (x *redaction) doubt(d pawl.Doubt) pawl.Doubt {
	d.Class = x.text(d.Class)
	d.Arg = x.text(d.Arg)
	d.Value = x.text(d.Value)
	d.Source = x.text(d.Source)
	d.Sentence = x.text(d.Sentence)
	d.Said = x.text(d.Said)
	return d
}

func (x *redaction) waiting(p pawl.PendingCall) pawl.PendingCall {
	p.Call = x.call(p.Call)
	p.Why = x.text(p.Why)
	p.Doubts = applyAll(p.Doubts, x.doubt)
	p.Schema = x.json(p.Schema, nil)
	p.Granted = applyAll(p.Granted, func(d llm.Decision) llm.Decision { return x.decision(d, nil) })
	return p
}

func (x *redaction) values(vs pawl.Values) pawl.Values {
	if vs == nil {
		return nil
	}
	out := make(pawl.Values, len(vs))
	for name, v := range vs {
		out[name] = x.json(v, nil)
	}
	return out
}

func (x *redaction) step(s pawl.Step) pawl.Step {
	return pawl.Step{
		Response:   apply(s.Response, x.response),
		Error:      x.text(s.Error),
		Executions: append([]pawl.Execution{}, applyAll(s.Executions, x.execution)...),
	}
}

func (x *redaction) result(r pawl.Result) pawl.Result {
	r.Messages = applyAll(r.Messages, x.message)
	r.Unread = applyAll(r.Unread, x.message)
	r.Steps = append([]pawl.Step{}, applyAll(r.Steps, x.step)...)
	r.Cause = x.text(r.Cause)
	r.Interrupted = x.text(r.Interrupted)
	r.Pending = applyAll(r.Pending, x.waiting)
	r.Values = x.values(r.Values)
	r.Output = x.json(r.Output, nil)
	r.Spent = x.spent(r.Spent)
	r.Repairs = applyAll(r.Repairs, x.text)
	r.Unfit = applyAll(r.Unfit, x.text)
	r.Answer = apply(r.Answer, x.answer)
	return r
}

func (x *redaction) answer(a pawl.Answer) pawl.Answer {
	if a.From == pawl.AnswerOutput {
		a.Text = string(x.json([]byte(a.Text), nil)) // equal to Output
	} else {
		a.Text = x.text(a.Text)
	}
	return a
}
