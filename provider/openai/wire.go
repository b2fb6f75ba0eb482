package openai

import (
	"bytes"
	"time"

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
	tools := wire.NoTools
	if len(req.Tools) > 0 {
		var err error
		if tools, err = wire.NewToolset(d.form(false), req.Tools); err != nil {
			return nil, err
		}
	}
	return d.encode(nil, "", tools, wire.NewOutput(outputForm, req.Output), req)
}

func decodeBody(a *api, status int, sse bool, body []byte) (*llm.Response, error) {
	d := newDialect(a, "", "")
	if status != 0 && (status < 200 || status > 299) {
		return nil, d.toError(status, nil, body, time.Time{})
	}
	res := new(llm.Response)
	var bad error
	out := d.emitter(wire.NoTools, func(delta llm.Delta, _ error) bool {
		bad = res.Add(delta)
		return bad == nil
	})
	if err := wire.Read(d.provider, bytes.NewReader(body), int64(len(body)), !sse, d.decode(out)); err != nil &&
		err != wire.ErrStopped {
		return nil, err
	}
	if bad != nil {
		return nil, d.broken("%v", bad)
	}
	return res, nil
}
