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
	o    Options
	key  llm.Key    // of the run; "run" is the run of the client
	sent *[]encoded // what the messages of the client are made from; shared with nested runs
}

// encoded is a frame with the form that has encoded it.
type encoded struct {
	a *agui
	f *frame
}

// id returns the ID of a call, or of a nested run.
func (a *agui) id(key llm.Key) string { return a.o.Run + strings.TrimPrefix(string(key), "run") }

// put returns an event of the run.
func (a *agui) put(kind string, pairs ...any) []object {
	o := frameOf(kind, pairs...)
	if a.key != "run" {
		o["subagentRunId"] = a.id(a.key)
	}
	return []object{o}
}

func (a *agui) encode(f *frame) []object {
	step := strconv.Itoa(f.step)
	switch f.kind {
	case started:
		return a.begin()
	case stepStarted:
		return a.put("STEP_STARTED", "stepName", "step "+step)
	case stepEnded:
		return a.put("STEP_FINISHED", "stepName", "step "+step)
	case textStarted, textDelta, textEnded, callStarted, callDelta, callOK, callFailed, callDenied:
		*a.sent = append(*a.sent, encoded{a, f})
		return a.tell(f, false)
	case callReady:
		*a.sent = append(*a.sent, encoded{a, f})
		var was, is any
		_ = json.Unmarshal([]byte(f.call.args.String()), &was) // before a repair it may be no JSON
		if json.Unmarshal([]byte(f.text), &is) == nil && !reflect.DeepEqual(was, is) {
			return append(a.put("TOOL_CALL_END", "toolCallId", a.id(f.call.key)), a.again()...)
		}
		return a.tell(f, false)
	case file:
		return a.put("CUSTOM", "name", "pawl.file", "value", object{"url": mediaURL(f.media), "mediaType": f.media.MIME})
	case report:
		if f.name == "progress" {
			key, _ := f.data.(object)["key"].(llm.Key)
			return a.put("ACTIVITY_SNAPSHOT", "messageId", a.id(key)+".progress", "activityType", "pawl.progress", "content", f.data, "replace", true)
		}
		return a.put("CUSTOM", "name", "pawl."+f.name, "value", f.data)
	case output:
		if f.name == "todo" { // the other output is the result of the run
			return a.put("STATE_SNAPSHOT", "snapshot", object{f.name: f.data})
		}
	case steered:
		return a.put("CUSTOM", "name", "pawl.steered", "value", object{"id": f.id, "text": f.message.Text()})
	case retracted:
		*a.sent = slices.DeleteFunc(*a.sent, func(s encoded) bool {
			return s.a == a && s.f.call == nil && s.f.id == f.id
		})
		return a.again()
	case ended:
		return append(a.shut(a.key), a.end(f.event)...)
	case failed:
		return a.put("RUN_ERROR", "message", f.text, "code", "failed")
	}
	return nil // a question is part of the end
}

// begin encodes the start of a run. A client that sends its request again has messages that follow:
// they are removed.
func (a *agui) begin() []object {
	if i := strings.LastIndexByte(string(a.key), '/'); i >= 0 {
		return a.put("SUBAGENT_STARTED", "name", a.key[i+1:], "parentToolCallId", a.id(a.key[:i]))
	}
	out := a.put("RUN_STARTED", "threadId", a.o.Thread, "runId", a.o.Request, "metadata", object{"pawl": object{"run": a.o.Run}})
	if a.o.Protocol == AGUI1 {
		out[0]["protocolVersion"] = "1.0"
	}
	kept := []object{}
	reasoning := []object{}
	for _, m := range a.o.Messages {
		id, _ := m["id"].(string)
		if run, key := RunOf(id); run != a.o.Run || stepOf(key) <= a.o.After {
			kept = append(kept, m)
		} else if m["role"] == "reasoning" {
			reasoning = append(reasoning, object{"id": id, "role": "reasoning", "content": ""})
		}
	}
	if len(kept) < len(a.o.Messages) {
		out = append(out, object{"type": "MESSAGES_SNAPSHOT", "messages": slices.Concat(kept, reasoning)})
		a.o.Messages = kept
	}
	return out
}

// again encodes the run from its beginning, behind a snapshot of the messages before. The snapshot
// has reasoning without its text, because a client keeps its own unless a snapshot has some.
func (a *agui) again() []object {
	all, out := slices.Clone(a.o.Messages), a.shut("run")
	for _, t := range *a.sent {
		if t.f.kind == textStarted && t.f.reasoning {
			id, _ := t.a.message(t.f)
			m := t.a.put("", "id", id, "role", "reasoning", "content", "")[0]
			delete(m, "type")
			all = append(all, m)
		}
	}
	out = append(out, object{"type": "MESSAGES_SNAPSHOT", "messages": append([]object{}, all...)})
	for _, t := range *a.sent {
		out = append(out, t.a.tell(t.f, true)...)
	}
	return out
}

// shut ends the arguments of the calls of a run, and of runs in it, that have not ended.
func (a *agui) shut(run llm.Key) (out []object) {
	for _, t := range *a.sent {
		if t.f.kind == callStarted && !t.f.call.ready && strings.HasPrefix(string(t.f.call.key), string(run)) {
			out = append(out, frameOf("TOOL_CALL_END", "toolCallId", a.id(t.f.call.key)))
		}
	}
	return out
}

// message returns the ID of the message of a text or a call, and of the call. A step has one
// message.
func (a *agui) message(f *frame) (id, call string) {
	step, part := f.step, ""
	if f.call != nil {
		call = a.id(f.call.key)
		step = stepOf("run" + llm.Key(strings.TrimPrefix(string(f.call.key), string(a.key))))
	} else if f.reasoning {
		part = f.id[strings.IndexByte(f.id, '.'):]
	}
	return a.id(a.key) + "." + strconv.Itoa(step) + part, call
}

// tell encodes a part of a message. The second time, the arguments of a call are complete.
func (a *agui) tell(f *frame, again bool) []object {
	id, call := a.message(f)
	prefix := "TEXT_MESSAGE_"
	role := "assistant"
	var begin, end []object
	if f.reasoning {
		prefix = "REASONING_MESSAGE_"
		role = "reasoning"
		begin, end = a.put("REASONING_START", "messageId", id), a.put("REASONING_END", "messageId", id)
	}
	switch f.kind {
	case textStarted:
		return append(begin, a.put(prefix+"START", "messageId", id, "role", role)...)
	case textDelta:
		return a.put(prefix+"CONTENT", "messageId", id, "delta", f.text)
	case textEnded:
		return append(a.put(prefix+"END", "messageId", id), end...)
	case callStarted:
		return a.put("TOOL_CALL_START", "toolCallId", call, "toolCallName", f.call.name, "parentMessageId", id)
	case callDelta:
		if again && f.call.ready {
			return nil
		}
		return a.put("TOOL_CALL_ARGS", "toolCallId", call, "delta", f.text)
	case callReady:
		if again {
			end = a.put("TOOL_CALL_ARGS", "toolCallId", call, "delta", f.text)
		}
		return append(end, a.put("TOOL_CALL_END", "toolCallId", call)...)
	}
	text := failureOf(f.exec)
	if f.kind == callOK {
		text = cmp.Or(string(f.exec.Result.Data), f.exec.Result.Text())
	} else if o := string(f.exec.Outcome); !strings.HasPrefix(strings.ToLower(text), o) {
		text = o + ": " + text
	}
	return a.put("TOOL_CALL_RESULT", "messageId", call+".result", "toolCallId", call, "content", text, "role", "tool")
}

// end encodes the end of a run.
func (a *agui) end(ev *pawl.Event) []object {
	r := ev.Result
	outcome := object{"type": "success"}
	cause := cmp.Or(ev.Error, r.Cause, "the run stopped without an answer")
	bad := r.Stop == pawl.StopFailed || r.Stop == pawl.StopStalled
	switch {
	case a.key != "run" && (bad || r.Stop == pawl.StopCancelled):
		return a.put("SUBAGENT_ERROR", "message", cause)
	case a.key != "run":
		if r.Stop == pawl.StopPending {
			outcome["type"] = "suspended"
		}
		return a.put("SUBAGENT_FINISHED", "outcome", outcome)
	case bad:
		return a.put("RUN_ERROR", "message", cause, "code", "model_failed")
	case r.Stop == pawl.StopCancelled && a.o.Protocol == AGUI0:
		return a.put("RUN_ERROR", "message", cause, "code", "cancelled")
	case r.Stop == pawl.StopCancelled:
		outcome["type"] = "cancelled"
	case r.Stop == pawl.StopPending:
		a.pending(r.Pending, outcome)
	}
	u := r.Spent.Usage
	out := a.put("RUN_FINISHED", "threadId", a.o.Thread, "runId", a.o.Request, "outcome", outcome, "usage",
		[]object{{"inputTokens": u.Input, "outputTokens": u.Output, "totalTokens": u.Input + u.Output}})
	if r.Output != nil {
		out[0]["result"] = r.Output
	}
	if r.Stop == pawl.StopLimit {
		out = append(a.put("CUSTOM", "name", "pawl.stop", "value", object{"stop": r.Stop, "limit": r.Limit, "cause": r.Cause}), out...)
	}
	return out
}

// pending adds the open calls to the outcome: as interrupts if one of them is a question. These do
// not expire in the client, which then refuses each answer: an outdated one is asked for again.
func (a *agui) pending(open []pawl.PendingCall, outcome object) {
	var ids []string
	var all []object
	asks := false
	for i := range open {
		w, id := &open[i], a.id(open[i].Key)
		about := questionOf(w)
		schema := object{}
		if !w.Passive {
			schema = object{"type": "object", "required": []string{"approved"}, "properties": object{"approved": object{"type": "boolean"},
				"reason": object{"type": "string"}, "args": json.RawMessage(cmp.Or(string(w.Schema), "{}"))}}
		}
		about["key"], about["args"] = w.Key, jsonOr(string(w.Call.Args))
		all = append(all, object{"id": id + "." + w.Digest, "reason": "tool_call", "toolCallId": id, "responseSchema": schema,
			"message": cmp.Or(w.Why, "The call of "+w.Call.Name+" waits for an answer."), "metadata": object{"pawl": about}})
		ids, asks = append(ids, id), asks || !w.Passive
	}
	if asks {
		outcome["type"] = "interrupt"
		outcome["interrupts"] = all
	} else if a.o.Protocol == AGUI1 {
		outcome["pendingToolCallIds"] = ids
	}
}

// nested passes an event of a run that is nested in a call to the encoder of that run. A client
// that has seen the call has seen the run up to the questions in it.
func (e *Encoder) nested(ev pawl.Event) {
	in := e.inner[ev.Run]
	if in == nil {
		o := e.o
		o.After = 0
		if e.o.After > 0 && stepOf(ev.Run) <= e.o.After {
			for key := range e.o.Open {
				if rest, ok := strings.CutPrefix(string(key), string(ev.Run)+"/"); ok {
					o.After = max(o.After, stepOf(llm.Key("run/"+rest)))
				}
			}
			if o.After == 0 {
				return
			}
		}
		in = New(o)
		in.run, in.calls, in.form = ev.Run, e.calls, &agui{o: e.o, key: ev.Run, sent: e.form.(*agui).sent}
		e.inner[ev.Run] = in
		in.put(&frame{kind: started})
	}
	e.shut()
	e.out = append(e.out, in.Event(ev)...)
}
