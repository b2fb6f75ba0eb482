package gemini

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// failure is the error that the provider reports:
// {"error":{"code":429,"message":"…","status":"RESOURCE_EXHAUSTED","details":[{"@type":…}]}}. It
// comes in an array if a stream was not requested as events, and in the message of another error
// if a gateway sends it.
type failure struct {
	wire.Failure
	reason string        // of ErrorInfo
	quotas []string      // of QuotaFailure: the exhausted quotas
	retry  time.Duration // of RetryInfo
}

func readFailure(body []byte) (f failure) {
	f.Failure = wire.ReadFailure(body, func(name string, c *jsonscan.Cursor) bool {
		if name != "details" {
			return false
		}
		for c.Array(); c.More(); {
			f.detail(c)
		}
		return true
	})
	f.reason = cmp.Or(f.reason, f.Code)
	// The text of some errors is a whole error, which is the cause.
	if inner := strings.TrimSpace(f.Message); len(inner) < len(body) && jsonscan.IsObject([]byte(inner)) &&
		inner != strings.TrimSpace(string(body)) {
		if g := readFailure([]byte(inner)); g.Name != "" {
			return g
		}
	}
	return f
}

// detail reads one of the typed details of an error.
func (f *failure) detail(c *jsonscan.Cursor) {
	var delay, violations []byte
	c.Fields("reason", &f.reason, "retryDelay", &delay, "violations", &violations)
	if delay != nil {
		f.retry = toDuration(delay)
	}
	list := jsonscan.New(violations)
	for list.Array(); list.More(); {
		f.quotas = append(f.quotas, wire.MemberText(list.Raw(), "quotaId"))
	}
}

// toDuration reads "34.07s", or the older form of durations, an object.
func toDuration(delay []byte) time.Duration {
	var nanos float64
	c := jsonscan.New(delay)
	if c.Kind() == jsonscan.Object {
		c.Fields("seconds", &delay, "nanos", &nanos)
	}
	seconds, _ := strconv.ParseFloat(strings.TrimSuffix(strings.Trim(string(delay), `"`), "s"), 64)
	if s := seconds + nanos/1e9; s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	return 0
}

// toError returns the error of a response whose status is not 2xx.
func toError(status int, h http.Header, body []byte, now time.Time) *llm.ProviderError {
	f := readFailure(body)
	e := classify(status, &f)
	if status == http.StatusTooManyRequests || status >= 500 {
		e.RetryAfter = wire.RetryAfter(h, now)
		if e.RetryAfter == 0 {
			e.RetryAfter = f.wait()
		}
	}
	e.Message = cmp.Or(e.Message, http.StatusText(status))
	return e
}

// wait returns the wait that the error asks for, in its details or its text.
func (f *failure) wait() time.Duration {
	if f.retry > 0 {
		return f.retry
	}
	return wire.RetryIn(f.Message)
}

// toStreamError returns the error of a failure within a reply with status 200.
func toStreamError(raw []byte) error {
	f := readFailure(raw)
	e := classify(f.Status, &f)
	e.Status = f.Status
	e.RetryAfter = f.wait()
	return e
}

// classify maps an error to a code: first by its text, if that is specific, then by the status in
// the body, or by the HTTP status if the body has none.
func classify(status int, f *failure) *llm.ProviderError {
	e := &llm.ProviderError{Provider: provider, Status: status, Message: f.Message}
	e.Message = cmp.Or(e.Message, strings.TrimSpace(f.Name+" "+f.reason))
	e.Code = f.code(status)
	if e.Code == "" {
		e.Code = cmp.Or(wire.StatusCode[status], codes[f.Name], wire.StatusRange(status))
		if status == 499 {
			e.Code = llm.CodeServer
		}
	}

	e.Retryable = wire.Retryable(e.Code)
	redirected := status >= 300 && status < 400
	if redirected && e.Code == llm.CodeNotFound && e.Message == "" {
		e.Message = wire.Redirected
	}
	return e
}

// code returns the code that the words of an error state. It returns "" if they state none, or if
// the status says that the fault is not in the request.
func (f *failure) code(status int) llm.Code {
	if status != 0 && (status < 400 || status >= 500) {
		return ""
	}
	text := strings.ToLower(f.Message)
	word := strings.ToLower(f.reason + " " + f.Name)
	inWords := func(list ...string) bool { return wire.Contains(word, list...) }
	inText := func(list ...string) bool { return wire.Contains(text, list...) }

	switch {
	case inWords("api_key_invalid", "api_key_expired", "access_token_expired"), inText("api key not valid", "api key expired"):
		return llm.CodeAuthentication

	case inWords("insufficient_quota"), inText("credits are depleted"), f.spent():
		return llm.CodeQuota
	case status != 429 && (inWords("billing_disabled") || inText("billing")):
		// A rate limit names billing, too.
		return llm.CodeQuota

	case inWords("context_length"), inText("exceeds the maximum number of tokens", "input token count",
		"input context is too long", "context length", "context window", "too many tokens"):
		return llm.CodeContextLength

	case inWords("content_filter"), inText("blocked") && inText("safety", "prohibited"):
		return llm.CodeContentFilter
	}
	return ""
}

// spent reports whether a quota is exhausted for longer than a run should wait: a quota per day,
// or a quota of 0. A quota per minute is a rate limit, although its text is the same.
func (f *failure) spent() bool {
	return slices.ContainsFunc(f.quotas, func(q string) bool { return strings.Contains(q, "PerDay") }) ||
		strings.Contains(f.Message, "limit: 0,") || strings.HasSuffix(strings.TrimSpace(f.Message), "limit: 0")
}

// codes has the codes for the names of google.rpc.Code. The HTTP status has precedence, because
// gateways often derive the name from it. A FAILED_PRECONDITION is a country without the API.
var codes = map[string]llm.Code{
	"INVALID_ARGUMENT": llm.CodeInvalidRequest, "OUT_OF_RANGE": llm.CodeInvalidRequest,
	"UNIMPLEMENTED": llm.CodeInvalidRequest, "FAILED_PRECONDITION": llm.CodePermission,
	"UNAUTHENTICATED": llm.CodeAuthentication, "PERMISSION_DENIED": llm.CodePermission,
	"NOT_FOUND": llm.CodeNotFound, "RESOURCE_EXHAUSTED": llm.CodeRateLimit, "UNAVAILABLE": llm.CodeOverloaded,
	"DEADLINE_EXCEEDED": llm.CodeTimeout, "INTERNAL": llm.CodeServer, "UNKNOWN": llm.CodeServer,
	"DATA_LOSS": llm.CodeServer, "ABORTED": llm.CodeServer, "CANCELLED": llm.CodeServer,
	"ALREADY_EXISTS": llm.CodeServer,
}
