package gemini_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/gemini"
)

// The helpers with the same names in the tests of all adapters.
type transport = wiretest.Transport

var (
	outcome = wiretest.Outcome
	reply   = wiretest.Reply
	tool    = wiretest.Tool
)

// events frames each text as the data of one event, with the line ends that the API uses.
func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\r\n\r\n")
	}
	return b.String()
}

// chunk returns a response object with the parts. An empty finish leaves the reason out.
func chunk(finish string, parts ...string) string {
	s := `{"candidates":[{"content":{"role":"model","parts":[` + strings.Join(parts, ",") + `]}`
	if finish != "" {
		s += `,"finishReason":"` + finish + `"`
	}
	return s + `,"index":0}],"modelVersion":"m","responseId":"r1"}`
}

func user(text string) *llm.Request {
	return &llm.Request{Model: "gemini-3-flash-preview", Messages: []llm.Message{llm.User(text)}}
}

// local is a Model without a network, which needs no key.
func local(f transport) *gemini.Model {
	return gemini.New("gemini-3-flash-preview", &gemini.Options{BaseURL: "http://local.test", HTTP: f})
}

// own returns an Opaque of the Gemini API.
func own(data string) *llm.Opaque { return &llm.Opaque{Provider: "gemini", Data: []byte(data)} }

func mustEncode(t *testing.T, req *llm.Request) string {
	t.Helper()
	b, err := gemini.EncodeGenerate(req)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	return string(b)
}

// checkEncode encodes req and compares it with want: a whole body, a part of it, or "error …".
func checkEncode(t *testing.T, name string, req *llm.Request, want string) {
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
