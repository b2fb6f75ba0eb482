package pawltest

import (
	"errors"
	"strings"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/suite/model"
	"github.com/pawl-go/pawl/script"
)

// faultCase is a fault of a provider, and the error that an adapter must make of it.
type faultCase struct {
	fault     Fault
	key       string   // the key that the provider wants; "" means the adapter's
	code      llm.Code // "" means any
	retryable bool
	after     time.Duration // until the request can be repeated
}

// faults are the possible faults at the API, in its own words.
func (a adapter[TT]) faults() map[string]faultCase {
	refused := func(status int, code llm.Code) faultCase {
		return faultCase{fault: Fault{Status: status}, code: code}
	}
	busy := func(code llm.Code, f Fault) faultCase {
		return faultCase{fault: f, code: code, retryable: true}
	}
	tooLong := func(f Fault) faultCase {
		f.Status = 400
		return faultCase{fault: f, code: llm.CodeContextLength}
	}

	html := []byte("<html>Bad Gateway</html>")
	all := map[string]faultCase{
		"wrong key":       {key: "another key", code: llm.CodeAuthentication},
		"no auth":         refused(401, llm.CodeAuthentication),
		"forbidden":       refused(403, llm.CodePermission),
		"no such model":   refused(404, llm.CodeNotFound),
		"bad request":     refused(400, llm.CodeInvalidRequest),
		"server error":    busy(llm.CodeServer, Fault{Status: 500}),
		"an empty error":  busy(llm.CodeServer, Fault{Status: 500, Body: []byte{}}),
		"HTML":            busy("", Fault{Status: 502, Body: html, ContentType: "text/html"}),
		"HTML as a reply": busy("", Fault{Body: html, ContentType: "text/html"}),
		"an empty reply":  busy("", Fault{Body: []byte{}}),
		"broken":          busy("", Fault{Break: true, After: 3}),
		"broken at once":  busy("", Fault{Break: true}),
		"broken in bytes": busy("", Fault{Break: true, Bytes: 40}),
	}
	limited := busy(llm.CodeRateLimit, Fault{Status: 429, RetryAfter: "7"})
	limited.after = 7 * time.Second
	all["rate limit"] = limited

	switch a.api {
	case Anthropic:
		all["quota"] = refused(402, llm.CodeQuota)
		all["too long"] = tooLong(Fault{Message: "prompt is too long: 208310 tokens > 200000 maximum"})
		all["overloaded"] = busy(llm.CodeOverloaded, Fault{Status: 529})
	case Gemini:
		all["too long"] = tooLong(Fault{
			Message: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."})
		all["overloaded"] = busy(llm.CodeOverloaded,
			Fault{Status: 503, Message: "The model is overloaded. Please try again later."})
	default:
		all["quota"] = faultCase{fault: Fault{Status: 429, Code: "insufficient_quota"}, code: llm.CodeQuota}
		all["too long"] = tooLong(Fault{Code: "context_length_exceeded"})
		all["overloaded"] = busy(llm.CodeOverloaded, Fault{Status: 503})
	}
	return all
}

// testFault asks a provider that fails, streamed and whole.
func (a adapter[TT]) testFault(t TT, want faultCase) {
	behind := script.New(script.Say("A long answer, long enough to be broken off in the middle."))
	for _, whole := range []bool{false, true} {
		m, _ := a.over(t, behind, SimulatorOptions{
			Key:   want.key,
			Fault: func(int, *Received) *Fault { return &want.fault },
		})
		req := model.Question()
		req.Whole = whole
		resp, err := model.Streamed(t, m, req)
		if err != nil && strings.Contains(err.Error(), "test-key") {
			t.Errorf("whole %t: the error holds the key: %v", whole, err)
		}

		var got *llm.ProviderError
		if !errors.As(err, &got) {
			t.Errorf("whole %t: got reply %s and error %v, want a *llm.ProviderError", whole, model.Form(resp), err)
			continue
		}
		if want.code != "" && got.Code != want.code {
			t.Errorf("whole %t: got code %s, want %s (%v)", whole, got.Code, want.code, err)
		}
		if got.Retryable != want.retryable || got.RetryAfter != want.after {
			t.Errorf("whole %t: got retryable %t, retry after %v; want %t, %v (%v)", whole,
				got.Retryable, got.RetryAfter, want.retryable, want.after, err)
		}
		if want.fault.Status != 0 && got.Status != want.fault.Status {
			t.Errorf("whole %t: got status %d, want %d", whole, got.Status, want.fault.Status)
		}
	}
}
