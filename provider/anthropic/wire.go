package anthropic

import (
	"bytes"
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
	tools := wire.NoTools
	if list := own.without(req.Tools); len(list) > 0 {
		if tools, err = wire.NewToolset(toolForm, list); err != nil {
			return nil, err
		}
	}
	return d.encode(nil, "", tools, wire.NewOutput(outputForm, req.Output), req, own)
}

// DecodeMessages returns the reply in the body of a response, or its error, which is a
// *llm.ProviderError. sse means that the body is a stream of events; the other kind of body is
// recognized anyway. A turn that the server paused has FinishReasonOther and is not continued.
func DecodeMessages(status int, sse bool, body []byte) (*llm.Response, error) {
	d := newDialect(nil, false)
	if status != 0 && (status < 200 || status > 299) {
		return nil, toError(status, nil, body, time.Time{})
	}
	res := new(llm.Response)
	var bad error
	out := d.emitter(wire.NoTools, func(delta llm.Delta, _ error) bool {
		bad = res.Add(delta)
		return bad == nil
	})
	dec := &decoder{Emitter: out, dialect: &d, restart: func() { *res = llm.Response{} }}
	err := wire.Read(provider, bytes.NewReader(body), int64(len(body)), !sse, dec)
	if err == errPaused {
		err = out.Finish(llm.FinishReasonOther)
	}
	if err != nil && err != wire.ErrStopped {
		return nil, err
	}
	if bad != nil {
		return nil, broken("%v", bad)
	}
	return res, nil
}
