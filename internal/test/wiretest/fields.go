package wiretest

import "github.com/pawl-go/pawl"

// Fields of a reply, for the Get of a ReplyRow.
var (
	Text       = func(r *pawl.Response) any { return r.Message.Text() }
	Finish     = func(r *pawl.Response) any { return string(r.Finish) }
	CallID     = func(r *pawl.Response) any { return firstCall(r).ID }
	CallName   = func(r *pawl.Response) any { return firstCall(r).Name }
	CallArgs   = func(r *pawl.Response) any { return string(firstCall(r).Args) }
	CallKept   = func(r *pawl.Response) any { return data(firstCall(r).Opaque) }
	Thought    = func(r *pawl.Response) any { return firstThought(r).Text }
	Kept       = func(r *pawl.Response) any { return data(firstThought(r).Opaque) }
	ID         = func(r *pawl.Response) any { return r.ID }
	Model      = func(r *pawl.Response) any { return r.Model }
	Input      = func(r *pawl.Response) any { return r.Usage.Input }
	Output     = func(r *pawl.Response) any { return r.Usage.Output }
	Reasoned   = func(r *pawl.Response) any { return r.Usage.Reasoning }
	CacheRead  = func(r *pawl.Response) any { return r.Usage.CacheRead }
	CacheWrite = func(r *pawl.Response) any { return r.Usage.CacheWrite }
	Cost       = func(r *pawl.Response) any { return r.Usage.Cost }
	TextKept   = func(r *pawl.Response) any {
		t, _ := r.Message.Parts[0].(pawl.Text)
		return data(t.Opaque)
	}
	FirstMedia = func(r *pawl.Response) any {
		for _, p := range r.Message.Parts {
			if m, ok := p.(pawl.Media); ok {
				return m.MIME + " " + string(m.Data) + m.URL
			}
		}
		return nil
	}
)

// Fields of an error, for the Get of an ErrorRow.
var (
	Code    = func(e *pawl.ProviderError) any { return string(e.Code) }
	Message = func(e *pawl.ProviderError) any { return e.Message }
	After   = func(e *pawl.ProviderError) any { return e.RetryAfter.String() }
)

// Say returns what adds messages to a request.
func Say(ms ...pawl.Message) func(*pawl.Request) {
	return func(r *pawl.Request) { r.Messages = append(r.Messages, ms...) }
}

// Offer adds a tool f without arguments to a request.
func Offer(r *pawl.Request) {
	r.Tools = []*pawl.ToolSpec{{Name: "f", Description: "Does f.", Input: []byte(`{"type":"object","properties":{}}`)}}
}

func firstCall(r *pawl.Response) pawl.ToolCall {
	calls := r.Message.Calls()
	if len(calls) == 0 {
		return pawl.ToolCall{}
	}
	return calls[0]
}

func firstThought(r *pawl.Response) pawl.Reasoning {
	for _, p := range r.Message.Parts {
		if p, ok := p.(pawl.Reasoning); ok {
			return p
		}
	}
	return pawl.Reasoning{}
}

func data(o *pawl.Opaque) any {
	if o == nil {
		return nil
	}
	return string(o.Data)
}

// Fails is the row of an error whose field holds the value, or want.
func Fails(status int, path string, value any, field string, get func(*pawl.ProviderError) any, want any) ErrorRow {
	return ErrorRow{Status: status, Path: path, Value: value, Field: field, Get: get, Want: want}
}

// Sends is the row of a request that has want at the path.
func Sends(field string, set func(*pawl.Request), path string, want any) RequestRow {
	return RequestRow{Field: field, Set: set, Path: path, Want: want}
}
