package openai_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/provider/openai"
)

// render writes a reply on one line: its parts, its finish and its usage.
func render(r *pawl.Response) string {
	var b strings.Builder
	for _, p := range r.Message.Parts {
		switch p := p.(type) {
		case pawl.Text:
			fmt.Fprintf(&b, "text %q%s; ", p.Text, opaque(p.Opaque))
		case pawl.Reasoning:
			fmt.Fprintf(&b, "reasoning %q%s; ", p.Text, opaque(p.Opaque))
		case pawl.ToolCall:
			fmt.Fprintf(&b, "call %s %s %s%s; ", p.ID, p.Name, p.Args, opaque(p.Opaque))
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

func opaque(o *pawl.Opaque) string {
	if o == nil {
		return ""
	}
	return fmt.Sprintf(" [%s %s]", o.Provider, o.Data)
}

// outcome is render, or the code and text of the error.
func outcome(r *pawl.Response, err error) string {
	if err == nil {
		return render(r)
	}
	var e *pawl.ProviderError
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

// events frames each text as the data of one event.
func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

// deltas makes a Chat Completions stream of the deltas of its first choice, a finish reason and [DONE].
func deltas(finish string, ds ...string) string {
	var out []string
	for _, d := range ds {
		out = append(out, `{"id":"c1","model":"m","choices":[{"index":0,"delta":`+d+`,"finish_reason":null}]}`)
	}
	return events(append(out, `{"choices":[{"index":0,"delta":{},"finish_reason":"`+finish+`"}]}`, "[DONE]")...)
}

// whole makes a whole Chat Completions body of a message.
func whole(finish, message string) string {
	return `{"id":"c1","model":"m","choices":[{"index":0,"message":` + message + `,"finish_reason":"` + finish + `"}]}`
}

// response makes a whole Responses body of output items.
func response(items ...string) string {
	return `{"id":"resp_1","object":"response","status":"completed","model":"m","error":null,"incomplete_details":null,"output":[` + strings.Join(items, ",") + `]}`
}

// transport answers requests from a function, without a network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := f(r)
	if r.Body != nil {
		r.Body.Close()
	}
	return res, err
}

func reply(status int, body string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
}

func tool(name string) *pawl.Tool {
	return &pawl.Tool{Name: name, Description: "Does " + name + ".", Input: []byte(`{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}`), Passive: true}
}

func user(text string) *pawl.Request {
	return &pawl.Request{Model: "m", Messages: []pawl.Message{pawl.User(text)}}
}

// local is a Model without a network, which needs no key.
func local(f transport) *openai.Model {
	return openai.New("m", &openai.Options{BaseURL: "http://local.test/v1", HTTP: f})
}

func localChat(f transport) *openai.Model {
	return openai.NewChat("m", &openai.Options{BaseURL: "http://local.test/v1", HTTP: f})
}

func mustEncode(t *testing.T, encode func(*pawl.Request) ([]byte, error), req *pawl.Request) string {
	t.Helper()
	b, err := encode(req)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	return string(b)
}

// checkEncode encodes req and compares it with want: a whole body, a piece of it, or "error …".
func checkEncode(t *testing.T, name string, encode func(*pawl.Request) ([]byte, error), req *pawl.Request, want string) {
	t.Helper()
	b, err := encode(req)
	got := string(b)
	if err != nil {
		got = outcome(nil, err)
	} else if !json.Valid(b) {
		t.Errorf("%s: not valid JSON: %s", name, b)
	}
	whole := strings.HasPrefix(want, `{"model"`) || strings.HasPrefix(want, "error")
	if whole && got != want || !strings.Contains(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", name, got, want)
	}
	if again, _ := encode(req); err == nil && string(again) != got {
		t.Errorf("%s: the same request gave other bytes", name)
	}
}

func checkJSON(t *testing.T, b []byte) {
	t.Helper()
	if !json.Valid(b) {
		t.Fatalf("not valid JSON: %q", b)
	}
}
