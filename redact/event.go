package redact

import (
	"bytes"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
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
		if len(s) >= minLearnt && len(known) < maxLearnt && s != secret.Mask && !slices.Contains(known, s) {
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

// tell redacts e, and yields it after the text that was held back before it.
func (w *watch) tell(e pawl.Event, yield func(pawl.Event) bool) bool {
	w.current()
	if e.Kind == pawl.EventRunStarted && len(e.Offered) > 0 {
		if marks := marksOf(e.Offered); len(marks) > 0 {
			x := redaction{marks: w.marks}
			x.mark(marks)
			w.marks = x.marks
			w.rebuild()
		}
	}
	more := true
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
		w.learn(e.Call)
		w.end(e.Run,
			func(p *partText) bool { return p.last.Index == e.Index && p.last.Kind == pawl.EventCallDelta }, send)
	case pawl.EventTextRetracted:
		w.end(e.Run, func(p *partText) bool { return p.last.Index == e.Index && p.last.Kind == pawl.EventText }, send)
	case pawl.EventResponseReceived, pawl.EventRequestStarted, pawl.EventStep, pawl.EventRunEnded:
		w.end(e.Run, func(*partText) bool { return true }, send)
	}
	send(w.event(e))
	return more
}

// fragment returns e with the text that may be emitted.
func (w *watch) fragment(e pawl.Event) pawl.Event {
	var p *partText
	for _, o := range w.parts {
		if o.last.Run == e.Run && o.last.Kind == e.Kind && o.last.Index == e.Index {
			p = o
		}
	}
	if p == nil {
		p = &partText{stream: w.find.Stream()}
		w.parts = append(w.parts, p)
	}
	text := e.Text
	e.Call, e.Text = apply(e.Call, w.call), ""
	p.last = e
	if e.Kind == pawl.EventCallDelta && len(w.redaction.marks) > 0 &&
		(p.whole != nil || e.Call.Name == "" || w.markOf(e.Call.Name) != nil) {
		p.whole = append(p.whole, text...)
		if e.Call.Name != "" && w.markOf(e.Call.Name) == nil {
			text, p.whole = string(p.whole), nil // the name arrived late
		} else {
			return e
		}
	}
	e.Text = p.stream.Write(text)
	return e
}

// end emits the held text of parts of run that are complete.
func (w *watch) end(run llm.Key, over func(*partText) bool, send func(pawl.Event)) {
	w.parts = slices.DeleteFunc(w.parts, func(p *partText) bool {
		if p.last.Run != run || !over(p) {
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
	e.Agent, e.Model = w.text(e.Agent), w.text(e.Model)
	e.Text, e.Error, e.Data = w.text(e.Text), w.text(e.Error), w.json(e.Data, nil)
	e.Spent, e.Call, e.Response = apply(e.Spent, w.spent), apply(e.Call, w.call), apply(e.Response, w.response)
	e.Execution, e.Message = apply(e.Execution, w.execution), apply(e.Message, w.message)
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
	c.ID, c.Name, c.Opaque = x.text(c.ID), x.text(c.Name), x.opaque(c.Opaque)
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
	return llm.Response{Message: x.message(r.Message), Finish: r.Finish, Usage: x.usage(r.Usage),
		Model: x.text(r.Model), ID: x.text(r.ID)}
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
		return llm.Text{Text: x.text(p.Text), Opaque: x.opaque(p.Opaque)}
	case llm.Reasoning:
		return llm.Reasoning{Text: x.text(p.Text), Opaque: x.opaque(p.Opaque)}
	case llm.Media:
		p.URL = x.text(p.URL)
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

func (x *redaction) toolResult(r llm.ToolResult) llm.ToolResult {
	r.Parts, r.CallID, r.Data = applyAll(r.Parts, x.part), x.text(r.CallID), x.json(r.Data, nil)
	return r
}

// decision hides the fields that m marks in the arguments that a person set.
func (x *redaction) decision(d llm.Decision, m *mark) llm.Decision {
	d.By, d.Identity, d.Reason, d.Args = x.text(d.By), x.text(d.Identity), x.text(d.Reason), x.json(d.Args, m)
	d.Result = apply(d.Result, x.toolResult)
	return d
}

func (x *redaction) execution(e pawl.Execution) pawl.Execution {
	m := x.markOf(e.Call.Name)
	e.Call, e.Result, e.Error = x.call(e.Call), x.toolResult(e.Result), x.text(e.Error)
	e.Spent, e.Pending, e.Values = x.spent(e.Spent), applyAll(e.Pending, x.waiting), x.values(e.Values)
	e.Repairs = applyAll(e.Repairs, func(s string) string { return x.repair(s, m) })
	e.Decision = apply(e.Decision, func(d llm.Decision) llm.Decision { return x.decision(d, m) })
	e.SetErr(x.error(e.Err()))
	return e
}

// repair hides the details of the repair of a marked field.
func (x *redaction) repair(s string, m *mark) string {
	if field, _, ok := strings.Cut(s, ": "); ok && m != nil {
		for name := range strings.FieldsFuncSeq(field, func(c rune) bool { return c == '.' || c == '[' }) {
			m = m.of(strings.TrimSuffix(name, "]"))
			if m != nil && m.whole {
				return x.text(field) + ": " + secret.Mask
			}
		}
	}
	return x.text(s)
}

func (x *redaction) waiting(p pawl.PendingCall) pawl.PendingCall {
	p.Call, p.Why, p.Schema = x.call(p.Call), x.text(p.Why), x.json(p.Schema, nil)
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
	return pawl.Step{Response: apply(s.Response, x.response), Error: x.text(s.Error),
		Executions: append([]pawl.Execution{}, applyAll(s.Executions, x.execution)...)}
}

func (x *redaction) result(r pawl.Result) pawl.Result {
	r.Messages, r.Unread = applyAll(r.Messages, x.message), applyAll(r.Unread, x.message)
	r.Steps = append([]pawl.Step{}, applyAll(r.Steps, x.step)...)
	r.Cause, r.Pending, r.Values, r.Output = x.text(r.Cause), applyAll(r.Pending, x.waiting), x.values(r.Values),
		x.json(r.Output, nil)
	r.Spent, r.Repairs = x.spent(r.Spent), applyAll(r.Repairs, x.text)
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
