package anthropic

import (
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// EncodeMessages returns the body that New(req.Model, nil) sends for req. Errors are the same as
// Stream's. Stream repairs messages first (llm.HistoryRules); EncodeMessages does not.
func EncodeMessages(req *llm.Request) ([]byte, error) {
	d := newDialect(nil, false)
	own, err := readOptions(req.Settings.Options[provider])
	if err != nil {
		return nil, err
	}
	tools, err := wire.NewToolset(toolForm, own.without(req.Tools))
	if err != nil {
		return nil, err
	}
	req, _ = d.media(req.Model).Apply(req, nil)
	output := wire.NewOutput(outputForm, req.Output)
	if err := checkOrder(req, own, d.enforces(req.Model, output)); err != nil {
		return nil, err
	}
	return d.encode(nil, "", tools, output, req, own)
}

// DecodeMessages returns the reply in the body of a response, or its error, which is a
// *llm.ProviderError. sse means that the body is a stream of events; the other kind of body is
// recognized anyway. A turn that the server paused has FinishReasonOther and is not continued.
func DecodeMessages(status int, sse bool, body []byte) (*llm.Response, error) {
	d := newDialect(nil, false)
	if wire.Failed(status) {
		return nil, toError(status, nil, body, time.Time{})
	}
	res := new(llm.Response)
	out := d.emitter(wire.NoTools, nil)
	dec := &decoder{Emitter: out, dialect: &d, restart: func() { *res = llm.Response{} }}
	read := func() error {
		// A pause is no failure of the body. Only a Model can continue it.
		err := wire.ReadBody(provider, body, sse, dec)
		if err == errPaused {
			err = out.Finish(llm.FinishReasonOther)
		}
		return err
	}
	if err := wire.Collect(res, out, read); err != nil {
		return nil, err
	}
	return res, nil
}
