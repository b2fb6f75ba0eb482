package gemini

import (
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// EncodeGenerate returns the body that New(req.Model, nil) sends for req; it is the same for a
// whole reply and a stream. Errors are the same as Stream's. Stream repairs messages first
// (llm.HistoryRules); EncodeGenerate does not.
func EncodeGenerate(req *llm.Request) ([]byte, error) {
	d := newDialect("")
	tools, err := wire.NewToolset(form, req.Tools)
	if err != nil {
		return nil, err
	}
	req, _ = d.media(req.Model).Apply(req, nil)
	return d.encode(nil, req.Model, tools, wire.NewOutput(outputForm, req.Output), req)
}

// DecodeGenerate returns the reply in the body of a response, or its error, which is a
// *llm.ProviderError. sse means that the body is a stream of events; the other kind of body, and a
// stream that came as a JSON array, are recognized anyway.
func DecodeGenerate(status int, sse bool, body []byte) (*llm.Response, error) {
	out := emitter(newDialect("").tag, wire.NoTools, nil)
	return wire.Decode(status, sse, body, out, newDecoder(out), toError)
}
