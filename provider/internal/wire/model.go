package wire

import (
	"bytes"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
)

// Stream returns the deltas of a request. send makes it; its error, except ErrStopped, ends them.
func Stream(send func(yield func(llm.Delta, error) bool) error) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		if err := send(yield); err != nil && err != ErrStopped {
			yield(llm.Delta{}, err)
		}
	}
}

// CheckName returns an error for an empty name of a model.
func CheckName(provider, model string) error {
	if model == "" {
		return Invalid(provider, "model", "no model is named")
	}
	return nil
}

// Check returns an error for a request to a model that no body can express. own has the names of
// the tools in the request's options.
func Check(provider, model string, req *llm.Request, tools *Toolset, own ...string) error {
	if err := CheckName(provider, model); err != nil {
		return err
	}
	if err := req.Choice.Check(req.Tools); err != nil {
		return &llm.ProviderError{Provider: provider, Code: llm.CodeInvalidRequest, Message: err.Error(), Err: err}
	}
	if len(req.Output) > 0 && !jsonscan.IsObject(req.Output) {
		return Invalid(provider, "output", "the schema is not a JSON object")
	}
	return tools.Refuse(provider, req.Choice, own...)
}

// Set sets a fact that the catalog states. nil means that the catalog does not know it.
func Set(fact, known *bool) {
	if known != nil {
		*fact = *known
	}
}

// Field returns the name of a part of a request for errors.
func Field(message, part int) string {
	return "messages[" + strconv.Itoa(message) + "].parts[" + strconv.Itoa(part) + "]"
}

// Instructs reports whether m has the role system or developer.
func Instructs(m *llm.Message) bool { return m.Role == llm.RoleSystem || m.Role == llm.RoleDeveloper }

// OnlyText reports whether parts are texts.
func OnlyText(parts []llm.Part) bool {
	return !slices.ContainsFunc(parts, func(p llm.Part) bool { _, ok := p.(llm.Text); return !ok })
}

// Collect adds the deltas that read emits through out to res, and returns the first error of both.
func Collect(res *llm.Response, out *Emitter, read func() error) error {
	var bad error
	out.Yield = func(d llm.Delta, _ error) bool {
		bad = res.Add(d)
		return bad == nil
	}
	err := out.readBadCall(read())
	if bad != nil {
		return Broken(out.Provider, "%v", bad)
	}
	return err
}

// ReadBody passes the body of a response to dec. sse means that a stream of events was requested.
func ReadBody(provider string, body []byte, sse bool, dec Decoder) error {
	return Read(provider, bytes.NewReader(body), int64(len(body)), !sse, dec)
}

// Failed reports whether a status is not 2xx. 0 means that the status is not known.
func Failed(status int) bool { return status != 0 && (status < 200 || status > 299) }

// Decode returns the reply in the body of a response, or its error.
func Decode(status int, sse bool, body []byte, out *Emitter, dec Decoder,
	toError func(int, http.Header, []byte, time.Time) *llm.ProviderError) (*llm.Response, error) {
	if Failed(status) {
		return nil, toError(status, nil, body, time.Time{})
	}
	res := new(llm.Response)
	if err := Collect(res, out, func() error { return ReadBody(out.Provider, body, sse, dec) }); err != nil {
		return nil, err
	}
	return res, nil
}

// Rules are the requirements of an API on the messages of a request.
type Rules struct {
	llm.HistoryRules
	// Heads are options that continue a conversation stored at the provider. Its earlier messages
	// are then unknown.
	Heads []string
	// Reads reports whether the server reads a summary itself. The text of others is sent. nil
	// means that it reads none with a text.
	Reads func(llm.Part) bool
}

// Repair returns req with messages that the rules allow and the server can read. It returns req
// itself if nothing needs repair, and otherwise a copy. It emits each repair through yield, and
// reports whether the consumer wants more. Faults without a repair remain, and the encoder rejects
// them. options are the request's options for this provider.
func (r *Rules) Repair(req *llm.Request, options []byte, yield func(llm.Delta, error) bool) (*llm.Request, bool) {
	req = withSummaryTexts(req, r.Reads)
	sent, repairs := r.RepairRequest(req)
	if len(repairs) == 0 || r.continues(options) {
		return req, true
	}
	for _, m := range repairs {
		if !yield(llm.Delta{Notice: m.Notice()}, nil) {
			return sent, false
		}
	}
	return sent, true
}

// continues reports whether options has one of Heads.
func (r *Rules) continues(options []byte) bool {
	return jsonscan.IsObject(options) &&
		slices.ContainsFunc(r.Heads, func(name string) bool { return Member(options, name) != nil })
}
