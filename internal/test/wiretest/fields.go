package wiretest

import (
	"github.com/pawl-go/pawl/llm"
)

// The fields of a reply, for the Get of a ReplyRow.
var (
	Text       = func(r *llm.Response) any { return r.Message.Text() }
	Finish     = func(r *llm.Response) any { return string(r.Finish) }
	CallID     = func(r *llm.Response) any { return firstCall(r).ID }
	CallName   = func(r *llm.Response) any { return firstCall(r).Name }
	CallArgs   = func(r *llm.Response) any { return string(firstCall(r).Args) }
	CallKept   = func(r *llm.Response) any { return data(firstCall(r).Opaque) }
	Thought    = func(r *llm.Response) any { return firstThought(r).Text }
	Kept       = func(r *llm.Response) any { return data(firstThought(r).Opaque) }
	ID         = func(r *llm.Response) any { return r.ID }
	Model      = func(r *llm.Response) any { return r.Model }
	Input      = func(r *llm.Response) any { return r.Usage.Input }
	Output     = func(r *llm.Response) any { return r.Usage.Output }
	Reasoned   = func(r *llm.Response) any { return r.Usage.Reasoning }
	CacheRead  = func(r *llm.Response) any { return r.Usage.CacheRead }
	CacheWrite = func(r *llm.Response) any { return r.Usage.CacheWrite }
	Cost       = func(r *llm.Response) any { return r.Usage.Cost }
	TextKept   = func(r *llm.Response) any {
		t, _ := r.Message.Parts[0].(llm.Text)
		return data(t.Opaque)
	}
	FirstMedia = func(r *llm.Response) any {
		for _, p := range r.Message.Parts {
			if m, ok := p.(llm.Media); ok {
				return m.MIME + " " + string(m.Data) + m.URL
			}
		}
		return nil
	}
)

// The fields of an error, for the Get of an ErrorRow.
var (
	Code    = func(e *llm.ProviderError) any { return string(e.Code) }
	Message = func(e *llm.ProviderError) any { return e.Message }
	After   = func(e *llm.ProviderError) any { return e.RetryAfter.String() }
)

// Say returns a function that adds messages to a request.
func Say(ms ...llm.Message) func(*llm.Request) {
	return func(r *llm.Request) { r.Messages = append(r.Messages, ms...) }
}

// Offer adds a tool f without arguments to a request.
func Offer(r *llm.Request) {
	r.Tools = []*llm.ToolSpec{{Name: "f", Description: "Does f.", Input: []byte(`{"type":"object","properties":{}}`)}}
}

func firstCall(r *llm.Response) llm.ToolCall {
	calls := r.Message.Calls()
	if len(calls) == 0 {
		return llm.ToolCall{}
	}
	return calls[0]
}

func firstThought(r *llm.Response) llm.Reasoning {
	for _, p := range r.Message.Parts {
		if p, ok := p.(llm.Reasoning); ok {
			return p
		}
	}
	return llm.Reasoning{}
}

func data(o *llm.Opaque) any {
	if o == nil {
		return nil
	}
	return string(o.Data)
}

// Fails returns the row of an error whose field holds the value, or want.
func Fails(status int, path string, value any, field string, get func(*llm.ProviderError) any, want any) ErrorRow {
	return ErrorRow{Status: status, Path: path, Value: value, Field: field, Get: get, Want: want}
}

// Sends returns the row of a request that has want at the path.
func Sends(field string, set func(*llm.Request), path string, want any) RequestRow {
	return RequestRow{Field: field, Set: set, Path: path, Want: want}
}
