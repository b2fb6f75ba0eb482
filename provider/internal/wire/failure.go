package wire

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
)

// Failure is the error that a server reports, in any of the forms in use:
//
//	{"error":{"message","type","code",…}}  {"error":"…"}  {"message":"…"}  {"detail":"…"}
//	{"error":{"message","code":429,"status":"RESOURCE_EXHAUSTED",…}}  {"errors":[…]}
//	an array of any of these  a page of HTML  plain text
type Failure struct {
	Message string // for people; for a page its title
	Type    string // "type"
	Name    string // "status" if it is a string
	Code    string // "code" if it is a string
	Status  int    // "code" if it is a number: an HTTP status
}

// ReadFailure reads the body of an error. own reads a member that only this provider has, and
// reports whether it did; nil means that there is none.
func ReadFailure(body []byte, own func(name string, c *jsonscan.Cursor) bool) Failure {
	r := failureReader{own: own}
	c := jsonscan.New(body)
	r.read(&c)

	empty := r.Failure == (Failure{}) && !r.found
	if r.Message == "" && (c.Err() != nil || empty) {
		r.Message = page(body)
	}
	return r.Failure
}

type failureReader struct {
	Failure
	own   func(name string, c *jsonscan.Cursor) bool
	found bool // own has read a member
}

// read reads an error in any of the forms of Failure.
func (r *failureReader) read(c *jsonscan.Cursor) {
	switch c.Kind() {
	case jsonscan.String:
		r.Message = c.String()
		return
	case jsonscan.Array:
		for c.Array(); c.More(); {
			r.read(c)
		}
		return
	}
	for name := range c.Members() {
		r.member(string(name), c)
	}
}

// member reads a member of an error. The members that a server leaves empty do not replace others.
func (r *failureReader) member(name string, c *jsonscan.Cursor) {
	switch name {
	case "error":
		if c.Kind() != jsonscan.Null {
			r.read(c)
		}
	case "errors":
		if c.Kind() == jsonscan.Array {
			r.read(c)
		}

	case "message", "Message", "detail":
		r.message(c)
	case "type", "error_type":
		// "error" and "message" say only that this is an error.
		if s := c.String(); s != "" && s != "error" && s != "message" {
			r.Type = s
		}
	case "status":
		r.Name = cmp.Or(c.String(), r.Name)
	case "code":
		r.code(c)

	default:
		if r.own != nil && r.own(name, c) {
			r.found = true
		}
	}
}

// message reads the text for people. Some servers send a list of faults in its place.
func (r *failureReader) message(c *jsonscan.Cursor) {
	switch c.Kind() {
	case jsonscan.String:
		r.Message = cmp.Or(c.String(), r.Message)
	case jsonscan.Array, jsonscan.Object:
		r.Message = cmp.Or(r.Message, Excerpt(c.Raw()))
	}
}

// code reads a code, which is a number or a word.
func (r *failureReader) code(c *jsonscan.Cursor) {
	if c.Kind() != jsonscan.Number {
		r.Code = c.String()
		return
	}
	n, _ := c.Int()
	r.Status = int(n)
}

// page describes a body that is not JSON: the title of the page, or the beginning of the text.
func page(body []byte) string {
	s := string(body[:min(len(body), 4096)])
	lower := strings.ToLower(s)
	isPage := strings.Contains(lower, "<html") || strings.HasPrefix(strings.TrimSpace(lower), "<!doctype")
	_, after, titled := strings.Cut(lower, "<title>")
	if !isPage || !titled || len(lower) != len(s) {
		return Excerpt(body)
	}

	// The title has the same place in s, which has its capitals.
	from := len(s) - len(after)
	to := strings.Index(after, "</title>")
	if to <= 0 {
		return Excerpt(body)
	}
	return "an HTML page: " + strings.TrimSpace(s[from:from+to])
}

// Excerpt shortens text of unknown size for a message.
func Excerpt(b []byte) string {
	const most = 500
	s := strings.TrimSpace(string(b[:min(len(b), 8*most)]))
	if len(s) > most {
		s = s[:most]
		for len(s) > 0 && !utf8.ValidString(s[max(0, len(s)-4):]) && !utf8.RuneStart(s[len(s)-1]) {
			s = s[:len(s)-1]
		}
		s = strings.ToValidUTF8(s, "") + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// RetryAfter reads the wait that the headers ask for: in milliseconds, in seconds, or until a
// date. 0 means that they do not ask for one.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	// The upper bounds keep the multiplication within a Duration. NaN fails both comparisons.
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0
	}
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		if s >= 0 && s < 1e6 {
			return time.Duration(s * float64(time.Second))
		}
		return 0
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(0, t.Sub(now))
	}
	return 0
}

// RetryIn reads the wait from the text of an error, for providers that state it only there:
// "Please try again in 1.2s", "Please retry in 34.07s", "in 6m0s", "in 20 seconds". 0 means that
// the text does not ask for one.
func RetryIn(message string) time.Duration {
	lower := strings.ToLower(message)
	for _, words := range [...]string{"try again in ", "retry in ", "retry after "} {
		// The last occurrence: such sentences end with the wait, after they have quoted limits.
		i := strings.LastIndex(lower, words)
		if i < 0 {
			continue
		}
		n, unit, _ := strings.Cut(strings.TrimSpace(lower[i+len(words):]), " ")
		n = strings.TrimRight(n, ".,;)")

		if d, err := time.ParseDuration(n); err == nil && d > 0 && d < 1000*time.Hour {
			return d
		}
		if f, err := strconv.ParseFloat(n, 64); err == nil && f > 0 && f < 1e6 {
			switch {
			case strings.HasPrefix(unit, "second"):
				return time.Duration(f * float64(time.Second))
			case strings.HasPrefix(unit, "minute"):
				return time.Duration(f * float64(time.Minute))
			case strings.HasPrefix(unit, "millisecond"):
				return time.Duration(f * float64(time.Millisecond))
			}
		}
	}
	return 0
}

// StatusCode has the code for a status with one meaning at all providers. With 409 and 425, another
// request holds a resource that this one needs.
var StatusCode = map[int]llm.Code{
	401: llm.CodeAuthentication,
	402: llm.CodeQuota,
	403: llm.CodePermission,
	404: llm.CodeNotFound,
	408: llm.CodeTimeout,
	409: llm.CodeServer,
	410: llm.CodeNotFound,
	413: llm.CodeContextLength,
	425: llm.CodeServer,
	429: llm.CodeRateLimit,
	503: llm.CodeOverloaded,
	504: llm.CodeTimeout,
	529: llm.CodeOverloaded,
}

// StatusRange returns the code for any other status. An error in a stream has the status 0.
func StatusRange(status int) llm.Code {
	switch {
	case status >= 500:
		return llm.CodeServer
	case status >= 400:
		return llm.CodeInvalidRequest
	case status >= 300:
		return llm.CodeNotFound // a redirect: the address is not the API's
	}
	return llm.CodeServer
}

// Retryable reports whether a request that failed with a code may succeed if it is repeated.
func Retryable(code llm.Code) bool {
	return slices.Contains([]llm.Code{llm.CodeRateLimit, llm.CodeOverloaded, llm.CodeTimeout, llm.CodeServer}, code)
}

// Redirected is the message for a redirect without a message.
const Redirected = "the server answered with a redirect; is the base URL right?"

// Contains reports whether s contains one of the words.
func Contains(s string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
}

// SetRetry sets the wait of e, from the headers or else from other, and applies the header
// X-Should-Retry if the API has it.
func SetRetry(e *llm.ProviderError, h http.Header, now time.Time, other time.Duration) {
	if e.Status == http.StatusTooManyRequests || e.Status >= 500 {
		e.RetryAfter = RetryAfter(h, now)
		if e.RetryAfter == 0 {
			e.RetryAfter = other
		}
	}
	switch h.Get("X-Should-Retry") {
	case "true":
		e.Retryable = true
	case "false":
		e.Retryable = false
	}
}
