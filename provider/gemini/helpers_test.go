package gemini_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/provider/gemini"
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
		case pawl.Media:
			fmt.Fprintf(&b, "media %s %q %s; ", p.MIME, p.Data, p.URL)
		default:
			fmt.Fprintf(&b, "%T; ", p)
		}
	}
	b.WriteString(string(r.Finish))
	if u := r.Usage; u.Total() > 0 {
		fmt.Fprintf(&b, "; in %d out %d reasoning %d read %d", u.Input, u.Output, u.Reasoning, u.CacheRead)
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

// events frames each text as the data of one event, with the line ends that the API uses.
func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\r\n\r\n")
	}
	return b.String()
}

// chunk is a response object with the parts; finish "" leaves the reason out.
func chunk(finish string, parts ...string) string {
	s := `{"candidates":[{"content":{"role":"model","parts":[` + strings.Join(parts, ",") + `]}`
	if finish != "" {
		s += `,"finishReason":"` + finish + `"`
	}
	return s + `,"index":0}],"modelVersion":"m","responseId":"r1"}`
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
	return &pawl.Request{Model: "gemini-3-flash-preview", Messages: []pawl.Message{pawl.User(text)}}
}

// local is a Model without a network, which needs no key.
func local(f transport) *gemini.Model {
	return gemini.New("gemini-3-flash-preview", &gemini.Options{BaseURL: "http://local.test", HTTP: f})
}

// own is an Opaque of the Gemini API.
func own(data string) *pawl.Opaque { return &pawl.Opaque{Provider: "gemini", Data: []byte(data)} }

func mustEncode(t *testing.T, req *pawl.Request) string {
	t.Helper()
	b, err := gemini.EncodeGenerate(req)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	return string(b)
}

// checkEncode encodes req and compares it with want: a whole body, a piece of it, or "error …".
func checkEncode(t *testing.T, name string, req *pawl.Request, want string) {
	t.Helper()
	b, err := gemini.EncodeGenerate(req)
	got := string(b)
	if err != nil {
		got = outcome(nil, err)
	} else if !json.Valid(b) {
		t.Errorf("%s: not valid JSON: %s", name, b)
	}
	whole := strings.HasPrefix(want, `{"contents"`) || strings.HasPrefix(want, `{"system`) || strings.HasPrefix(want, "error")
	if whole && got != want || !strings.Contains(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", name, got, want)
	}
	if again, _ := gemini.EncodeGenerate(req); err == nil && string(again) != got {
		t.Errorf("%s: the same request gave other bytes", name)
	}
}
