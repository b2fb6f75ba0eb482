package pawl

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
)

// EventKind names what an Event tells.
type EventKind string

// The kinds of events, in the order in which a run emits them. What each carries stands in docs/events.md.
const (
	EventRunStarted       EventKind = "run_started"       // the run takes its first step; once a run
	EventSteered          EventKind = "steered"           // a message that was sent to the run takes its place; the next request has it
	EventStepStarted      EventKind = "step_started"      // a step begins: open calls are carried out, or the model is asked
	EventRequestStarted   EventKind = "request_started"   // a request goes to the model
	EventText             EventKind = "text"              // a fragment of the answer
	EventTextRetracted    EventKind = "text_retracted"    // text that was told turns out to be no answer but a call written as text; forget it
	EventReasoning        EventKind = "reasoning"         // a fragment of what the model thinks
	EventCallDelta        EventKind = "call_delta"        // a fragment of a call's arguments; they may not be JSON yet
	EventCallReady        EventKind = "call_ready"        // a call is whole; it is not checked yet
	EventResponseReceived EventKind = "response_received" // the reply is whole
	EventCallStarted      EventKind = "call_started"      // the tool begins; a call that is refused before has no such event
	EventProgress         EventKind = "progress"          // word from a tool at work
	EventCallCompleted    EventKind = "call_completed"    // a call is done with, however it ended; exactly one for each call
	EventNotice           EventKind = "notice"            // something to know that is not part of the conversation
	EventGap              EventKind = "gap"               // an observer missed events: how many, by kind; only observers are told (Tap, On)
	EventStep             EventKind = "step"              // a step is complete
	EventRunEnded         EventKind = "run_ended"         // the run is over, with its Result; the last event
)

// Event is one thing that happened in a run. All that happens leaves a run as events, through one sequence. Which
// fields are set depends on Kind; the JSON form of an event holds those of its kind and no others.
//
// Events of a run that goes on inside a call carry that run's name in Run and keys under the call's in Path. What an Event
// points to must not be changed.
type Event struct {
	Kind EventKind
	Run  llm.Key // the run: "run", or "run/3/0/clerk" for one inside a call
	Step int     // number of the step, from 1: the replies so far, the one being made included
	Seq  int64   // position in the outermost run's sequence, from 1
	Path llm.Key // the call or request it belongs to; "" elsewhere

	Agent     string             // run_started: the agent's name
	Model     string             // request_started: the overriding model name, if any
	Messages  int                // request_started: how many messages are sent
	Tools     int                // request_started: how many tools are offered
	Choice    *llm.ToolChoice    // request_started
	Index     int                // text, reasoning, call_delta, call_ready: the part of the reply
	Text      string             // text, reasoning: the fragment; call_delta: of the arguments; text_retracted: what is taken back; progress, notice: words; gap: why, where it is not that they came too fast
	Code      string             // notice: what kind, for programs: retry, healed, output_unfit, output_mended, and what models and tools have of their own
	Data      stdjson.RawMessage // progress, notice: more, for programs
	Call      *llm.ToolCall      // call_delta: its id and name so far; call_ready, call_started: the call
	Attempt   int                // call_started: 1 for the first
	Response  *llm.Response      // response_received
	Execution *Execution         // call_completed
	Message   *llm.Message       // steered
	Outcomes  []Outcome          // step: of its calls, in call order
	Spent     *Spent             // step: by the run so far
	Result    *Result            // run_ended; in JSON without its steps, which were told
	Error     string             // run_ended: with StopFailed
	Lost      map[EventKind]int  // gap: how many events were missed, by kind

	Completed *Step   // step: the whole of it; not part of the JSON form
	Offered   []*Tool // run_started: what the run may call, read only; not part of the JSON form
}

// eventFields is the closed list of what each kind carries, by JSON name. The docs and both directions of the JSON
// form are made from it.
var eventFields = map[EventKind][]string{
	EventRunStarted:       {"agent"},
	EventSteered:          {"message"},
	EventStepStarted:      {},
	EventRequestStarted:   {"model", "messages", "tools", "choice"},
	EventText:             {"index", "text"},
	EventTextRetracted:    {"index", "text"},
	EventReasoning:        {"index", "text"},
	EventCallDelta:        {"index", "id", "name", "text"},
	EventCallReady:        {"index", "call"},
	EventResponseReceived: {"response"},
	EventCallStarted:      {"call", "attempt"},
	EventProgress:         {"text", "data"},
	EventCallCompleted:    {"execution"},
	EventNotice:           {"code", "text", "data"},
	EventGap:              {"lost", "text"},
	EventStep:             {"outcomes", "spent"},
	EventRunEnded:         {"result", "error"},
}

// everyEvent is what all kinds carry.
var everyEvent = []string{"event", "run", "step", "seq", "path"}

type eventJSON struct {
	Event     EventKind          `json:"event"`
	Run       llm.Key            `json:"run"`
	Step      int                `json:"step"`
	Seq       int64              `json:"seq"`
	Path      llm.Key            `json:"path,omitzero"`
	Agent     *string            `json:"agent,omitzero"`
	Model     *string            `json:"model,omitzero"`
	Messages  *int               `json:"messages,omitzero"`
	Tools     *int               `json:"tools,omitzero"`
	Choice    *llm.ToolChoice    `json:"choice,omitzero"`
	Index     *int               `json:"index,omitzero"`
	Code      *string            `json:"code,omitzero"`
	Text      *string            `json:"text,omitzero"`
	Data      stdjson.RawMessage `json:"data,omitzero"`
	ID        *string            `json:"id,omitzero"`   // call_delta: the call's id so far
	Name      *string            `json:"name,omitzero"` // call_delta: the tool's name so far
	Call      *llm.ToolCall      `json:"call,omitzero"`
	Attempt   *int               `json:"attempt,omitzero"`
	Response  *llm.Response      `json:"response,omitzero"`
	Execution *Execution         `json:"execution,omitzero"`
	Message   *llm.Message       `json:"message,omitzero"`
	Outcomes  []Outcome          `json:"outcomes,omitzero"`
	Spent     *Spent             `json:"spent,omitzero"`
	Result    *Result            `json:"result,omitzero"`
	Error     *string            `json:"error,omitzero"`
	Lost      map[EventKind]int  `json:"lost,omitzero"`
}

// MarshalJSON writes {"event","run","step","seq","path"?, …} with the fields of the event's kind.
func (e Event) MarshalJSON() ([]byte, error) {
	fields, ok := eventFields[e.Kind]
	if !ok {
		return nil, fmt.Errorf("unknown event kind %q", e.Kind)
	}
	w := eventJSON{Event: e.Kind, Run: e.Run, Step: e.Step, Seq: e.Seq, Path: e.Path}
	for _, f := range fields {
		switch f {
		case "agent":
			w.Agent = &e.Agent
		case "model":
			if e.Model != "" {
				w.Model = &e.Model
			}
		case "messages":
			w.Messages = &e.Messages
		case "tools":
			w.Tools = &e.Tools
		case "choice":
			w.Choice = e.Choice
		case "index":
			w.Index = &e.Index
		case "code":
			w.Code = &e.Code
		case "text":
			w.Text = &e.Text
		case "data":
			w.Data = e.Data
		case "id":
			if e.Call != nil {
				w.ID = &e.Call.ID
			}
		case "name":
			if e.Call != nil {
				w.Name = &e.Call.Name
			}
		case "call":
			w.Call = e.Call
		case "attempt":
			w.Attempt = &e.Attempt
		case "response":
			w.Response = e.Response
		case "execution":
			w.Execution = e.Execution
		case "lost":
			w.Lost = e.Lost
		case "message":
			w.Message = e.Message
		case "outcomes":
			w.Outcomes = e.Outcomes
		case "spent":
			w.Spent = e.Spent
		case "result":
			if e.Result != nil {
				r := *e.Result
				r.Steps = nil
				w.Result = &r
			}
		case "error":
			if e.Error != "" {
				w.Error = &e.Error
			}
		}
	}
	return json.Marshal(w, jsonform.Lenient)
}

// UnmarshalJSON reads what MarshalJSON writes. A kind, or a field, that is not on the list is an error.
func (e *Event) UnmarshalJSON(b []byte) error {
	var w eventJSON
	if err := jsonform.Read(b, &w); err != nil {
		return err
	}
	fields, ok := eventFields[w.Event]
	if !ok {
		return fmt.Errorf("unknown event kind %q", w.Event)
	}
	names, err := jsonform.Members(b)
	if err != nil {
		return err
	}
	for name := range names {
		if !slices.Contains(everyEvent, name) && !slices.Contains(fields, name) {
			return fmt.Errorf("an event %s has no field %q", w.Event, name)
		}
	}
	*e = Event{Kind: w.Event, Run: w.Run, Step: w.Step, Seq: w.Seq, Path: w.Path, Agent: deref(w.Agent), Model: deref(w.Model),
		Messages: deref(w.Messages), Tools: deref(w.Tools), Choice: w.Choice, Index: deref(w.Index), Text: deref(w.Text),
		Code: deref(w.Code), Data: w.Data, Call: w.Call, Attempt: deref(w.Attempt), Response: w.Response, Execution: w.Execution, Message: w.Message,
		Outcomes: w.Outcomes, Spent: w.Spent, Result: w.Result, Error: deref(w.Error),
		Lost: w.Lost}
	if e.Kind == EventCallDelta {
		e.Call = &llm.ToolCall{ID: deref(w.ID), Name: deref(w.Name)}
	}
	return nil
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// emit tells whoever watches.
func (r *run) emit(e Event) {
	if r.sink == nil {
		return
	}
	if e.Run == "" {
		e.Run = r.key
		if e.Step == 0 {
			e.Step = r.replies
		}
	}
	r.seq++
	e.Seq = r.seq
	r.sink(e)
}

// tellMends tells what was put right in the messages that the run was given.
func (r *run) tellMends() {
	for i := 0; r.sink != nil && i < len(r.mends); i++ {
		n := r.mends[i].Notice()
		r.emit(Event{Kind: EventNotice, Code: n.Code, Text: n.Text, Data: n.Data})
	}
}

// tell turns a fragment of the reply into events.
func (r *run) tell(resp *llm.Response, d llm.Delta) {
	if r.sink == nil {
		return
	}
	if r.teller == nil {
		r.teller = new(teller)
	}
	step := r.replies + 1
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
		r.emit(Event{Kind: EventCallDelta, Step: step, Index: d.Index, Call: r.teller.calling(resp, d.Index), Text: r.teller.text(p.Args)})
	}
	if d.Done {
		r.callReady(resp, d.Index)
	}
	if d.Finish != "" {
		for i := range resp.Message.Parts {
			r.callReady(resp, i)
		}
		r.teller.ready = r.teller.ready[:0]
	}
}

// teller is what a run has told of calls that are being written.
type teller struct {
	call   *llm.ToolCall // of the last fragment
	part   int           // that it is of
	ready  []int         // parts that were announced as ready calls
	pieces strings.Builder
}

// calling returns the id and the name of the call that is part i, as far as they are known: the same value for all its fragments, unless more
// has become known.
func (t *teller) calling(resp *llm.Response, i int) *llm.ToolCall {
	c := resp.Message.Parts[i].(llm.ToolCall)
	if t.call == nil || t.part != i || t.call.ID != c.ID || t.call.Name != c.Name {
		t.call, t.part = &llm.ToolCall{ID: c.ID, Name: c.Name}, i
	}
	return t.call
}

// text returns piece as a string. Small ones share what they are allocated in.
func (t *teller) text(piece []byte) string {
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

func (r *run) callReady(resp *llm.Response, i int) {
	c, ok := resp.Sealed(i).(llm.ToolCall)
	if !ok || slices.Contains(r.teller.ready, i) {
		return
	}
	r.teller.ready = append(r.teller.ready, i)
	call := c
	r.emit(Event{Kind: EventCallReady, Step: r.replies + 1, Index: i, Call: &call})
}

// retract drops text that only echoes a call's arguments.
func (r *run) retract(resp *llm.Response) {
	var kept []llm.Part // nil: all
	for i, p := range resp.Message.Parts {
		if t, ok := p.(llm.Text); ok && echoes(t.Text, resp.Message) {
			r.emit(Event{Kind: EventTextRetracted, Step: r.replies + 1, Index: i, Text: t.Text})
			if kept == nil {
				kept = append(make([]llm.Part, 0, len(resp.Message.Parts)), resp.Message.Parts[:i]...)
			}
			continue
		}
		if kept != nil {
			kept = append(kept, p)
		}
	}
	if kept != nil {
		resp.Message.Parts = kept
	}
}

// echoes reports whether text, fences stripped, is wholly JSON and equal to the arguments of a call of m, or to a wrapper
// {name, arguments} around them. Prose is never an echo.
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
		Name       string          `json:"name"`
		Arguments  stdjson.RawMessage `json:"arguments"`
		Parameters stdjson.RawMessage `json:"parameters"`
		Args       stdjson.RawMessage `json:"args"`
	}
	_ = stdjson.Unmarshal(b, &wrap) // no wrapper leaves it empty
	var inner []byte
	for _, a := range []stdjson.RawMessage{wrap.Arguments, wrap.Parameters, wrap.Args} {
		if a == nil {
			continue
		}
		var s string
		if stdjson.Unmarshal(a, &s) == nil {
			a = stdjson.RawMessage(s) // arguments as a string, as some servers echo them
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

// canonicalObject returns the canonical form of b when it is wholly one JSON object, else nil.
func canonicalObject(b []byte) []byte {
	if !stdjson.Valid(b) {
		return nil
	}
	if b = bytes.TrimSpace(b); len(b) == 0 || b[0] != '{' {
		return nil
	}
	return jsonform.Canonical(b)
}

// unfenced strips one ``` fence around the whole of s.
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
