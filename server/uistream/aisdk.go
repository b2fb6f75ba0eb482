package uistream

// aisdk.go: the UI message stream of Vercel's AI SDK.

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// aisdk is the form of the AI SDK.
type aisdk struct{ options Options }

// ApprovalID returns the ID of a question: the key and the digest, which the answer needs.
func ApprovalID(w *pawl.PendingCall) string { return string(w.Key) + "." + w.Digest }

// ParseApprovalID returns the key and the digest in an ID of ApprovalID.
func ParseApprovalID(id string) (key llm.Key, digest string) {
	if i := strings.LastIndexByte(id, '.'); i >= 0 {
		return llm.Key(id[:i]), id[i+1:]
	}
	return "", ""
}

// one returns one frame of that type.
func one(kind string, pairs ...any) []object { return []object{frameOf(kind, pairs...)} }

func (a *aisdk) encode(f *frame) []object {
	switch f.kind {
	case started:
		return a.start()
	case stepStarted:
		return one("start-step")
	case stepEnded:
		return one("finish-step")
	case textStarted, textDelta, textEnded:
		return a.text(f)
	case callGone:
		if a.options.Protocol == AISDK7 {
			return one("reset-step")
		}
		return a.call(f)
	case callStarted, callDelta, callReady, callOK, callFailed, callDenied, question, callReturned:
		return a.call(f)
	case file:
		return one("file", "url", mediaURL(f.media), "mediaType", cmp.Or(f.media.MIME, "application/octet-stream"))
	case report:
		return one("data-pawl-"+f.name, "data", f.data, "transient", true)
	case output:
		return one("data-pawl-"+f.name, "id", f.name, "data", f.data)

	case retracted:
		if a.options.Protocol == AISDK7 {
			return one("reset-step")
		}
		return one("data-pawl-retracted", "id", f.id, "data", object{"id": f.id})
	case steered:
		parts := UIParts(f.message)
		if a.options.Protocol == AISDK7 && len(parts) > 0 {
			return one("steering-message", "id", f.id, "parts", parts)
		}
		return one("data-pawl-steered", "id", f.id, "data", object{"parts": parts})
	case ended:
		return []object{a.encodeEnd(f)}
	}
	return one("error", "errorText", cmp.Or(f.text, "the run has ended without a result"))
}

// start encodes the beginning of the message.
func (a *aisdk) start() []object {
	about := object{"pawl": object{"run": a.options.Run, "agent": a.options.Agent}}
	if a.options.Run == "" {
		return one("start", "messageMetadata", about)
	}
	return one("start", "messageId", a.options.Run, "messageMetadata", about)
}

// text encodes a part of a text or of reasoning.
func (a *aisdk) text(f *frame) []object {
	prefix := "text"
	if f.reasoning {
		prefix = "reasoning"
	}
	switch f.kind {
	case textStarted:
		return one(prefix+"-start", "id", f.id)
	case textDelta:
		return one(prefix+"-delta", "id", f.id, "delta", f.text)
	}
	return one(prefix+"-end", "id", f.id)
}

// UIParts returns the texts and files of a message as parts of a UIMessage.
func UIParts(m *llm.Message) []any {
	parts := []any{}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.Text:
			parts = append(parts, object{"type": "text", "text": p.Text})
		case llm.Media:
			parts = append(parts, object{"type": "file", "url": mediaURL(p), "mediaType": p.MIME})
		}
	}
	return parts
}

func mediaURL(m llm.Media) string {
	if m.URL == "" {
		return "data:" + m.MIME + ";base64," + base64.StdEncoding.EncodeToString(m.Data)
	}
	return m.URL
}

// call encodes the frames of calls. A call that the client does not execute is marked, so that its
// SDK does not wait for a result of the page.
func (a *aisdk) call(f *frame) []object {
	s := f.call
	o := object{"toolCallId": s.key}
	if f.kind.hasMark() && !s.client {
		o["providerExecuted"] = true
	}
	if s.title != "" {
		o["title"] = s.title
		o["dynamic"] = true
	}

	switch f.kind {
	case callStarted:
		o["type"] = "tool-input-start"
		o["toolName"] = s.name
	case callDelta:
		o["type"] = "tool-input-delta"
		o["inputTextDelta"] = f.text
	case callReady:
		o["type"] = "tool-input-available"
		o["toolName"] = s.name
		o["input"] = jsonOr(f.text)

	case callOK:
		o["type"] = "tool-output-available"
		o["output"] = resultOf(&f.exec.Result)
	case callFailed:
		o["type"] = "tool-output-error"
		o["errorText"] = failureOf(f.exec)
	case callGone:
		o["type"] = "tool-output-error"
		o["errorText"] = "The reply broke off. This call was not made."
		if !s.ready {
			o["type"] = "tool-input-error"
			o["toolName"] = s.name
			o["input"] = s.args.String()
		}
	case callDenied:
		o["type"] = "tool-output-denied"

	case question:
		o["type"] = "tool-approval-request"
		o["approvalId"] = ApprovalID(f.ask)
		o["approvalDescriptor"] = questionOf(f.ask)
		o["reason"] = f.ask.Why
		return append(a.unmark(s, f.ask.Call.Args), o)

	case callReturned:
		o["type"] = "tool-input-available"
		o["toolName"] = s.name
		o["input"] = jsonOr(f.text)
		return append(a.unmark(s, json.RawMessage(f.text)), o)
	}
	return []object{o}
}

// unmark begins the part of a call again, which loses its mark: a call with the mark counts as
// complete, so a page whose own call of the reply is complete would repeat its request for ever.
func (a *aisdk) unmark(s *shownCall, input json.RawMessage) []object {
	again := a.call(&frame{kind: callStarted, call: s})[0]
	again["providerExecuted"] = false
	args := cmp.Or(string(input), "{}")
	return []object{again, frameOf("tool-input-delta", "toolCallId", s.key, "inputTextDelta", args)}
}

// questionOf returns what a person is shown of a pending call.
func questionOf(w *pawl.PendingCall) object {
	why := object{"why": w.Why, "attempt": w.Attempt, "outcome": w.Outcome, "schema": w.Schema}
	if len(w.Doubts) > 0 {
		why["doubts"] = w.Doubts
	}
	if w.ValidFor > 0 {
		why["validFor"] = w.ValidFor.Seconds()
	}
	return why
}

// frameOf returns a frame of that type, with pairs of members and values.
func frameOf(kind string, pairs ...any) object {
	o := object{"type": kind}
	for i := 0; i < len(pairs); i += 2 {
		o[pairs[i].(string)] = pairs[i+1]
	}
	return o
}

// jsonOr returns text as JSON, or as a string if it is none.
func jsonOr(text string) any {
	if text == "" {
		return object{}
	}
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return text
}

func resultOf(r *llm.ToolResult) any {
	if r.Data != nil {
		return r.Data
	}
	return r.Text()
}

func failureOf(x *pawl.Execution) string {
	return cmp.Or(x.Error, x.Result.Text(), string(x.Outcome))
}

// hasMark reports whether the chunk of a frame can say who executes the call.
func (k kind) hasMark() bool {
	switch k {
	case callDelta, callDenied, question, callReturned:
		return false
	}
	return true
}

// encodeEnd encodes the end of a run. After an error the client stops reading.
func (a *aisdk) encodeEnd(f *frame) object {
	r := f.event.Result
	reason := ""
	switch r.Stop.Class() {
	case pawl.ClassAnswered:
		reason = "stop"
		switch llm.FinishReason(f.text) {
		case llm.FinishReasonLength, llm.FinishReasonContentFilter:
			reason = strings.ReplaceAll(f.text, "_", "-")
		}
	case pawl.ClassWaiting:
		reason = "tool-calls"
	case pawl.ClassLimited:
		reason = "length"
		if len(r.Calls()) > 0 {
			reason = "tool-calls"
		}
	case pawl.ClassCancelled:
		return object{"type": "abort", "reason": r.Cause}
	default:
		return object{"type": "error", "errorText": cmp.Or(f.event.Error, r.Cause, "the run failed")}
	}
	about := object{"run": a.options.Run, "stop": r.Stop, "cause": r.Cause, "spent": r.Spent}
	return object{"type": "finish", "finishReason": reason, "messageMetadata": object{"pawl": about}}
}
