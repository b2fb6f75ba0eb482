package openai

import (
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// EncodeResponses returns the body that New(req.Model, nil) sends for req. Errors are the same as
// Stream's. Stream repairs messages first (llm.HistoryRules); EncodeResponses does not.
func EncodeResponses(req *llm.Request) ([]byte, error) { return encodeBody(responsesAPI, req) }

// EncodeChat returns the body that NewChat(req.Model, nil) sends for req. Errors are the same as
// Stream's. Stream repairs messages first (llm.HistoryRules); EncodeChat does not.
func EncodeChat(req *llm.Request) ([]byte, error) { return encodeBody(chatAPI, req) }

// DecodeResponses returns the reply in the body of a response, or its error, which is a
// *llm.ProviderError. sse means that the body is a stream of events; the other kind of body is
// recognized anyway.
func DecodeResponses(status int, sse bool, body []byte) (*llm.Response, error) {
	return decodeBody(responsesAPI, status, sse, body)
}

// DecodeChat is DecodeResponses for the Chat Completions API.
func DecodeChat(status int, sse bool, body []byte) (*llm.Response, error) {
	return decodeBody(chatAPI, status, sse, body)
}

func encodeBody(a *api, req *llm.Request) ([]byte, error) {
	d := newDialect(a, "", "")
	tools, err := wire.NewToolset(d.form(false), req.Tools)
	if err != nil {
		return nil, err
	}
	req, _ = d.media(req.Model).Apply(req, nil)
	return d.encode(nil, "", tools, wire.NewOutput(outputForm, req.Output), req)
}

func decodeBody(a *api, status int, sse bool, body []byte) (*llm.Response, error) {
	d := newDialect(a, "", "")
	out := d.emitter(wire.NoTools, nil)
	return wire.Decode(status, sse, body, out, d.decode(out), d.toError)
}
