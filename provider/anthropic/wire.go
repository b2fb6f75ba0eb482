package anthropic

import (
	"bytes"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// EncodeMessages returns the body that New(req.Model, nil) sends for req. Errors are those of Stream, which heals
// messages first (llm.RulesOf); here they are taken as they are.
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

// DecodeMessages returns the reply in the body of an answer, or the error in it, which is a *llm.ProviderError. With
// sse the body is a stream of events; a body of the other kind than said is read as what it is. A turn that the server
// paused has FinishOther: there is nobody here to go on with it.
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
