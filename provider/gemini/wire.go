package gemini

import (
	"bytes"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// EncodeGenerate returns the body that New(req.Model, nil) sends for req; it is the same for a
// whole reply and a stream. Errors are the same as Stream's. Stream repairs messages first
// (llm.HistoryRules); EncodeGenerate does not.
func EncodeGenerate(req *llm.Request) ([]byte, error) {
	d := newDialect("")
	tools := wire.NoTools
	if len(req.Tools) > 0 {
		var err error
		if tools, err = wire.NewToolset(form, req.Tools); err != nil {
			return nil, err
		}
	}
	return d.encode(nil, req.Model, tools, wire.NewOutput(outputForm, req.Output), req)
}

// DecodeGenerate returns the reply in the body of a response, or its error, which is a
// *llm.ProviderError. sse means that the body is a stream of events; the other kind of body, and a
// stream that came as a JSON array, are recognized anyway.
func DecodeGenerate(status int, sse bool, body []byte) (*llm.Response, error) {
	if status != 0 && (status < 200 || status > 299) {
		return nil, toError(status, nil, body, time.Time{})
	}
	res := new(llm.Response)
	var bad error
	out := emitter(newDialect("").tag, wire.NoTools, func(delta llm.Delta, _ error) bool {
		bad = res.Add(delta)
		return bad == nil
	})
	if err := wire.Read(provider, bytes.NewReader(body), int64(len(body)), !sse, newDecoder(out)); err != nil &&
		err != wire.ErrStopped {
		return nil, err
	}
	if bad != nil {
		return nil, broken("%v", bad)
	}
	return res, nil
}
