package uistream

// call.go: the calls in a stream, and the questions about them.

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// shownCall is a call that the client knows.
type shownCall struct {
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

// callAt returns the call of an event, which has no key: calls of a reply are numbered by their
// index. Nil means that a call of a smaller index came late: it is sent when the reply is whole.
func (e *Encoder) callAt(ev *pawl.Event) *shownCall {
	if ev.Call == nil {
		return nil
	}

	key, numbered := e.keys[ev.Index]
	if !numbered {
		for i := range e.keys {
			if i > ev.Index {
				return nil
			}
		}
		key = e.key(ev.Step, len(e.keys))
		e.keys[ev.Index] = key
	}
	return e.callOf(key, ev.Call.Name)
}

// key returns the key of the n-th call of a reply.
func (e *Encoder) key(step, n int) llm.Key {
	return llm.Key(fmt.Sprintf("%s/%d/%d", e.run, step, n))
}

// callOf returns the call with a key, which the client may not know yet.
func (e *Encoder) callOf(key llm.Key, name string) *shownCall {
	if s := e.calls[key]; s != nil {
		return s
	}
	asked, open := e.options.Open[key]
	s := &shownCall{
		key:    key,
		name:   name,
		title:  titleOf(key, name),
		client: e.executes(name),
		began:  open,
		ready:  open,
		asked:  asked,
	}

	// A call that the client knows belongs to a step that it has seen.
	if !open {
		s.step = e.steps
	}
	e.calls[key] = s
	return s
}

// executes reports whether the client executes the tool with that name.
func (e *Encoder) executes(name string) bool {
	return e.options.Passive != nil && e.options.Passive(name)
}

// titleOf returns the agents around a nested call, and its name. "" means that it is not nested.
func titleOf(key llm.Key, name string) (title string) {
	segments := strings.Split(string(key), "/")
	if len(segments) <= 4 {
		return ""
	}
	for _, part := range segments[1:] {
		if _, err := strconv.Atoi(part); err != nil {
			title += part + " › "
		}
	}
	if title == "" {
		return ""
	}
	return title + name
}

// sendArguments sends the arguments of a call that were not sent.
func (e *Encoder) sendArguments(s *shownCall) {
	if s.name == "" || s.ready {
		return
	}
	e.endText()
	if !s.began {
		s.began = true
		s.client = e.executes(s.name)
		e.emit(&frame{kind: callStarted, call: s})
	}
	if rest := s.args.String()[s.sent:]; rest != "" {
		s.sent += len(rest)
		e.emit(&frame{kind: callDelta, call: s, text: rest})
	}
}

// sendRest sends the rest of a call.
func (e *Encoder) sendRest(s *shownCall, call llm.ToolCall) {
	if s.ready {
		return
	}
	s.name = call.Name
	if rest, ok := strings.CutPrefix(string(call.Args), s.args.String()); ok {
		s.args.WriteString(rest)
	}
	e.sendArguments(s)
	s.ready = true
	e.emit(&frame{kind: callReady, call: s, text: string(call.Args)})
}

// completed sends the end of a call, or its question.
func (e *Encoder) completed(x *pawl.Execution) {
	f := &frame{kind: callFailed, call: e.callOf(x.Key, x.Call.Name), exec: x}
	e.sendRest(f.call, x.Call)
	switch x.Outcome {
	case pawl.OutcomePending, pawl.OutcomeUnknown:
		for i := range x.Pending {
			e.askAbout(&x.Pending[i])
		}
		return
	case pawl.OutcomeOK:
		f.kind = callOK
	case pawl.OutcomeDenied:
		if f.call.asked {
			f.kind = callDenied
		}
	}

	e.emit(f)
	if list, ok := x.Values["pawl.todo"]; ok && strings.Count(string(x.Key), "/") == 2 {
		e.emit(&frame{kind: output, name: "todo", data: list})
	}
	for _, p := range x.Result.Parts {
		if m, ok := p.(llm.Media); ok {
			e.file(m)
		}
	}
}

// askAbout sends a question. A client executes passive calls without one.
func (e *Encoder) askAbout(w *pawl.PendingCall) {
	s := e.callOf(w.Key, w.Call.Name)
	s.client = s.client || w.Passive
	e.sendRest(s, w.Call)
	if !w.Passive {
		s.asked = true
		e.emit(&frame{kind: question, call: s, ask: w})
	}
}

// returnCalls sends the calls again that the run has returned at a limit, and not executed.
func (e *Encoder) returnCalls(ev *pawl.Event) {
	open := ev.Result.Calls()
	if ev.Result.Stop.Class() != pawl.ClassLimited || len(open) == 0 {
		return
	}
	var reply llm.Message
	for _, m := range slices.Backward(ev.Result.Messages) {
		if m.Role == llm.RoleAssistant {
			reply = m
			break
		}
	}

	for place, call := range reply.Calls() {
		isOpen := func(c llm.ToolCall) bool { return c.ID == call.ID }
		if !slices.ContainsFunc(open, isOpen) {
			continue
		}
		s := e.callOf(e.key(ev.Step, place), call.Name)
		e.sendRest(s, call)
		if s.client || s.asked {
			continue
		}
		s.client = true
		e.emit(&frame{kind: callReturned, call: s, text: string(call.Args)})
	}
}
