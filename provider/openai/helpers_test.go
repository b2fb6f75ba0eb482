package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/openai"
)

// The helpers with the same names in the tests of all adapters.
type transport = wiretest.Transport

var (
	outcome = wiretest.Outcome
	reply   = wiretest.Reply
	tool    = wiretest.Tool
	events  = wiretest.Events
)

// deltas returns a Chat Completions stream with the deltas of its first choice, a finish reason
// and [DONE].
func deltas(finish string, ds ...string) string {
	var out []string
	for _, d := range ds {
		out = append(out, `{"id":"c1","model":"m","choices":[{"index":0,"delta":`+d+`,"finish_reason":null}]}`)
	}
	return events(append(out, `{"choices":[{"index":0,"delta":{},"finish_reason":"`+finish+`"}]}`, "[DONE]")...)
}

// whole returns a whole Chat Completions body with a message.
func whole(finish, message string) string {
	return `{"id":"c1","model":"m","choices":[{"index":0,"message":` + message + `,"finish_reason":"` + finish + `"}]}`
}

// response returns a whole Responses body with output items.
func response(items ...string) string {
	return `{"id":"resp_1","object":"response","status":"completed","model":"m","error":null,"incomplete_details":null,"output":[` + strings.Join(items, ",") + `]}`
}

func user(text string) *llm.Request {
	return &llm.Request{Model: "m", Messages: []llm.Message{llm.User(text)}}
}

// local is a Model without a network, which needs no key.
func local(f transport) *openai.Model {
	return openai.New("m", &openai.Options{BaseURL: "http://local.test/v1", HTTP: f})
}

func localChat(f transport) *openai.Model {
	return openai.NewChat("m", &openai.Options{BaseURL: "http://local.test/v1", HTTP: f})
}

func mustEncode(t *testing.T, encode func(*llm.Request) ([]byte, error), req *llm.Request) string {
	t.Helper()
	b, err := encode(req)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	return string(b)
}

// checkEncode encodes req and compares it with want: a whole body, a part of it, or "error …".
func checkEncode(t *testing.T, name string, encode func(*llm.Request) ([]byte, error), req *llm.Request, want string) {
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
