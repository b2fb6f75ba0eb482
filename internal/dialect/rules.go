package dialect

import (
	_ "embed"
	"encoding/json"
)

// rulesJSON has the dialects, and the sources of their rules with a summary. Pages change; these
// were read in 2026. A report is an issue or a pull request that quotes the provider's error
// message.
//
//go:embed rules.json
var rulesJSON []byte

// all are the dialects, in a fixed order.
var all = readRules()

// OpenAI is the form of function tools that are not strict, in Responses and Chat Completions.
// OpenAI accepts almost all of JSON Schema. Compatible servers accept less, so simplifications
// without a cost (inlining, items) are made for them.
var OpenAI = ByName("openai")

// OpenAIStrict is the form of function tools with strict: true, and of structured output. The
// provider enforces the output while the model writes.
var OpenAIStrict = ByName("openai-strict")

// Anthropic is the form of input_schema in Messages: JSON Schema 2020-12 with restrictions for the
// root and the names of properties.
var Anthropic = ByName("anthropic")

// AnthropicStrict is the form of tools with strict: true, and of structured output. The provider
// enforces the output while the model writes. A request may contain 20 such tools, and 24 optional
// properties in total; the sender must count them.
var AnthropicStrict = ByName("anthropic-strict")

// Gemini is the form of a function declaration's parameters: a subset of OpenAPI 3.0, read as a
// protocol buffer without other names. GeminiJSON accepts more, but not in every version of the
// API.
var Gemini = ByName("gemini")

// GeminiJSON is the form of parametersJsonSchema and responseJsonSchema, which accept JSON Schema.
// Recursion is not changed; the provider follows it for some levels.
var GeminiJSON = ByName("gemini-json")

// readRules reads the dialects. The file is embedded, so an invalid one causes a panic.
func readRules() []*Dialect {
	var file struct {
		Sources  map[string]struct{ URL string }
		Dialects []*Dialect
	}
	if err := json.Unmarshal(rulesJSON, &file); err != nil {
		panic(err)
	}
	for _, d := range file.Dialects {
		for i, r := range d.Rules {
			d.Rules[i].Source = file.Sources[r.Source].URL
		}
	}
	return file.Dialects
}
