package uistream

// agui.go: the events of AG-UI.

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// agui encodes the events of a run, which may be nested in a call. IDs of messages and calls begin
// with Options.Run, since the conversation of a client has several runs.
type agui struct {
	options Options
	key     llm.Key    // of the run; "run" is the run of the client
	sent    *[]encoded // what the messages of the client are made from; shared with nested runs
}

// encoded is a frame with the form that has encoded it.
type encoded struct {
	form  *agui
	frame *frame
}

// id returns the ID of a call, or of a nested run.
func (a *agui) id(key llm.Key) string { return a.options.Run + strings.TrimPrefix(string(key), "run") }

// event returns an event of the run.
func (a *agui) event(kind string, pairs ...any) []object {
	o := frameOf(kind, pairs...)
	if a.key != "run" {
		o["subagentRunId"] = a.id(a.key)
	}
	return []object{o}
}

// encode encodes a frame. What a message consists of is kept, for a snapshot of all messages.
func (a *agui) encode(f *frame) []object {
	step := strconv.Itoa(f.step)
	switch f.kind {
	case started:
		return a.begin()
	case stepStarted:
		return a.event("STEP_STARTED", "stepName", "step "+step)
	case stepEnded:
		return a.event("STEP_FINISHED", "stepName", "step "+step)
	case textStarted, textDelta, textEnded, callStarted, callDelta, callOK, callFailed, callDenied:
		*a.sent = append(*a.sent, encoded{a, f})
		return a.encodePart(f, false)
	case callReady:
		*a.sent = append(*a.sent, encoded{a, f})
		return a.encodeReady(f)
	case retracted:
		*a.sent = slices.DeleteFunc(*a.sent, func(s encoded) bool {
			return s.form == a && s.frame.call == nil && s.frame.id == f.id
		})
		return a.encodeAgain()
	case callGone:
		out := a.endArguments(f.call.key)
		*a.sent = slices.DeleteFunc(*a.sent, func(s encoded) bool { return s.frame.call == f.call })
		return append(out, a.encodeAgain()...)

	case ended:
		return append(a.endArguments(a.key), a.encodeEnd(f.event)...)
	case failed:
		return a.event("RUN_ERROR", "message", f.text, "code", "failed")
	}
	return a.encodeAside(f)
}

// encodeReady encodes the end of the arguments of a call. A client appends what it gets of them, so
// that arguments that were repaired need all messages again.
func (a *agui) encodeReady(f *frame) []object {
	var was, is any
	_ = json.Unmarshal([]byte(f.call.args.String()), &was) // before a repair it may be no JSON
	if json.Unmarshal([]byte(f.text), &is) == nil && !reflect.DeepEqual(was, is) {
		return append(a.event("TOOL_CALL_END", "toolCallId", a.id(f.call.key)), a.encodeAgain()...)
	}
	return a.encodePart(f, false)
}

// encodeAside encodes a frame that is no part of a message. A question has none: it is part of the
// end.
func (a *agui) encodeAside(f *frame) []object {
	switch f.kind {
	case file:
		about := object{"url": mediaURL(f.media), "mediaType": f.media.MIME}
		return a.event("CUSTOM", "name", "pawl.file", "value", about)

	case report:
		if f.name != "progress" {
			return a.event("CUSTOM", "name", "pawl."+f.name, "value", f.data)
		}
		key, _ := f.data.(object)["key"].(llm.Key)
		return a.event("ACTIVITY_SNAPSHOT",
			"messageId", a.id(key)+".progress",
			"activityType", "pawl.progress",
			"content", f.data,
			"replace", true)

	case output:
		if f.name == "todo" { // the other output is the result of the run
			return a.event("STATE_SNAPSHOT", "snapshot", object{f.name: f.data})
		}
	case steered:
		return a.event("CUSTOM", "name", "pawl.steered", "value", object{"id": f.id, "text": f.message.Text()})
	}
	return nil
}

// begin encodes the start of a run. A client that sends its request again has messages that follow:
// they are removed.
func (a *agui) begin() []object {
	if i := strings.LastIndexByte(string(a.key), '/'); i >= 0 {
		return a.event("SUBAGENT_STARTED", "name", a.key[i+1:], "parentToolCallId", a.id(a.key[:i]))
	}
	about := object{"pawl": object{"run": a.options.Run}}
	out := a.event("RUN_STARTED", "threadId", a.options.Thread, "runId", a.options.Request, "metadata", about)
	if a.options.Protocol == AGUI1 {
		out[0]["protocolVersion"] = "1.0"
	}

	kept := []object{}
	reasoning := []object{}
	for _, m := range a.options.Messages {
		id, _ := m["id"].(string)
		if run, key := RunOf(id); run != a.options.Run || stepOf(key) <= a.options.After {
			kept = append(kept, m)
		} else if m["role"] == "reasoning" {
			reasoning = append(reasoning, object{"id": id, "role": "reasoning", "content": ""})
		}
	}

	if len(kept) < len(a.options.Messages) {
		out = append(out, object{"type": "MESSAGES_SNAPSHOT", "messages": slices.Concat(kept, reasoning)})
		a.options.Messages = kept
	}
	return out
}

// encodeAgain encodes the run from its beginning, behind a snapshot of the messages before. The
// snapshot has reasoning without its text, because a client keeps its own unless a snapshot has
// some.
func (a *agui) encodeAgain() []object {
	all := slices.Clone(a.options.Messages)
	out := a.endArguments("run")
	for _, t := range *a.sent {
		if t.frame.kind == textStarted && t.frame.reasoning {
			id, _ := t.form.message(t.frame)
			m := t.form.event("", "id", id, "role", "reasoning", "content", "")[0]
			delete(m, "type")
			all = append(all, m)
		}
	}
	out = append(out, object{"type": "MESSAGES_SNAPSHOT", "messages": append([]object{}, all...)})
	for _, t := range *a.sent {
		out = append(out, t.form.encodePart(t.frame, true)...)
	}
	return out
}

// endArguments ends the arguments of the calls of a run, and of runs in it, that have not ended.
func (a *agui) endArguments(run llm.Key) (out []object) {
	for _, t := range *a.sent {
		call := t.frame.call
		if t.frame.kind != callStarted || call.ready {
			continue
		}
		if strings.HasPrefix(string(call.key), string(run)) {
			out = append(out, frameOf("TOOL_CALL_END", "toolCallId", a.id(call.key)))
		}
	}
	return out
}

// message returns the ID of the message of a text or a call, and of the call. A step has one
// message.
func (a *agui) message(f *frame) (id, call string) {
	step := f.step
	part := ""
	if f.call != nil {
		call = a.id(f.call.key)
		step = stepOf("run" + llm.Key(strings.TrimPrefix(string(f.call.key), string(a.key))))
	} else if f.reasoning {
		part = f.id[strings.IndexByte(f.id, '.'):]
	}
	return a.id(a.key) + "." + strconv.Itoa(step) + part, call
}

// encodePart encodes a part of a message. The second time, the arguments of a call are complete.
func (a *agui) encodePart(f *frame, again bool) []object {
	id, call := a.message(f)
	prefix := "TEXT_MESSAGE_"
	role := "assistant"
	var begin, end []object
	if f.reasoning {
		prefix = "REASONING_MESSAGE_"
		role = "reasoning"
		begin = a.event("REASONING_START", "messageId", id)
		end = a.event("REASONING_END", "messageId", id)
	}

	switch f.kind {
	case textStarted:
		return append(begin, a.event(prefix+"START", "messageId", id, "role", role)...)
	case textDelta:
		return a.event(prefix+"CONTENT", "messageId", id, "delta", f.text)
	case textEnded:
		return append(a.event(prefix+"END", "messageId", id), end...)

	case callStarted:
		return a.event("TOOL_CALL_START", "toolCallId", call, "toolCallName", f.call.name, "parentMessageId", id)
	case callDelta:
		if again && f.call.ready {
			return nil
		}
		return a.event("TOOL_CALL_ARGS", "toolCallId", call, "delta", f.text)
	case callReady:
		if again {
			end = a.event("TOOL_CALL_ARGS", "toolCallId", call, "delta", f.text)
		}
		return append(end, a.event("TOOL_CALL_END", "toolCallId", call)...)
	}
	return a.encodeResult(f, call)
}

// encodeResult encodes the end of a call. A failure begins with its outcome.
func (a *agui) encodeResult(f *frame, call string) []object {
	text := failureOf(f.exec)
	if f.kind == callOK {
		text = cmp.Or(string(f.exec.Result.Data), f.exec.Result.Text())
	} else if o := string(f.exec.Outcome); !strings.HasPrefix(strings.ToLower(text), o) {
		text = o + ": " + text
	}
	return a.event("TOOL_CALL_RESULT", "messageId", call+".result", "toolCallId", call, "content", text, "role", "tool")
}

// encodeEnd encodes the end of a run.
func (a *agui) encodeEnd(ev *pawl.Event) []object {
	r := ev.Result
	outcome := object{"type": "success"}
	cause := cmp.Or(ev.Error, r.Cause, "the run stopped without an answer")
	class := r.Stop.Class()
	if a.key != "run" {
		return a.encodeNestedEnd(class, cause)
	}

	switch class {
	case pawl.ClassAnswered, pawl.ClassLimited:
	case pawl.ClassWaiting:
		a.pending(r.Pending, outcome)
	case pawl.ClassCancelled:
		// Only AG-UI 1.0 has an outcome for it.
		if a.options.Protocol == AGUI0 {
			return a.event("RUN_ERROR", "message", cause, "code", "cancelled")
		}
		outcome["type"] = "cancelled"
	default:
		return a.event("RUN_ERROR", "message", cause, "code", "model_failed")
	}

	u := r.Spent.Usage
	usage := object{"inputTokens": u.Input, "outputTokens": u.Output, "totalTokens": u.Input + u.Output}
	out := a.event("RUN_FINISHED",
		"threadId", a.options.Thread,
		"runId", a.options.Request,
		"outcome", outcome,
		"usage", []object{usage})
	if r.Output != nil {
		out[0]["result"] = r.Output
	}
	if class == pawl.ClassLimited {
		// RUN_FINISHED is the last event, so that the reason of the stop precedes it.
		about := object{"stop": r.Stop, "limit": r.Limit, "cause": r.Cause}
		out = append(a.event("CUSTOM", "name", "pawl.stop", "value", about), out...)
	}
	return out
}

// encodeNestedEnd encodes the end of a run that is nested in a call.
func (a *agui) encodeNestedEnd(class pawl.StopClass, cause string) []object {
	outcome := "success"
	switch class {
	case pawl.ClassAnswered, pawl.ClassLimited:
	case pawl.ClassWaiting:
		outcome = "suspended"
	default:
		return a.event("SUBAGENT_ERROR", "message", cause)
	}
	return a.event("SUBAGENT_FINISHED", "outcome", object{"type": outcome})
}

// pending adds the open calls to the outcome: as interrupts if one of them is a question. These do
// not expire in the client, which then refuses each answer: an outdated one is asked for again.
func (a *agui) pending(open []pawl.PendingCall, outcome object) {
	var ids []string
	var all []object
	asks := false
	for i := range open {
		w := &open[i]
		id := a.id(w.Key)
		ids = append(ids, id)
		all = append(all, interruptOf(w, id))
		asks = asks || !w.Passive
	}
	if asks {
		outcome["type"] = "interrupt"
		outcome["interrupts"] = all
	} else if a.options.Protocol == AGUI1 {
		outcome["pendingToolCallIds"] = ids
	}
}

// interruptOf returns a pending call as an interrupt.
func interruptOf(w *pawl.PendingCall, id string) object {
	about := questionOf(w)
	about["key"] = w.Key
	about["args"] = jsonOr(string(w.Call.Args))

	schema := object{}
	if !w.Passive {
		schema = object{
			"type":     "object",
			"required": []string{"approved"},
			"properties": object{
				"approved": object{"type": "boolean"},
				"reason":   object{"type": "string"},
				"args":     json.RawMessage(cmp.Or(string(w.Schema), "{}")),
			},
		}
	}
	return object{
		"id":             id + "." + w.Digest,
		"reason":         "tool_call",
		"toolCallId":     id,
		"responseSchema": schema,
		"message":        cmp.Or(w.Why, "The call of "+w.Call.Name+" waits for an answer."),
		"metadata":       object{"pawl": about},
	}
}

// nested passes an event of a run that is nested in a call to the encoder of that run. A client
// that has seen the call has seen the run up to the questions in it.
func (e *Encoder) nested(ev pawl.Event) {
	in := e.inner[ev.Run]
	if in == nil {
		after, shown := e.seenOf(ev.Run)
		if !shown {
			return
		}
		o := e.options
		o.After = after
		in = New(o)
		in.run = ev.Run
		in.calls = e.calls
		in.form = &agui{options: e.options, key: ev.Run, sent: e.form.(*agui).sent}
		e.inner[ev.Run] = in
		in.emit(&frame{kind: started})
	}
	e.endText()
	e.out = append(e.out, in.Event(ev)...)
}

// seenOf returns the step of a nested run up to which the client has seen it; 0 means nothing.
// shown is false for a run that the client has seen to its end.
func (e *Encoder) seenOf(run llm.Key) (after int, shown bool) {
	if e.options.After == 0 || stepOf(run) > e.options.After {
		return 0, true
	}
	for key := range e.options.Open {
		if rest, ok := strings.CutPrefix(string(key), string(run)+"/"); ok {
			after = max(after, stepOf(llm.Key("run/"+rest)))
		}
	}
	return after, after > 0
}
