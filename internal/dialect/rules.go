package dialect

import (
	_ "embed"
	"encoding/json"
	"sync"
)

// rulesJSON has the dialects, and the sources of their rules with a summary. Pages change; these
// were read in 2026. A report is an issue or a pull request that quotes the provider's error
// message.
//
//go:embed rules.json
var rulesJSON []byte

// all are the dialects, in a fixed order. Their rules are empty until load is called.
var all = []*Dialect{OpenAI, OpenAIStrict, Anthropic, AnthropicStrict, Gemini, GeminiJSON}

// OpenAI is the form of function tools that are not strict, in Responses and Chat Completions.
// OpenAI accepts almost all of JSON Schema. Compatible servers accept less, so simplifications
// without a cost (inlining, items) are made for them.
var OpenAI = &Dialect{Name: "openai"}

// OpenAIStrict is the form of function tools with strict: true, and of structured output. The
// provider enforces the output while the model writes.
var OpenAIStrict = &Dialect{Name: "openai-strict"}

// Anthropic is the form of input_schema in Messages: JSON Schema 2020-12 with restrictions for the
// root and the names of properties.
var Anthropic = &Dialect{Name: "anthropic"}

// AnthropicStrict is the form of tools with strict: true, and of structured output. The provider
// enforces the output while the model writes. A request may contain 20 such tools, and 24 optional
// properties in total; the sender must count them.
var AnthropicStrict = &Dialect{Name: "anthropic-strict"}

// Gemini is the form of a function declaration's parameters: a subset of OpenAPI 3.0, read as a
// protocol buffer without other names. GeminiJSON accepts more, but not in every version of the
// API.
var Gemini = &Dialect{Name: "gemini"}

// GeminiJSON is the form of parametersJsonSchema and responseJsonSchema, which accept JSON Schema.
// Recursion is not changed; the provider follows it for some levels.
var GeminiJSON = &Dialect{Name: "gemini-json"}

// load reads the rules of all dialects, once. The file is embedded, so an invalid one causes a
// panic.
var load = sync.OnceFunc(func() {
	var file struct {
		Sources  map[string]struct{ URL string }
		Dialects []Dialect
	}
	if err := json.Unmarshal(rulesJSON, &file); err != nil {
		panic(err)
	}
	for i, d := range file.Dialects {
		for i, r := range d.Rules {
			d.Rules[i].Source = file.Sources[r.Source].URL
		}
		if d.Name != all[i].Name {
			panic("rules.json has the dialects in another order: " + d.Name)
		}
		*all[i] = d
	}
})
