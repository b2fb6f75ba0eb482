package uistream

// encoder.go: Encoder, which turns the events of a run into frames that no protocol is part of.

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Protocol is a protocol of front ends.
type Protocol string

// The protocols. A client of an older version refuses what only the newer version has.
const (
	AISDK6 Protocol = "ai-6"    // UI message stream of npm ai 6
	AISDK7 Protocol = "ai-7"    // the same of npm ai 7
	AGUI0  Protocol = "ag-ui-0" // AG-UI of clients that state no version, such as npm 0.0.59
	AGUI1  Protocol = "ag-ui-1" // AG-UI 1.0
)

// Options describe the stream of a run.
type Options struct {
	Protocol Protocol // "" means AISDK6
	// Run is the ID of the run, and of its message. "" means that the client makes one.
	Run   string
	Agent string // name of the agent, for the metadata of the message
	// Passive reports whether the client executes the tool with that name. Nil means that the tools
	// in the event run_started say it, which events from JSON do not have.
	Passive func(name string) bool
	// After is the step whose open calls the client waits for. The client has seen everything
	// before. 0 means that it has seen nothing.
	After int
	// Open are the calls of step After that have no result in the client. True means that the
	// client has asked a person about the call.
	Open map[llm.Key]bool

	// AG-UI: the client's IDs of the conversation and of its request, and the messages that it has.
	Thread, Request string
	Messages        []map[string]any
	Inner           bool // AG-UI 1.0: the stream contains the runs that are nested in calls

	Beat time.Duration // Write: interval of comments in a silent stream; 0 means 10 s
	Wait time.Duration // Write: time for a client to receive data; 0 means no limit
}

// Encoder encodes the events of one run. Events must be passed in order. It is not safe for
// concurrent use.
type Encoder struct {
	o      Options
	run    llm.Key // key of the run whose events are encoded
	form   interface{ encode(f *frame) []object }
	resets bool // a step can be taken back and sent again
	out    [][]byte

	inner  map[llm.Key]*Encoder     // of the runs nested in calls, with Options.Inner
	calls  map[llm.Key]*shown       // shared with inner
	texts  map[int]*strings.Builder // text of the current reply that was sent, by index
	keys   map[int]llm.Key          // calls of the current reply, by index
	gone   map[int]bool             // retracted parts of the current reply
	part   *frame                   // the open text or reasoning; nil means none
	step   int                      // the open step; 0 means none
	steps  int                      // steps that were begun
	held   bool                     // fragments were lost: the rest follows when the reply is whole
	finish llm.FinishReason
	ended  bool
}

// shown is a call that the client knows.
type shown struct {
	key    llm.Key
	name   string
	step   int    // number of the step in the stream; 0 means an earlier stream
	title  string // the agents around a nested call, and its name; "" means none
	client bool   // the client executes it
	began  bool
	args   strings.Builder // arguments that were received
	sent   int             // bytes of them that were sent
	ready  bool
	asked  bool
}

// frame is a part of a stream, in the terms of no protocol.
type frame struct {
	kind      kind
	step      int
	id        string // of a text: step.index
	reasoning bool
	text      string
	name      string // of a report or of an output
	data      any
	call      *shown
	ask       *pawl.PendingCall
	exec      *pawl.Execution
	message   *llm.Message
	media     llm.Media
	event     *pawl.Event // run_ended
}

type kind int

const (
	started kind = iota
	stepStarted
	stepEnded
	textStarted
	textDelta
	textEnded
	callStarted
	callDelta
	callReady
	callOK
	callFailed
	callDenied
	question
	file
	report    // progress and notices: not part of the message
	output    // the structured answer, or the list of tool todo
	steered   // a message of the user
	retracted // text that is taken back
	ended
	failed
)

type object = map[string]any

// New returns an Encoder.
func New(o Options) *Encoder {
	e := &Encoder{o: o, run: "run", form: &aisdk{o: o}, calls: map[llm.Key]*shown{}, inner: map[llm.Key]*Encoder{},
		resets: o.Protocol == AISDK7}
	if o.Protocol == AGUI0 || o.Protocol == AGUI1 {
		e.form = &agui{o: o, key: "run", sent: new([]encoded)}
	}
	e.reply()
	return e
}

// Begin returns the first frames of the stream, each one JSON value.
func (e *Encoder) Begin() [][]byte {
	e.put(&frame{kind: started})
	return e.flush()
}

// Fail ends a stream whose events have ended without run_ended.
func (e *Encoder) Fail(message string) [][]byte {
	if !e.ended {
		e.close()
		e.put(&frame{kind: failed, text: message})
		e.ended = true
	}
	return e.flush()
}

// Ended reports whether the last frame was returned.
func (e *Encoder) Ended() bool { return e.ended }

func (e *Encoder) flush() [][]byte {
	out := e.out
	e.out = nil
	return out
}

func (e *Encoder) put(f *frame) {
	for _, o := range e.form.encode(f) {
		b, err := json.Marshal(o)
		if err == nil {
			e.out = append(e.out, b)
		}
	}
}

// reply forgets the parts of the reply before.
func (e *Encoder) reply() {
	e.texts = map[int]*strings.Builder{}
	e.keys = map[int]llm.Key{}
	e.gone = map[int]bool{}
}

// Event returns the frames of an event. At most one text is open in all runs.
func (e *Encoder) Event(ev pawl.Event) [][]byte {
	for key, in := range e.inner {
		if key != ev.Run {
			in.shut()
			e.out = append(e.out, in.flush()...)
		}
	}
	switch {
	case e.ended:
	case ev.Run != e.run && e.o.Inner && e.o.Protocol == AGUI1 && e.run == "run":
		e.nested(ev)
	case ev.Kind == pawl.EventRunStarted && e.o.Passive == nil && ev.Run == "run":
		e.o.Passive = func(name string) bool {
			return slices.ContainsFunc(ev.Offered, func(t *pawl.Tool) bool { return t.Name == name && t.Passive })
		}
	case ev.Kind == pawl.EventCallCompleted && ev.Execution != nil:
		_, open := e.o.Open[ev.Execution.Key]
		if open || e.calls[ev.Execution.Key] != nil || ev.Run == e.run && !e.seen(ev) {
			e.completed(ev.Execution)
		}
	case ev.Run != e.run || ev.Kind != pawl.EventRunEnded && e.seen(ev):
	default:
		e.event(&ev)
	}
	return e.flush()
}

// seen reports whether the client saw the event in an earlier stream.
func (e *Encoder) seen(ev pawl.Event) bool {
	return ev.Kind != pawl.EventGap && ev.Step <= e.o.After && e.o.After > 0
}

func (e *Encoder) event(ev *pawl.Event) {
	switch ev.Kind {
	case pawl.EventStepStarted, pawl.EventText, pawl.EventReasoning, pawl.EventCallDelta, pawl.EventCallReady,
		pawl.EventResponseReceived:
		if e.step == 0 || ev.Kind == pawl.EventStepStarted {
			e.close()
			e.reply()
			e.held = false
			e.step = max(ev.Step, 1)
			e.steps++
			e.put(&frame{kind: stepStarted, step: e.step})
		}
	}
	switch ev.Kind {
	case pawl.EventStep:
		e.close()
	case pawl.EventGap:
		e.held = true
	case pawl.EventText, pawl.EventReasoning:
		if !e.held {
			e.say(ev.Step, ev.Index, ev.Kind == pawl.EventReasoning, ev.Text)
		}
	case pawl.EventTextRetracted:
		e.shut()
		e.gone[ev.Index] = true
		e.put(&frame{kind: retracted, step: ev.Step, id: partID(ev.Step, ev.Index), text: ev.Text})
		if e.resets { // what remains of the step is sent again with the whole reply
			gone := e.gone
			maps.DeleteFunc(e.calls, func(_ llm.Key, s *shown) bool { return s.step == e.steps || !s.ready })
			e.reply()
			e.gone, e.held = gone, true
		}
	case pawl.EventCallDelta:
		if s := e.at(ev); s != nil && !e.held {
			s.name = ev.Call.Name
			s.args.WriteString(ev.Text)
			e.write(s)
		}
	case pawl.EventCallReady:
		if s := e.at(ev); s != nil {
			e.ready(s, *ev.Call)
		}
	case pawl.EventResponseReceived:
		if ev.Response != nil {
			e.whole(ev.Step, ev.Response)
		}
	case pawl.EventProgress:
		e.put(&frame{kind: report, name: "progress", data: object{"key": ev.Path, "text": ev.Text, "data": ev.Data}})
	case pawl.EventNotice:
		e.put(&frame{kind: report, name: "notice", data: object{"code": ev.Code, "text": ev.Text, "data": ev.Data}})
	case pawl.EventSteered:
		e.shut()
		e.put(&frame{kind: steered, id: fmt.Sprintf("%s.steered.%d", e.o.Run, ev.Seq), message: ev.Message})
	case pawl.EventRunEnded:
		e.end(ev)
	}
}

// partID returns the ID of a part of a reply.
func partID(step, index int) string { return strconv.Itoa(step) + "." + strconv.Itoa(index) }

// say sends a piece of text or reasoning.
func (e *Encoder) say(step, index int, reasoning bool, text string) {
	id := partID(step, index)
	if text == "" {
		return
	}
	if e.part == nil || e.part.id != id || e.part.reasoning != reasoning {
		e.shut()
		e.part = &frame{kind: textStarted, step: step, id: id, reasoning: reasoning}
		e.put(e.part)
	}
	if e.texts[index] == nil {
		e.texts[index] = new(strings.Builder)
	}
	e.texts[index].WriteString(text)
	e.put(&frame{kind: textDelta, step: step, id: id, reasoning: reasoning, text: text})
}

// shut ends the open text.
func (e *Encoder) shut() {
	if p := e.part; p != nil {
		e.part = nil
		e.put(&frame{kind: textEnded, step: p.step, id: p.id, reasoning: p.reasoning})
	}
}

// close ends what is open.
func (e *Encoder) close() {
	e.shut()
	if e.step > 0 {
		e.put(&frame{kind: stepEnded, step: e.step})
		e.step = 0
	}
}

// at returns the call of an event, which has no key: calls of a reply are numbered by their index.
// Nil means that a call of a smaller index came late: it is sent when the reply is whole.
func (e *Encoder) at(ev *pawl.Event) *shown {
	key, ok := e.keys[ev.Index]
	if ev.Call == nil {
		return nil
	}
	if !ok {
		for i := range e.keys {
			if i > ev.Index {
				return nil
			}
		}
		key = e.key(ev.Step, len(e.keys))
		e.keys[ev.Index] = key
	}
	return e.known(key, ev.Call.Name)
}

// key returns the key of the n-th call of a reply.
func (e *Encoder) key(step, n int) llm.Key {
	return llm.Key(fmt.Sprintf("%s/%d/%d", e.run, step, n))
}

// known returns a call, which the client may not know yet.
func (e *Encoder) known(key llm.Key, name string) *shown {
	s := e.calls[key]
	if s == nil {
		s = &shown{key: key, name: name, client: e.o.Passive != nil && e.o.Passive(name)}
		segments := strings.Split(string(key), "/")
		for _, part := range segments[1:] {
			if _, err := strconv.Atoi(part); err != nil && len(segments) > 4 {
				s.title += part + " › "
			}
		}
		if s.title != "" {
			s.title += name
		}
		_, s.began = e.o.Open[key]
		if !s.began {
			s.step = e.steps
		}
		s.ready = s.began
		s.asked = e.o.Open[key]
		e.calls[key] = s
	}
	return s
}

// write sends the arguments of a call that were not sent.
func (e *Encoder) write(s *shown) {
	if s.name == "" || s.ready {
		return
	}
	e.shut()
	if !s.began {
		s.began = true
		s.client = e.o.Passive != nil && e.o.Passive(s.name)
		e.put(&frame{kind: callStarted, call: s})
	}
	if rest := s.args.String()[s.sent:]; rest != "" {
		s.sent += len(rest)
		e.put(&frame{kind: callDelta, call: s, text: rest})
	}
}

// ready sends the rest of a call.
func (e *Encoder) ready(s *shown, call llm.ToolCall) {
	if s.ready {
		return
	}
	s.name = call.Name
	if rest, ok := strings.CutPrefix(string(call.Args), s.args.String()); ok {
		s.args.WriteString(rest)
	}
	e.write(s)
	s.ready = true
	e.put(&frame{kind: callReady, call: s, text: string(call.Args)})
}

// whole sends what is missing of a complete reply.
func (e *Encoder) whole(step int, r *llm.Response) {
	e.finish = r.Finish
	e.held = false
	index := 0
	n := 0
	for _, p := range r.Message.Parts {
		for e.gone[index] {
			index++
		}
		text := ""
		reasoning := false
		switch p := p.(type) {
		case llm.Text:
			text = p.Text
		case llm.Reasoning:
			text = p.Text
			reasoning = true
		case llm.Media:
			e.file(p)
		case llm.ToolCall:
			e.ready(e.known(e.key(step, n), p.Name), p)
			n++
		}
		said := ""
		if b := e.texts[index]; b != nil {
			said = b.String()
		}
		if rest, ok := strings.CutPrefix(text, said); ok {
			e.say(step, index, reasoning, rest)
		}
		index++
	}
	e.shut()
}

func (e *Encoder) file(m llm.Media) {
	e.shut()
	e.put(&frame{kind: file, media: m})
}

// completed sends the end of a call, or its question.
func (e *Encoder) completed(x *pawl.Execution) {
	f := &frame{kind: callFailed, call: e.known(x.Key, x.Call.Name), exec: x}
	e.ready(f.call, x.Call)
	switch x.Outcome {
	case pawl.OutcomePending, pawl.OutcomeUnknown:
		for i := range x.Pending {
			e.ask(&x.Pending[i])
		}
		return
	case pawl.OutcomeOK:
		f.kind = callOK
	case pawl.OutcomeDenied:
		if f.call.asked {
			f.kind = callDenied
		}
	}
	e.put(f)
	if list, ok := x.Values["pawl.todo"]; ok && strings.Count(string(x.Key), "/") == 2 {
		e.put(&frame{kind: output, name: "todo", data: list})
	}
	for _, p := range x.Result.Parts {
		if m, ok := p.(llm.Media); ok {
			e.file(m)
		}
	}
}

// ask sends a question. A client executes passive calls without one.
func (e *Encoder) ask(w *pawl.PendingCall) {
	s := e.known(w.Key, w.Call.Name)
	s.client = s.client || w.Passive
	e.ready(s, w.Call)
	if !w.Passive {
		s.asked = true
		e.put(&frame{kind: question, call: s, ask: w})
	}
}

// answer sends the result of the tool that ended the run as the text of one more step. A client shows
// the results of tools apart from the answer.
func (e *Encoder) answer(step int, a *pawl.Answer) {
	e.close()
	e.reply()
	e.step = step
	e.steps++
	e.put(&frame{kind: stepStarted, step: step})
	e.say(step, 0, false, a.Text)
}

func (e *Encoder) end(ev *pawl.Event) {
	if ev.Result == nil {
		ev.Result = &pawl.Result{Stop: pawl.StopFailed}
	}
	for i, w := range ev.Result.Pending {
		if s := e.calls[w.Key]; s == nil || !s.asked || e.o.Open[w.Key] {
			e.ask(&ev.Result.Pending[i])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(e.inner)) {
		if in := e.inner[key]; !in.ended {
			in.end(&pawl.Event{Result: &pawl.Result{Stop: pawl.StopPending}})
			e.out = append(e.out, in.flush()...)
		}
	}
	if a := ev.Result.Answer; a != nil && a.From == pawl.AnswerTool && a.Text != "" && e.run == "run" {
		e.answer(ev.Step+1, a)
	}
	e.close()
	if ev.Result.Output != nil {
		e.put(&frame{kind: output, name: "output", data: ev.Result.Output})
	}
	e.put(&frame{kind: ended, event: ev, text: string(e.finish)})
	e.ended = true
}
