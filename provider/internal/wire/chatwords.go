package wire

import "github.com/pawl-go/pawl/internal/jsonscan"

// HasContent reports whether a delta of a chat completion says something. Deltas without content
// may have a role and padding.
func HasContent(delta []byte) bool {
	c := jsonscan.New(delta)
	for k := range c.Members() {
		value := string(c.Raw())
		isEmpty := value == "null" || len(value) == len(`""`)
		switch string(k) {
		case "content", "refusal", "reasoning_content", "reasoning", "reasoning_details", "tool_calls", "function_call":
			if !isEmpty {
				return true
			}
		}
	}
	return false
}

// ChatWords are the finish reasons of servers with Chat Completions other than OpenAI's, in lower
// case: their own words, and the words of other APIs that gateways pass on. Each word of those APIs
// that says that a reply is not complete has a row, because at these servers an unknown word counts
// as complete.
var ChatWords = Endings{
	"eos":       Answered, // Together
	"eos_token": Answered, // Text Generation Inference
	"completed": Answered,

	"tool_call": Calls,

	"max_new_tokens": Full,
	"max_length":     Full,
	"token_limit":    Full, // watsonx
	"model_length":   Full, // Mistral: the context window

	"abort":                        Cut, // vLLM, SGLang
	"aborted":                      Cut,
	"insufficient_system_resource": Cut, // DeepSeek
	"network_error":                Cut, // Z.ai
	"not_finished":                 Cut, // watsonx
	"time_limit":                   Cut,

	"sensitive": Filtered, // Z.ai

	"error": Unusable, // Mistral, OpenRouter

	"end_turn":      Answered, // Anthropic
	"stop_sequence": Answered,
	"tool_use":      Calls,
	"max_tokens":    Full,
	"pause_turn":    Cut,
	"compaction":    Cut,
	"refusal":       Filtered,

	"model_context_window_exceeded": Full,

	"max_output_tokens": Full, // Responses
	"incomplete":        Cut,
	"max_messages":      Cut,
	"steered":           Cut,
	"queued":            Cut,
	"in_progress":       Cut,
	"failed":            Unusable,
	"cancelled":         Unusable,

	"other":                     Cut, // Gemini
	"continuation":              Cut,
	"no_image":                  Cut,
	"image_other":               Cut,
	"finish_reason_unspecified": Cut,
	"safety":                    Filtered,
	"recitation":                Filtered,
	"language":                  Filtered,
	"blocklist":                 Filtered,
	"prohibited_content":        Filtered,
	"spii":                      Filtered,
	"model_armor":               Filtered,
	"image_safety":              Filtered,
	"image_prohibited_content":  Filtered,
	"image_recitation":          Filtered,
	"malformed_function_call":   Unusable,
	"unexpected_tool_call":      Unusable,
	"too_many_tool_calls":       Unusable,
	"malformed_response":        Unusable,
	"missing_thought_signature": Unusable,

	"content_filtered":        Filtered, // Bedrock
	"guardrail_intervened":    Filtered,
	"malformed_model_output":  Unusable,
	"malformed_tool_use":      Unusable,
	"context_length_exceeded": Full,

	"complete":    Answered, // Cohere
	"error_limit": Full,
	"error_toxic": Filtered,
	"timeout":     Cut,
	"user_cancel": Cut,
}
