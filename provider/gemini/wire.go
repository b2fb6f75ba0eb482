package gemini

import (
	"errors"
	"time"

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
// stream that came as a JSON array, are recognized anyway. A reply that the API would continue has
// FinishReasonOther and is not continued.
func DecodeGenerate(status int, sse bool, body []byte) (*llm.Response, error) {
	if wire.Failed(status) {
		return nil, toError(status, nil, body, time.Time{})
	}
	res := new(llm.Response)
	out := emitter(newDialect("").tag, wire.NoTools, nil)
	read := func() error {
		err := wire.ReadBody(provider, body, sse, newDecoder(out))
		// A pause is no failure of the body. Only a Model can continue it.
		var paused *pausedError
		if errors.As(err, &paused) {
			err = out.Finish(llm.FinishReasonOther)
		}
		return err
	}
	if err := wire.Collect(res, out, read); err != nil {
		return nil, err
	}
	return res, nil
}
