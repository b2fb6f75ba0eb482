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

	// Thread is the AG-UI client's ID of the conversation.
	Thread string
	// Request is the AG-UI client's ID of its request.
	Request string
	// Messages are the messages that an AG-UI client has. Nil means none.
	Messages []map[string]any
	// Inner, with AG-UI 1.0, adds the runs that are nested in calls to the stream.
	Inner bool

	// ErrorText returns the text that the client of Write gets in place of the error of a failed
	// run. Nil means "the run failed", with the code of a *llm.ProviderError: an error may contain
	// addresses and paths.
	ErrorText func(error) string

	Beat time.Duration // Write: interval of comments in a silent stream; 0 means 10 s
	Wait time.Duration // Write: time for a client to receive data; 0 means no limit
}

// Encoder encodes the events of one run. Events must be passed in order. It is not safe for
// concurrent use.
type Encoder struct {
	options Options
	run     llm.Key // key of the run whose events are encoded
	form    form
	resets  bool // a step can be taken back and sent again
	out     [][]byte

	inner  map[llm.Key]*Encoder     // of the runs nested in calls, with Options.Inner
	calls  map[llm.Key]*shownCall   // shared with inner
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

// New returns an Encoder.
func New(o Options) *Encoder {
	e := &Encoder{
		options: o,
		run:     "run",
		form:    &aisdk{options: o},
		resets:  o.Protocol == AISDK7,
		inner:   map[llm.Key]*Encoder{},
		calls:   map[llm.Key]*shownCall{},
	}
	if o.Protocol == AGUI0 || o.Protocol == AGUI1 {
		e.form = &agui{options: o, key: "run", sent: new([]encoded)}
	}
	e.forgetReply()
	return e
}

// Begin returns the first frames of the stream, each one JSON value.
func (e *Encoder) Begin() [][]byte {
	e.emit(&frame{kind: started})
	return e.flush()
}

// Fail ends a stream whose events have ended without run_ended.
func (e *Encoder) Fail(message string) [][]byte {
	if !e.ended {
		e.endStep()
		e.emit(&frame{kind: failed, text: message})
		e.ended = true
	}
	return e.flush()
}

// Ended reports whether the last frame was returned.
func (e *Encoder) Ended() bool { return e.ended }

// flush returns the frames that were encoded since its last call.
func (e *Encoder) flush() [][]byte {
	out := e.out
	e.out = nil
	return out
}

// emit encodes a frame.
func (e *Encoder) emit(f *frame) {
	for _, o := range e.form.encode(f) {
		b, err := json.Marshal(o)
		if err == nil {
			e.out = append(e.out, b)
		}
	}
}

// forgetReply forgets the parts of the reply before.
func (e *Encoder) forgetReply() {
	e.texts = map[int]*strings.Builder{}
	e.keys = map[int]llm.Key{}
	e.gone = map[int]bool{}
}

// Event returns the frames of an event. At most one text is open in all runs.
func (e *Encoder) Event(ev pawl.Event) [][]byte {
	for key, in := range e.inner {
		if key != ev.Run {
			in.endText()
			e.out = append(e.out, in.flush()...)
		}
	}
	if !e.ended {
		e.dispatch(ev)
	}
	return e.flush()
}

// dispatch encodes an event, if the client has not seen it.
func (e *Encoder) dispatch(ev pawl.Event) {
	own := ev.Run == e.run
	switch {
	case !own && e.showsInner():
		e.nested(ev)

	case ev.Kind == pawl.EventRunStarted && e.options.Passive == nil && ev.Run == "run":
		e.options.Passive = func(name string) bool {
			return slices.ContainsFunc(ev.Offered, func(t *pawl.Tool) bool { return t.Name == name && t.Passive })
		}

	case ev.Kind == pawl.EventCallCompleted && ev.Execution != nil:
		if e.awaits(ev.Execution.Key) || own && !e.wasSeen(ev) {
			e.completed(ev.Execution)
		}

	case !own:
	case ev.Kind == pawl.EventRunEnded || !e.wasSeen(ev):
		e.event(&ev)
	}
}

// showsInner reports whether the stream contains the runs that are nested in calls.
func (e *Encoder) showsInner() bool {
	return e.options.Inner && e.options.Protocol == AGUI1 && e.run == "run"
}

// awaits reports whether the client knows the call and waits for its end.
func (e *Encoder) awaits(key llm.Key) bool {
	_, open := e.options.Open[key]
	return open || e.calls[key] != nil
}

// wasSeen reports whether the client saw the event in an earlier stream.
func (e *Encoder) wasSeen(ev pawl.Event) bool {
	return ev.Kind != pawl.EventGap && ev.Step <= e.options.After && e.options.After > 0
}

// event encodes an event of the run.
func (e *Encoder) event(ev *pawl.Event) {
	switch ev.Kind {
	case pawl.EventStep:
		e.endStep()
	case pawl.EventGap:
		e.held = true
	case pawl.EventTextRetracted:
		e.retract(ev)
	case pawl.EventStepStarted, pawl.EventText, pawl.EventReasoning, pawl.EventCallDelta, pawl.EventCallReady,
		pawl.EventResponseReceived:
		if e.step == 0 || ev.Kind == pawl.EventStepStarted {
			e.beginStep(ev.Step)
		}
		e.replyEvent(ev)

	case pawl.EventProgress:
		e.emit(&frame{kind: report, name: "progress", data: object{"key": ev.Path, "text": ev.Text, "data": ev.Data}})
	case pawl.EventNotice:
		e.emit(&frame{kind: report, name: "notice", data: object{"code": ev.Code, "text": ev.Text, "data": ev.Data}})
	case pawl.EventSteered:
		e.endText()
		e.emit(&frame{kind: steered, id: fmt.Sprintf("%s.steered.%d", e.options.Run, ev.Seq), message: ev.Message})
	case pawl.EventRunEnded:
		e.finishRun(ev)
	}
}

// beginStep begins a step, and with it a reply.
func (e *Encoder) beginStep(step int) {
	e.endStep()
	e.forgetReply()
	e.held = false
	e.step = max(step, 1)
	e.steps++
	e.emit(&frame{kind: stepStarted, step: e.step})
}

// replyEvent encodes an event of a reply.
func (e *Encoder) replyEvent(ev *pawl.Event) {
	switch ev.Kind {
	case pawl.EventText, pawl.EventReasoning:
		if !e.held {
			e.say(ev.Step, ev.Index, ev.Kind == pawl.EventReasoning, ev.Text)
		}
	case pawl.EventCallDelta:
		if s := e.callAt(ev); s != nil && !e.held {
			s.name = ev.Call.Name
			s.args.WriteString(ev.Text)
			e.sendArguments(s)
		}
	case pawl.EventCallReady:
		if s := e.callAt(ev); s != nil {
			e.sendRest(s, *ev.Call)
		}
	case pawl.EventResponseReceived:
		if ev.Response != nil {
			e.completeReply(ev.Step, ev.Response)
		}
	}
}

// retract takes a part of a reply back. In a protocol that can only take back a whole step, what
// remains of it is sent again with the whole reply.
func (e *Encoder) retract(ev *pawl.Event) {
	e.endText()
	e.gone[ev.Index] = true
	if key, isCall := e.keys[ev.Index]; isCall {
		call := e.calls[key]
		delete(e.calls, key)
		if call.began { // otherwise the client does not know it
			e.emit(&frame{kind: callGone, step: ev.Step, call: call})
		}
	} else {
		e.emit(&frame{kind: retracted, step: ev.Step, id: partID(ev.Step, ev.Index), text: ev.Text})
	}
	if !e.resets {
		return
	}

	gone := e.gone
	maps.DeleteFunc(e.calls, func(_ llm.Key, s *shownCall) bool { return s.step == e.steps || !s.ready })
	e.forgetReply()
	e.gone = gone
	e.held = true
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
		e.endText()
		e.part = &frame{kind: textStarted, step: step, id: id, reasoning: reasoning}
		e.emit(e.part)
	}
	if e.texts[index] == nil {
		e.texts[index] = new(strings.Builder)
	}
	e.texts[index].WriteString(text)
	e.emit(&frame{kind: textDelta, step: step, id: id, reasoning: reasoning, text: text})
}

// endText ends the open text.
func (e *Encoder) endText() {
	if p := e.part; p != nil {
		e.part = nil
		e.emit(&frame{kind: textEnded, step: p.step, id: p.id, reasoning: p.reasoning})
	}
}

// endStep ends the open text and the open step.
func (e *Encoder) endStep() {
	e.endText()
	if e.step > 0 {
		e.emit(&frame{kind: stepEnded, step: e.step})
		e.step = 0
	}
}

// completeReply sends what is missing of a complete reply.
func (e *Encoder) completeReply(step int, r *llm.Response) {
	e.finish = r.Finish
	e.held = false
	index := 0 // of the part
	calls := 0

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
			e.sendRest(e.callOf(e.key(step, calls), p.Name), p)
			calls++
		}

		said := ""
		if b := e.texts[index]; b != nil {
			said = b.String()
		}

		// The client has said of the text already, unless the reply contradicts its fragments.
		if rest, ok := strings.CutPrefix(text, said); ok {
			e.say(step, index, reasoning, rest)
		}
		index++
	}
	e.endText()
}

// file sends a file.
func (e *Encoder) file(m llm.Media) {
	e.endText()
	e.emit(&frame{kind: file, media: m})
}

// answer sends the result of the tool that ended the run as the text of one more step. A client
// shows the results of tools apart from the answer.
func (e *Encoder) answer(step int, a *pawl.Answer) {
	e.endStep()
	e.forgetReply()
	e.step = step
	e.steps++
	e.emit(&frame{kind: stepStarted, step: step})
	e.say(step, 0, false, a.Text)
}

// finishRun sends the end of the run, after the questions that were not asked.
func (e *Encoder) finishRun(ev *pawl.Event) {
	if ev.Result == nil {
		ev.Result = &pawl.Result{Stop: pawl.StopFailed}
	}
	for i, w := range ev.Result.Pending {
		s := e.calls[w.Key]
		asked := s != nil && s.asked && !e.options.Open[w.Key]
		if !asked {
			e.askAbout(&ev.Result.Pending[i])
		}
	}
	e.returnCalls(ev)

	// A nested run that has not ended waits with this one.
	for _, key := range slices.Sorted(maps.Keys(e.inner)) {
		if in := e.inner[key]; !in.ended {
			in.finishRun(&pawl.Event{Result: &pawl.Result{Stop: pawl.StopPending}})
			e.out = append(e.out, in.flush()...)
		}
	}

	a := ev.Result.Answer
	byTool := a != nil && a.From == pawl.AnswerTool && a.Text != ""
	if byTool && e.run == "run" {
		e.answer(ev.Step+1, a)
	}
	e.endStep()
	if ev.Result.Output != nil {
		e.emit(&frame{kind: output, name: "output", data: ev.Result.Output})
	}
	e.emit(&frame{kind: ended, event: ev, text: string(e.finish)})
	e.ended = true
}
