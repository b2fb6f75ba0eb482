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

type aisdk struct{ o Options }

// ApprovalID returns the ID of a question: the key and the digest, which the answer needs.
func ApprovalID(w *pawl.PendingCall) string { return string(w.Key) + "." + w.Digest }

// ParseApprovalID returns the key and the digest in an ID of ApprovalID.
func ParseApprovalID(id string) (key llm.Key, digest string) {
	if i := strings.LastIndexByte(id, '.'); i >= 0 {
		return llm.Key(id[:i]), id[i+1:]
	}
	return "", ""
}

func (a *aisdk) encode(f *frame) []object {
	one := func(kind string, pairs ...any) []object { return []object{frameOf(kind, pairs...)} }
	prefix := "text"
	if f.reasoning {
		prefix = "reasoning"
	}
	switch f.kind {
	case started:
		about := object{"pawl": object{"run": a.o.Run, "agent": a.o.Agent}}
		if a.o.Run == "" {
			return one("start", "messageMetadata", about)
		}
		return one("start", "messageId", a.o.Run, "messageMetadata", about)
	case stepStarted:
		return one("start-step")
	case stepEnded:
		return one("finish-step")
	case textStarted:
		return one(prefix+"-start", "id", f.id)
	case textDelta:
		return one(prefix+"-delta", "id", f.id, "delta", f.text)
	case textEnded:
		return one(prefix+"-end", "id", f.id)
	case callStarted, callDelta, callReady, callOK, callFailed, callDenied, question:
		return a.call(f)
	case file:
		return one("file", "url", mediaURL(f.media), "mediaType", cmp.Or(f.media.MIME, "application/octet-stream"))
	case report:
		return one("data-pawl-"+f.name, "data", f.data, "transient", true)
	case output:
		return one("data-pawl-"+f.name, "id", f.name, "data", f.data)
	case retracted:
		if a.o.Protocol == AISDK7 {
			return one("reset-step")
		}
		return one("data-pawl-retracted", "id", f.id, "data", object{"id": f.id})
	case steered:
		parts := UIParts(f.message)
		if a.o.Protocol == AISDK7 && len(parts) > 0 {
			return one("steering-message", "id", f.id, "parts", parts)
		}
		return one("data-pawl-steered", "id", f.id, "data", object{"parts": parts})
	case ended:
		return []object{a.end(f)}
	}
	return one("error", "errorText", cmp.Or(f.text, "the run has ended without a result"))
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
	if !s.client && f.kind != callDelta && f.kind != callDenied && f.kind != question {
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
		o["type"], o["toolName"], o["input"] = "tool-input-available", s.name, jsonOr(f.text)
	case callOK:
		o["type"], o["output"] = "tool-output-available", resultOf(&f.exec.Result)
	case callFailed:
		o["type"], o["errorText"] = "tool-output-error", failureOf(f.exec)
	case callDenied:
		o["type"] = "tool-output-denied"
	case question:
		o["type"], o["approvalId"], o["approvalDescriptor"] = "tool-approval-request", ApprovalID(f.ask), questionOf(f.ask)
		o["reason"] = f.ask.Why
		// A call with the mark counts as complete, so a page whose own call of the reply is
		// complete would repeat its request for ever. A part that begins again loses the mark.
		again := a.call(&frame{kind: callStarted, call: s})[0]
		again["providerExecuted"] = false
		return []object{again, frameOf("tool-input-delta", "toolCallId", s.key, "inputTextDelta", cmp.Or(string(f.ask.Call.Args), "{}")), o}
	}
	return []object{o}
}

// questionOf returns what a person is shown of a pending call.
func questionOf(w *pawl.PendingCall) object {
	why := object{"why": w.Why, "attempt": w.Attempt, "outcome": w.Outcome, "schema": w.Schema}
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

// end encodes the end of a run. After an error the client stops reading.
func (a *aisdk) end(f *frame) object {
	r := f.event.Result
	reason := "other"
	switch r.Stop {
	case pawl.StopAnswer, pawl.StopFinished:
		reason = "stop"
		switch llm.FinishReason(f.text) {
		case llm.FinishReasonLength, llm.FinishReasonContentFilter:
			reason = strings.ReplaceAll(f.text, "_", "-")
		}
	case pawl.StopPending:
		reason = "tool-calls"
	case pawl.StopLimit:
		reason = "length"
	case pawl.StopCancelled:
		return object{"type": "abort", "reason": r.Cause}
	case pawl.StopFailed:
		return object{"type": "error", "errorText": cmp.Or(f.event.Error, r.Cause, "the run failed")}
	}
	about := object{"run": a.o.Run, "stop": r.Stop, "cause": r.Cause, "spent": r.Spent}
	return object{"type": "finish", "finishReason": reason, "messageMetadata": object{"pawl": about}}
}
