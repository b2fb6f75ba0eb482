package uistream

// history.go: stored messages as UIMessages, with which a page starts.

import "slices"

// NewHistory returns an Encoder whose frames are collected in the message of the run.
func NewHistory(o Options) *History {
	h := &History{options: o, parts: []object{}}
	h.Encoder = New(o)
	h.Encoder.form = h
	return h
}

// History collects the message of a run in the form of the AI SDK.
type History struct {
	*Encoder
	options Options
	parts   []object
	about   any
}

// Message returns the message so far.
func (h *History) Message() map[string]any {
	m := object{"id": h.options.Run, "role": "assistant", "parts": h.parts}
	if h.about != nil {
		m["metadata"] = h.about
	}
	return m
}

// part returns the part with that member.
func (h *History) part(member string, value any) object {
	for _, p := range h.parts {
		if p[member] == value {
			return p
		}
	}
	p := object{member: value}
	h.parts = append(h.parts, p)
	return p
}

// encode adds a frame to the message. It returns nothing.
func (h *History) encode(f *frame) []object {
	if f.kind == callGone {
		isCall := func(p object) bool { return p["toolCallId"] == f.call.key }
		h.parts = slices.DeleteFunc(h.parts, isCall)
		return nil
	}
	if f.call != nil {
		h.addCall(f)
		return nil
	}
	switch f.kind {
	case stepStarted:
		h.parts = append(h.parts, object{"type": "step-start"})
	case textStarted:
		kind := "text"
		if f.reasoning {
			kind = "reasoning"
		}
		h.parts = append(h.parts, object{"type": kind, "text": "", "id": f.id, "state": "done"})
	case textDelta:
		p := h.part("id", f.id)
		p["text"] = p["text"].(string) + f.text
	case retracted:
		h.part("id", f.id)["text"] = ""

	case file, output, steered:
		h.parts = append(h.parts, (&aisdk{}).encode(f)...)
	case ended:
		h.about = (&aisdk{options: h.options}).encodeEnd(f)["messageMetadata"]
	}
	return nil
}

// addCall adds a frame to the part of its call.
func (h *History) addCall(f *frame) {
	p := h.part("toolCallId", f.call.key)
	p["providerExecuted"] = !f.call.client && f.kind != question && f.kind != callReturned

	switch f.kind {
	case callStarted, callReady, callReturned:
		p["type"] = "tool-" + f.call.name
		p["state"] = "input-available"
		p["input"] = jsonOr(f.text)
		if f.call.title != "" {
			p["type"] = "dynamic-tool"
			p["toolName"] = f.call.name
			p["title"] = f.call.title
		}

	case question:
		p["state"] = "approval-requested"
		p["approval"] = object{"id": ApprovalID(f.ask)}

	case callOK:
		p["state"] = "output-available"
		p["output"] = resultOf(&f.exec.Result)
		delete(p, "approval")
	case callFailed, callDenied:
		p["state"] = "output-error"
		p["errorText"] = failureOf(f.exec)
		delete(p, "approval")
	}
}
