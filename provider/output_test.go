package provider_test

import (
	"testing"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/anthropic"
	"github.com/pawl-go/pawl/provider/gemini"
	"github.com/pawl-go/pawl/provider/openai"
)

// Each adapter reports whether its provider enforces an output schema together with tools.
func TestHoldsOutput(t *testing.T) {
	for _, tt := range []struct {
		name  string
		model llm.OutputHolder
		want  bool
	}{
		{"Responses", openai.New("gpt-6.1-terra", &openai.Options{BaseURL: openai.DefaultBaseURL}), true},
		{"Chat Completions", openai.NewChat("gpt-6.1-terra", &openai.Options{BaseURL: openai.DefaultBaseURL}), true},
		{"a server of one's own", openai.NewChat("qwen3:4b", &openai.Options{BaseURL: "http://localhost:11434/v1"}), false},
		{"Claude 4.5", anthropic.New("claude-sonnet-5-5", &anthropic.Options{BaseURL: anthropic.DefaultBaseURL}), true},
		{"Claude 3.7", anthropic.New("claude-3-7-sonnet-latest", &anthropic.Options{BaseURL: anthropic.DefaultBaseURL}), false},
		{"Gemini 3", gemini.New("gemini-3-pro-preview", nil), true},
		{"Gemini 2.5", gemini.New("gemini-2.5-flash", nil), false},
	} {
		if got := tt.model.HoldsOutput(&llm.Request{}); got != tt.want {
			t.Errorf("%s: got %t", tt.name, got)
		}
	}
}
