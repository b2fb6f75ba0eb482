package pawl

// event.go: Event, its kinds, and its JSON form from one table; how a run emits events.

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
)

// EventKind names what an Event reports.
type EventKind string

// The kinds of events, in the order in which a run emits them. docs/events.md lists the fields of
// each.
const (
	// The run takes its first step. Once per run.
	EventRunStarted EventKind = "run_started"
	// A message sent to the active run was accepted. The next request contains it.
	EventSteered EventKind = "steered"
	// A step starts: open calls are executed, or the model is asked. It starts again if the reply
	// broke off and is asked for again.
	EventStepStarted EventKind = "step_started"
	// A request is sent to the model.
	EventRequestStarted EventKind = "request_started"
	// A fragment of the answer.
	EventText EventKind = "text"
	// A part of the reply is void: it is a call written as text, or the reply broke off and is
	// asked for again. Drop it. A call in it was not executed.
	EventTextRetracted EventKind = "text_retracted"
	// A fragment of the model's reasoning.
	EventReasoning EventKind = "reasoning"
	// A fragment of the arguments of a call. They may not be valid JSON yet.
	EventCallDelta EventKind = "call_delta"
	// A call is complete. It is not validated yet.
	EventCallReady EventKind = "call_ready"
	// The reply is complete.
	EventResponseReceived EventKind = "response_received"
	// An attempt of the tool starts. A call that is rejected before has no such event.
	EventCallStarted EventKind = "call_started"
	// Progress that a running tool reports.
	EventProgress EventKind = "progress"
	// A call has ended, with any outcome. Exactly one per call.
	EventCallCompleted EventKind = "call_completed"
	// Information that is not part of the conversation.
	EventNotice EventKind = "notice"
	// An asynchronous observer (package observe) missed events. Runs do not emit it.
	EventGap EventKind = "gap"
	// A step is complete.
	EventStep EventKind = "step"
	// The run has ended, with its Result. The last event.
	EventRunEnded EventKind = "run_ended"
)

// Event reports one thing that happened in a run. All events of a run form one sequence. The fields
// that are set depend on Kind. Values that an Event points to must not be changed.
//
// Events of a run that is nested in a call have the key of that run in Run, and keys below the key
// of the call in Path.
//
// The struct is the table of the JSON form: the tag on lists the kinds that carry a field, and
// "all" means every kind. Marshal, unmarshal and docs/events.md follow it.
type Event struct {
	// What happened: one of the kinds below.
	Kind EventKind `json:"event" on:"all"`
	// The run: "run", or for example "run/3/0/clerk" for a run nested in a call.
	Run llm.Key `json:"run" on:"all"`
	// Number of the step, from 1: the replies so far, including the one in progress.
	Step int `json:"step" on:"all"`
	// Position in the sequence of the outermost run, from 1.
	Seq int64 `json:"seq" on:"all"`
	// The call or request of the event. "" means neither.
	Path llm.Key `json:"path,omitzero" on:"all"`

	// Name of the agent.
	Agent string `json:"agent" on:"run_started"`
	// Name of the model if the request overrides the model's own.
	Model string `json:"model,omitzero" on:"request_started"`
	// Number of messages in the request.
	Messages int `json:"messages" on:"request_started"`
	// Number of tools in the request.
	Tools int `json:"tools" on:"request_started"`
	// Which tools the model may or must call.
	Choice *llm.ToolChoice `json:"choice,omitzero" on:"request_started"`
	// Index of the part in the reply.
	Index int `json:"index" on:"text text_retracted reasoning call_delta call_ready"`
	// Kind of the notice, for programs, such as retry: docs/notices.md lists all.
	Code string `json:"code" on:"notice"`
	// The fragment of text, reasoning or arguments; the retracted text, empty for a call; the text
	// of the report; for gap, the cause of the loss if it is not the speed of the observer.
	Text string `json:"text" on:"text text_retracted reasoning call_delta progress notice gap"`
	// More about the report, for programs.
	Data stdjson.RawMessage `json:"data,omitzero" on:"progress notice"`
	// The call. With call_delta only its ID and Name are set, as far as they are known.
	Call *llm.ToolCall `json:"call,omitzero" on:"call_delta call_ready call_started"`
	// Number of the attempt, from 1.
	Attempt int `json:"attempt" on:"call_started"`
	// The complete reply.
	Response *llm.Response `json:"response,omitzero" on:"response_received"`
	// The record of the call.
	Execution *Execution `json:"execution,omitzero" on:"call_completed"`
	// The accepted message.
	Message *llm.Message `json:"message,omitzero" on:"steered"`
	// Outcomes of the calls of the step, in call order.
	Outcomes []Outcome `json:"outcomes,omitzero" on:"step"`
	// Usage of the run so far.
	Spent *Spent `json:"spent,omitzero" on:"step"`
	// The result of the run. The JSON form omits its steps, because earlier events contain them.
	Result *Result `json:"result,omitzero" on:"run_ended"`
	// Text of the error: of the request that failed or was cancelled, or of a run with StopFailed.
	Error string `json:"error,omitzero" on:"step run_ended"`
	// Number of missed events by kind.
	Lost map[EventKind]int `json:"lost,omitzero" on:"gap"`

	// Completed is the step of an EventStep. The JSON form omits it.
	Completed *Step `json:"-"`
	// Offered are the tools of the run, with EventRunStarted. Do not change them. The JSON form
	// omits them.
	Offered []*Tool `json:"-"`
}

// callDelta holds the fields that call_delta has in place of Event.Call: the JSON form of a
// fragment needs no empty arguments.
type callDelta struct {
	// ID of the call, once known.
	ID *string `json:"id,omitzero"`
	// Name of the tool, once known.
	Name *string `json:"name,omitzero"`
}

// eventForm is the JSON form of the events of one kind: a struct type with the fields of Event that
// the kind carries.
type eventForm struct {
	form  reflect.Type
	from  []int // for each field of form, its index in Event; -1 for the fields of callDelta
	names []string
}

// eventForms returns the forms of all kinds, made from the tags of Event.
var eventForms = sync.OnceValue(func() map[EventKind]*eventForm {
	event := reflect.TypeFor[Event]()
	kinds := map[EventKind]bool{}
	for i := range event.NumField() {
		for _, kind := range strings.Fields(event.Field(i).Tag.Get("on")) {
			kinds[EventKind(kind)] = true
		}
	}
	kinds[EventStepStarted] = true // has no field of its own
	delete(kinds, "all")
	forms := map[EventKind]*eventForm{}
	for kind := range kinds {
		f := new(eventForm)
		var fields []reflect.StructField
		add := func(field reflect.StructField, at int) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			fields, f.from, f.names = append(fields, field), append(f.from, at), append(f.names, name)
		}
		for i := range event.NumField() {
			field := event.Field(i)
			on := strings.Fields(field.Tag.Get("on"))
			switch {
			case !slices.Contains(on, "all") && !slices.Contains(on, string(kind)):
			case kind == EventCallDelta && field.Name == "Call":
				for _, part := range reflect.VisibleFields(reflect.TypeFor[callDelta]()) {
					add(part, -1)
				}
			default:
				add(field, i)
			}
		}
		f.form = reflect.StructOf(fields)
		forms[kind] = f
	}
	return forms
})

// MarshalJSON writes {"event","run","step","seq","path"?, …} with the fields of the event's kind.
func (e Event) MarshalJSON() ([]byte, error) {
	form := eventForms()[e.Kind]
	if form == nil {
		return nil, fmt.Errorf("unknown event kind %q", e.Kind)
	}
	if e.Result != nil {
		// Each step has had an event of its own.
		r := *e.Result
		r.Steps = nil
		e.Result = &r
	}
	from, to := reflect.ValueOf(&e).Elem(), reflect.New(form.form)
	for i, at := range form.from {
		if at >= 0 {
			to.Elem().Field(i).Set(from.Field(at))
		}
	}

	// The form has callDelta in place of Call.
	if e.Kind == EventCallDelta && e.Call != nil {
		to.Elem().FieldByName("ID").Set(reflect.ValueOf(&e.Call.ID))
		to.Elem().FieldByName("Name").Set(reflect.ValueOf(&e.Call.Name))
	}
	return json.Marshal(to.Interface(), jsonform.Lenient)
}

// UnmarshalJSON reads the form of MarshalJSON. An unknown kind, and a field that the kind does not
// carry, are errors.
func (e *Event) UnmarshalJSON(b []byte) error {
	names, err := jsonform.Members(b)
	if err != nil {
		return err
	}
	var head struct {
		Event EventKind `json:"event"`
	}
	if err := json.Unmarshal(b, &head, jsonform.Lenient); err != nil {
		return err
	}
	form := eventForms()[head.Event]
	if form == nil {
		return fmt.Errorf("unknown event kind %q", head.Event)
	}

	// Strict would reject the name too, without saying that it belongs to another kind.
	for name := range names {
		if !slices.Contains(form.names, name) {
			return fmt.Errorf("an event %s has no field %q", head.Event, name)
		}
	}
	from := reflect.New(form.form)
	if err := json.Unmarshal(b, from.Interface(), jsonform.Strict); err != nil {
		return err
	}
	*e = Event{}
	to := reflect.ValueOf(e).Elem()
	for i, at := range form.from {
		if at >= 0 {
			to.Field(at).Set(from.Elem().Field(i))
		}
	}
	if e.Kind == EventCallDelta {
		e.Call = new(llm.ToolCall)
		if id := from.Elem().FieldByName("ID"); !id.IsNil() {
			e.Call.ID = id.Elem().String()
		}
		if name := from.Elem().FieldByName("Name"); !name.IsNil() {
			e.Call.Name = name.Elem().String()
		}
	}
	return nil
}

// emit sends e to the caller of Stream. Run, Step and Seq are set here.
func (r *run) emit(e Event) {
	if r.out.sink == nil {
		return
	}
	if e.Run == "" {
		e.Run = r.key
		if e.Step == 0 {
			e.Step = r.history.replies
		}
	}
	r.out.seq++
	e.Seq = r.out.seq
	r.out.sink(e)
}

// emitDelta emits a fragment of the reply.
func (r *run) emitDelta(resp *llm.Response, d llm.Delta) {
	if r.out.sink == nil {
		return
	}
	if r.reply.deltas == nil {
		r.reply.deltas = new(deltas)
	}
	step := r.history.replies + 1
	if d.Notice != nil {
		r.emit(Event{Kind: EventNotice, Step: step, Code: d.Notice.Code, Text: d.Notice.Text, Data: d.Notice.Data})
	}
	switch p := d.Part.(type) {
	case llm.Text:
		if p.Text != "" {
			r.emit(Event{Kind: EventText, Step: step, Index: d.Index, Text: p.Text})
		}
	case llm.Reasoning:
		if p.Text != "" {
			r.emit(Event{Kind: EventReasoning, Step: step, Index: d.Index, Text: p.Text})
		}
	case llm.ToolCall:
		r.emit(Event{Kind: EventCallDelta, Step: step, Index: d.Index, Call: r.reply.deltas.head(resp, d.Index),
			Text: r.reply.deltas.text(p.Args)})
	}
	if d.Done {
		r.emitReady(resp, d.Index)
	}

	// The end of a reply completes its parts, also those whose end no Delta has marked.
	if d.Finish != "" {
		for i := range resp.Message.Parts {
			r.emitReady(resp, i)
		}
		r.reply.deltas.ready = r.reply.deltas.ready[:0]
	}
}

// emitReady emits call_ready for part i if that is a complete call, once.
func (r *run) emitReady(resp *llm.Response, i int) {
	c, ok := resp.Sealed(i).(llm.ToolCall)
	if !ok || slices.Contains(r.reply.deltas.ready, i) {
		return
	}
	r.reply.deltas.ready = append(r.reply.deltas.ready, i)
	call := c
	r.emit(Event{Kind: EventCallReady, Step: r.history.replies + 1, Index: i, Call: &call})
}

// deltas is the state of the events of calls that a model is writing.
type deltas struct {
	call   *llm.ToolCall // ID and name in the last call_delta
	part   int           // part of the reply that call belongs to
	ready  []int         // parts with a call_ready
	pieces strings.Builder
}

// head returns the ID and the name of the call in part i, as far as they are known. All fragments
// share one value until more is known.
func (t *deltas) head(resp *llm.Response, i int) *llm.ToolCall {
	c := resp.Message.Parts[i].(llm.ToolCall)
	samePart := t.call != nil && t.part == i
	if !samePart || t.call.ID != c.ID || t.call.Name != c.Name {
		t.call = &llm.ToolCall{ID: c.ID, Name: c.Name}
		t.part = i
	}
	return t.call
}

// text returns piece as a string. Small strings share an allocation.
func (t *deltas) text(piece []byte) string {
	const room = 1 << 10
	if len(piece) > room/4 {
		return string(piece)
	}
	if t.pieces.Cap()-t.pieces.Len() < len(piece) {
		t.pieces.Reset()
		t.pieces.Grow(room)
	}
	at := t.pieces.Len()
	t.pieces.Write(piece)
	return t.pieces.String()[at:]
}

// retract removes text that only repeats the arguments of a call.
func (r *run) retract(resp *llm.Response) {
	var parts []llm.Part // nil means all
	for i, p := range resp.Message.Parts {
		if t, ok := p.(llm.Text); ok && echoes(t.Text, resp.Message) {
			r.emit(Event{Kind: EventTextRetracted, Step: r.history.replies + 1, Index: i, Text: t.Text})
			if parts == nil {
				parts = append(make([]llm.Part, 0, len(resp.Message.Parts)), resp.Message.Parts[:i]...)
			}
			continue
		}
		if parts != nil {
			parts = append(parts, p)
		}
	}
	if parts != nil {
		resp.Message.Parts = parts
	}
}

// echoes reports whether text, without a code fence, is one JSON object that equals the arguments
// of a call of m, or an object {name, arguments} around them. Prose is never an echo.
func echoes(text string, m llm.Message) bool {
	if !m.HasCalls() {
		return false
	}
	b := []byte(unfenced(text))
	if len(b) == 0 || b[0] != '{' {
		return false
	}
	got := canonicalObject(b)
	if got == nil {
		return false
	}
	var wrap struct {
		Name       string             `json:"name"`
		Arguments  stdjson.RawMessage `json:"arguments"`
		Parameters stdjson.RawMessage `json:"parameters"`
		Args       stdjson.RawMessage `json:"args"`
	}
	_ = stdjson.Unmarshal(b, &wrap) // an error leaves it empty
	var inner []byte
	for _, a := range []stdjson.RawMessage{wrap.Arguments, wrap.Parameters, wrap.Args} {
		if a == nil {
			continue
		}
		var s string
		if stdjson.Unmarshal(a, &s) == nil {
			a = stdjson.RawMessage(s) // some servers repeat arguments as a string
		}
		inner = canonicalObject(a)
		break
	}
	for _, p := range m.Parts {
		c, ok := p.(llm.ToolCall)
		if !ok {
			continue
		}
		args := canonicalObject(c.Args)
		if args == nil && len(bytes.TrimSpace(c.Args)) == 0 {
			args = []byte("{}")
		}
		if args != nil && (bytes.Equal(got, args) || inner != nil && wrap.Name == c.Name && bytes.Equal(inner, args)) {
			return true
		}
	}
	return false
}

// canonicalObject returns the canonical form of b, or nil if b is not one JSON object.
func canonicalObject(b []byte) []byte {
	if !stdjson.Valid(b) {
		return nil
	}
	b = bytes.TrimSpace(b)
	if len(b) == 0 || b[0] != '{' {
		return nil
	}
	return jsonform.Canonical(b)
}

// unfenced removes a ``` fence around the whole of s.
func unfenced(s string) string {
	s = strings.TrimSpace(s)
	rest, ok := strings.CutPrefix(s, "```")
	if !ok {
		return s
	}
	rest, ok = strings.CutSuffix(rest, "```")
	if !ok {
		return s
	}
	if i := strings.IndexByte(rest, '\n'); i >= 0 && !strings.ContainsAny(rest[:i], "{[") {
		rest = rest[i+1:] // the language of the fence
	}
	return strings.TrimSpace(rest)
}
