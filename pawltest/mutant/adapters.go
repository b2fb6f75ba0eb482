package mutant

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/pawl-go/pawl/llm"
)

// Adapters returns the faults of an adapter to the API of a provider that pawltest.TestAdapter
// finds beyond the faults of Models: faults of what the API demands, and of errors in its own
// words. An API that does not have the part of a fault leaves it out.
func Adapters() []Mutant[llm.Model] {
	return slices.Concat(formFaults(), signatureFaults(), statusFaults(), brokenFaults())
}

// formFaults break what an API demands of the form of a request, or change the form of a reply.
func formFaults() []Mutant[llm.Model] {
	var sent atomic.Int64
	return []Mutant[llm.Model]{
		ofRequest("asks for every reply in fragments", "request/plain", func(r *llm.Request) { r.Whole = false }),
		ofRequest("asks for every reply whole", "request/plain", func(r *llm.Request) { r.Whole = true }),
		ofRequest("sends the reasoning of other providers", "request/others' reasoning", eachOf(func(r llm.Reasoning) llm.Part {
			return llm.Text{Text: r.Text}
		})),
		ofRequest("drops a reply with the reasoning of another provider", "request/others' reasoning", func(r *llm.Request) {
			reasons := func(m llm.Message) bool { return slices.ContainsFunc(m.Parts, isA[llm.Reasoning]) }
			r.Messages = slices.DeleteFunc(r.Messages, reasons)
		}),
		ofRequest("drops all settings if there are several", "request/settings together", func(r *llm.Request) { r.Settings = llm.Settings{} }),
		ofRequest("drops what the user says after results", "request/failed result, with words after it", func(r *llm.Request) {
			last := len(r.Messages) - 1
			if last > 0 && r.Messages[last-1].Role == llm.RoleTool {
				r.Messages = r.Messages[:last]
			}
		}),
		ofRequest("sends the number of the request with its instructions", "form/same bytes", func(r *llm.Request) {
			r.Messages[0] = llm.System(fmt.Sprintf("%s (%d)", r.Messages[0].Text(), sent.Add(1)))
		}),
		ofRequest("sends the tools in another order each time", "form/same bytes", func(r *llm.Request) {
			if sent.Add(1)%2 == 0 {
				slices.Reverse(r.Tools)
			}
		}),
		ofDelta("gives calls without an id one id", "form/calls without ids", func(d *llm.Delta) {
			if c, ok := d.Part.(llm.ToolCall); ok && c.Name != "" {
				c.ID = "call"
				d.Part = c
			}
		}),
		ofDelta("drops arguments that come in pieces", "form/arguments in pieces", func(d *llm.Delta) {
			if c, ok := d.Part.(llm.ToolCall); ok {
				c.Args = nil
				d.Part = c
			}
		}),
	}
}

// unsigned returns p without what only its provider reads.
func unsigned(p llm.Part) llm.Part {
	switch p := p.(type) {
	case llm.Text:
		p.Opaque = nil
		return p
	case llm.Reasoning:
		p.Opaque = nil
		return p
	case llm.ToolCall:
		p.Opaque = nil
		return p
	}
	return p
}

// signatureFaults lose or change the signatures of replies.
func signatureFaults() []Mutant[llm.Model] {
	const part = "signatures"
	return []Mutant[llm.Model]{
		ofDelta("drops signatures from replies", part, func(d *llm.Delta) { d.Part = unsigned(d.Part) }),
		ofRequest("sends replies back without their signatures", part, func(r *llm.Request) { eachPart(r, unsigned) }),
		ofRequest("sends the signature of the last reply only", part, func(r *llm.Request) {
			last := 0
			for i, m := range r.Messages {
				if m.Role == llm.RoleAssistant {
					last = i
				}
			}
			for i, m := range r.Messages {
				for k, p := range m.Parts {
					if i < last {
						r.Messages[i].Parts[k] = unsigned(p)
					}
				}
			}
		}),
		ofRequest("changes signatures", part, func(r *llm.Request) {
			eachPart(r, func(p llm.Part) llm.Part {
				switch p := p.(type) {
				case llm.Reasoning:
					p.Opaque = spoiled(p.Opaque)
					return p
				case llm.ToolCall:
					p.Opaque = spoiled(p.Opaque)
					return p
				}
				return p
			})
		}),
	}
}

// spoiled returns data whose signatures have another letter.
func spoiled(o *llm.Opaque) *llm.Opaque {
	if o == nil {
		return nil
	}
	data := bytes.Clone(o.Data)
	for _, mark := range []string{`"signature":"`, `"thoughtSignature":"`, `"encrypted_content":"`} {
		if at := bytes.Index(data, []byte(mark)); at >= 0 {
			data[at+len(mark)+4] ^= 1
		}
	}
	return &llm.Opaque{Provider: o.Provider, Data: json.RawMessage(data)}
}

// statusFaults lose what the status and the body of an error say.
func statusFaults() []Mutant[llm.Model] {
	code := func(name, part string, to llm.Code) Mutant[llm.Model] {
		return ofError(name, "faults/"+part, func(e *llm.ProviderError) { e.Code = to })
	}
	final := func(name, part string) Mutant[llm.Model] {
		return ofError(name, "faults/"+part, func(e *llm.ProviderError) { e.Retryable = false })
	}
	return []Mutant[llm.Model]{
		code("takes a key that the provider refuses for a server error", "wrong key", llm.CodeServer),
		ofError("writes the key into errors", "faults/wrong key", func(e *llm.ProviderError) { e.Message += " (key test-key)" }),
		code("takes status 401 for an invalid request", "no auth", llm.CodeInvalidRequest),
		code("takes status 403 for a wrong key", "forbidden", llm.CodeAuthentication),
		code("takes status 404 for an invalid request", "no such model", llm.CodeInvalidRequest),
		ofError("says that status 400 may be repeated", "faults/bad request", func(e *llm.ProviderError) { e.Retryable = true }),
		final("says that status 500 is final", "server error"),
		ofError("drops the status of an error", "faults/server error", func(e *llm.ProviderError) { e.Status = 0 }),
		ofReply("returns an error without a body without its code", "faults/an empty error", func(_ *llm.Request, next yield) yield {
			return func(d llm.Delta, err error) bool {
				if err != nil {
					err = errors.New("500 Internal Server Error")
				}
				return next(d, err)
			}
		}),
		final("says that an error of a proxy is final", "HTML"),
		ofError("drops the wait of a rate limit", "faults/rate limit", func(e *llm.ProviderError) { e.RetryAfter = 0 }),
		code("takes the provider's words for a used quota for a rate limit", "quota", llm.CodeRateLimit),
		code("takes the provider's words for too long for an invalid request", "too long", llm.CodeInvalidRequest),
		code("takes the provider's words for busy for a server error", "overloaded", llm.CodeServer),
	}
}

// brokenFaults take what is no reply for one.
func brokenFaults() []Mutant[llm.Model] {
	complete := func(name, part string) Mutant[llm.Model] {
		return ofReply(name, "faults/"+part, func(_ *llm.Request, next yield) yield {
			return func(d llm.Delta, err error) bool {
				if err != nil {
					return next(llm.Delta{Finish: llm.FinishReasonStop}, nil)
				}
				return next(d, nil)
			}
		})
	}
	return []Mutant[llm.Model]{
		complete("takes an HTML page for a reply", "HTML as a reply"),
		complete("takes an empty body for a reply", "an empty reply"),
		complete("takes a stream that breaks after an event for complete", "broken"),
		complete("takes a connection that breaks at once for a reply", "broken at once"),
		complete("takes a stream that breaks within an event for complete", "broken in bytes"),
		ofError("says that a broken connection is final", "faults/broken at once", func(e *llm.ProviderError) { e.Retryable = false }),
		ofReply("drops the kind of a broken connection", "faults/broken", func(_ *llm.Request, next yield) yield {
			return func(d llm.Delta, err error) bool {
				if err != nil {
					err = errors.New(strings.ToLower(err.Error()))
				}
				return next(d, err)
			}
		}),
	}
}
