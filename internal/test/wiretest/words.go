package wiretest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/llm"
)

// Render formats a reply on one line: its parts, its finish and its usage.
func Render(r *llm.Response) string {
	var b strings.Builder
	for _, p := range r.Message.Parts {
		switch p := p.(type) {
		case llm.Text:
			fmt.Fprintf(&b, "text %q%s; ", p.Text, opaque(p.Opaque))
		case llm.Reasoning:
			fmt.Fprintf(&b, "reasoning %q%s; ", p.Text, opaque(p.Opaque))
		case llm.ToolCall:
			fmt.Fprintf(&b, "call %s %s %s%s; ", p.ID, p.Name, p.Args, opaque(p.Opaque))
		case llm.Media:
			fmt.Fprintf(&b, "media %s %q %s; ", p.MIME, p.Data, p.URL)
		default:
			fmt.Fprintf(&b, "%T; ", p)
		}
	}
	b.WriteString(string(r.Finish))
	if u := r.Usage; u.Total() > 0 {
		fmt.Fprintf(&b, "; in %d out %d", u.Input, u.Output)
		for _, n := range []struct {
			name string
			n    int
		}{{"reasoning", u.Reasoning}, {"read", u.CacheRead}, {"write", u.CacheWrite}} {
			if n.n > 0 {
				fmt.Fprintf(&b, " %s %d", n.name, n.n)
			}
		}
	}
	return b.String()
}

func opaque(o *llm.Opaque) string {
	if o == nil {
		return ""
	}
	return fmt.Sprintf(" [%s %s]", o.Provider, o.Data)
}

// Outcome returns Render, or the code and text of the error.
func Outcome(r *llm.Response, err error) string {
	if err == nil {
		return Render(r)
	}
	var e *llm.ProviderError
	if !errors.As(err, &e) {
		return "not a ProviderError: " + err.Error()
	}
	s := "error " + string(e.Code)
	if e.Status != 0 {
		s += fmt.Sprintf(" %d", e.Status)
	}
	if e.Retryable {
		s += " retryable"
	}
	if e.RetryAfter > 0 {
		s += " after " + e.RetryAfter.String()
	}
	return s + ": " + e.Message
}

// Events frames each text as the data of one event.
func Events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

// Transport answers requests with a function, without a network.
type Transport func(*http.Request) (*http.Response, error)

// RoundTrip calls the function, and closes the request's body as a transport must.
func (f Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := f(r)
	if r.Body != nil {
		r.Body.Close()
	}
	return res, err
}

// Reply returns an answer with a body, and headers by name and value.
func Reply(status int, body string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body))}
}

// Tool is a tool with one required number x.
func Tool(name string) *llm.ToolSpec {
	return &llm.ToolSpec{Name: name, Description: "Does " + name + ".", Input: []byte(`{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}`)}
}

// CheckEncode encodes req and compares it with want: a whole body if want starts with begins,
// otherwise a part of it, or "error …".
func (w *Wire) CheckEncode(t *testing.T, name string, req *llm.Request, begins, want string) {
	t.Helper()
	b, err := w.Encode(req)
	got := string(b)
	if err != nil {
		got = Outcome(nil, err)
	} else if !json.Valid(b) {
		t.Errorf("%s: not valid JSON: %s", name, b)
	}
	whole := strings.HasPrefix(want, begins) || strings.HasPrefix(want, "error")
	if whole && got != want || !strings.Contains(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", name, got, want)
	}
	if again, _ := w.Encode(req); err == nil && string(again) != got {
		t.Errorf("%s: the same request gave other bytes", name)
	}
}
