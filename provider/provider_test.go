package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/provider"
)

func TestOpenKnowsItsProviders(t *testing.T) {
	for _, name := range []string{"openai:gpt-6.1-terra", "openai-chat:gpt-6.1-terra", "openai-chat:qwen3:4b", "openai-chat:meta-llama/llama-3.3-70b:free", "anthropic:claude-sonnet-5-5", "gemini:gemini-3.8-flash"} {
		if m, err := provider.Open(name, nil); err != nil || m == nil {
			t.Errorf("Open(%q) = %v, %v", name, m, err)
		}
	}
}

func TestOpenSaysWhatWouldBeRight(t *testing.T) {
	for name, want := range map[string]string{
		"":                "want PROVIDER:MODEL, such as openai:gpt-6.1-terra",
		"gpt-6.1-terra":   "did you mean openai:gpt-6.1-terra?",
		"claude-opus-4-6": "did you mean anthropic:claude-opus-4-6?",
		"gemini-3-pro":    "did you mean gemini:gemini-3-pro?",
		"openai":          "a model's name follows openai:",
		"openai:":         "a model's name follows openai:",
		":gpt-5":          "did you mean openai:gpt-5?",
		"opneai:gpt-5":    `unknown provider "opneai"; known: openai, openai-chat, anthropic, gemini, ollama, vllm, llamacpp, lmstudio, openrouter, groq, mistral, deepseek, xai, azure; did you mean openai:gpt-5?`,
		"OpenAI:gpt-5":    "did you mean openai:gpt-5?",
		"grok-4":          "did you mean xai:grok-4?",
		"mistral-large":   "did you mean mistral:mistral-large?",
		"llama3.2":        "did you mean ollama:llama3.2?",
		"qwen3:4b":        "did you mean ollama:qwen3:4b?",
		"gpt-oss:latest":  "did you mean ollama:gpt-oss:latest?",
		"ollama/qwen3:4b": "did you mean ollama:qwen3:4b?",

		"models/gemini-3.8-flash": "did you mean gemini:gemini-3.8-flash?",
		"openai.gpt-6.1-terra":    "did you mean openai:gpt-6.1-terra?",
		"openai_chat:x":           "did you mean openai-chat:x?",
		"mainframe:cobol":         `unknown provider "mainframe"; known: openai, openai-chat, anthropic, gemini, ollama, vllm, llamacpp, lmstudio, openrouter, groq, mistral, deepseek, xai, azure`,
	} {
		m, err := provider.Open(name, nil)
		if err == nil || m != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q): %v; want an error with %q", name, err, want)
		}
	}
}

func ExampleOpen() {
	_, err := provider.Open("opneai:gpt-6.1-terra", nil)
	fmt.Println(strings.NewReplacer("; ", "\n", " ollama", "\nollama").Replace(err.Error()))
	// Output:
	// model "opneai:gpt-6.1-terra": unknown provider "opneai"
	// known: openai, openai-chat, anthropic, gemini,
	// ollama, vllm, llamacpp, lmstudio, openrouter, groq, mistral, deepseek, xai, azure
	// did you mean openai:gpt-6.1-terra?
}
