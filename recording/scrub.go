package recording

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/redact"
)

// hidden stands where a key was.
const hidden = "[redacted]"

// storedHeaders are the headers that describe a body or its use. All others may identify the
// sender.
var storedHeaders = []string{"accept", "anthropic-beta", "anthropic-version", "content-type", "openai-beta", "retry-after", "retry-after-ms"}

func headers(h http.Header) map[string]string {
	var out map[string]string
	for _, name := range storedHeaders {
		if v := h.Values(name); len(v) > 0 {
			if out == nil {
				out = map[string]string{}
			}
			out[name] = strings.Join(v, ", ")
		}
	}
	return out
}

// keyNames are parts of names of query parameters whose values are secret.
var keyNames = []string{"key", "token", "secret", "password", "signature", "sig", "credential", "auth"}

// address is a URL without keys.
func address(u *url.URL) string {
	v := *u
	v.User, v.Fragment = nil, ""
	if v.RawQuery != "" {
		q := v.Query()
		for name, values := range q {
			secret := slices.ContainsFunc(keyNames,
				func(part string) bool { return strings.Contains(strings.ToLower(name), part) })
			for i := range values {
				if secret {
					values[i] = hidden
				}
			}
		}
		v.RawQuery = q.Encode() // sorted
	}
	return v.String()
}

// Scrub returns e without secrets, as a Recorder records it. s may be nil.
func Scrub(e Exchange, s *redact.Redactor) Exchange {
	if u, err := url.Parse(e.Request.URL); err == nil {
		e.Request.URL = address(u)
	}
	e.Request.URL = s.String(e.Request.URL)
	e.Request.Header, e.Response.Header = only(e.Request.Header, s), only(e.Response.Header, s)
	e.Request.Body, e.Response.Body = clean(e.Request.Body, s), clean(e.Response.Body, s)
	e.Response.Error = s.String(e.Response.Error)
	return e
}

func only(h map[string]string, s *redact.Redactor) map[string]string {
	all := http.Header{}
	for name, v := range h {
		all.Set(name, s.String(v))
	}
	return headers(all)
}

// clean returns a body without secrets. A body that has none is returned unchanged, byte for byte.
func clean(b Body, s *redact.Redactor) Body {
	if s == nil || len(b) == 0 {
		return b
	}
	if text := s.String(string(b)); text != string(b) {
		return Body(text)
	}
	return b
}
