package pawltest_test

import (
	"strings"
	"testing"

	"github.com/pawl-go/pawl/pawltest"
)

const (
	declared   = `"tools":[{"functionDeclarations":[{"name":"look","parametersJsonSchema":{"type":"object"}},{"name":"find"}]}]`
	asks       = `{"role":"user","parts":[{"text":"hi"}]}`
	says       = `{"role":"model","parts":[{"text":"so"}]}`
	fcLook     = `{"functionCall":{"name":"look","args":{}},"thoughtSignature":"x"}`
	fcFind     = `{"functionCall":{"name":"find","args":{}}}`
	callsBoth  = `{"role":"model","parts":[` + fcLook + `,` + fcFind + `]}`
	callsLook  = `{"role":"model","parts":[` + fcLook + `]}`
	frLook     = `{"functionResponse":{"name":"look","response":{"result":"1"}}}`
	frFind     = `{"functionResponse":{"name":"find","response":{"result":"2"}}}`
	answerBoth = `{"role":"user","parts":[` + frLook + `,` + frFind + `]}`
	answerLook = `{"role":"user","parts":[` + frLook + `]}`
)

func TestCheckGemini(t *testing.T) {
	change := strings.Replace
	content := func(role string, parts ...string) string {
		return `{"role":"` + role + `","parts":[` + strings.Join(parts, ",") + `]}`
	}
	withID := func(s, id string) string { return change(s, `"name"`, `"id":"`+id+`","name"`, 1) }
	for name, test := range map[string]struct {
		contents []string
		want     string // part of the first violation; "" means accepted
	}{
		"a question":        {[]string{asks}, ""},
		"no role":           {[]string{`{"parts":[{"text":"hi"}]}`}, ""},
		"calls and results": {[]string{asks, callsBoth, answerBoth, says, asks}, ""},
		"steps":             {[]string{asks, callsLook, answerLook, callsLook, answerLook}, ""},
		"snake case":        {[]string{asks, content("model", `{"function_call":{"name":"look"},"thought_signature":"x"}`), content("user", `{"function_response":{"name":"look","response":{}}}`)}, ""},
		"ids": {[]string{asks, content("model", withID(fcLook, "1"), withID(fcLook, "2")),
			content("user", withID(frLook, "2"), withID(frLook, "1"))}, ""},
		"a legacy role":      {[]string{asks, callsLook, change(answerLook, "user", "function", 1)}, ""},
		"an image":           {[]string{content("user", `{"inlineData":{"mimeType":"image/png","data":"AQID"}}`)}, ""},
		"an image in result": {[]string{asks, callsLook, content("user", `{"functionResponse":{"name":"look","response":{},"parts":[{"inlineData":{"mimeType":"image/png","data":"AQID"}}]}}`)}, ""},

		"dangling call at the end":   {[]string{asks, callsLook}, `/contents/1/parts/0: 1 calls, but 0 results right after them`},
		"fewer results than calls":   {[]string{asks, callsBoth, answerLook, asks}, `/contents/1/parts/0: 2 calls, but 1 results`},
		"more results than calls":    {[]string{asks, callsLook, answerBoth}, `1 calls, but 2 results`},
		"results one content each":   {[]string{asks, callsBoth, answerLook, content("user", frFind)}, `2 calls, but 1 results`},
		"result of another function": {[]string{asks, callsLook, content("user", frFind)}, `/contents/2/parts/0: a result for find, but no such call is open`},
		"result with another id":     {[]string{asks, content("model", withID(fcLook, "1")), content("user", withID(frLook, "2"))}, `a result for look 2`},
		"result without a call":      {[]string{asks, answerLook}, `/contents/1: results must come right after the content with their calls`},
		"words between":              {[]string{asks, callsLook, asks, answerLook}, `1 calls, but 0 results`},
		"call after a reply":         {[]string{asks, says, callsLook, answerLook}, `/contents/2: calls must come right after a user turn`},
		"call of the user":           {[]string{content("user", fcLook), answerLook}, `/contents/0/parts/0: only the model calls functions`},
		"result of the model":        {[]string{asks, callsLook, content("model", frLook)}, `/contents/2/parts/0: the model gives no results`},
		"response as a string":       {[]string{asks, callsLook, change(answerLook, `{"result":"1"}`, `"1"`, 1)}, `/contents/2/parts/0/functionResponse/response: want an object, got a string`},
		"args as a string":           {[]string{asks, change(callsLook, `"args":{}`, `"args":"{}"`, 1), answerLook}, `/contents/1/parts/0/functionCall/args: want an object, got a string`},
		"signature inside the call":  {[]string{asks, content("model", `{"functionCall":{"name":"look","thoughtSignature":"x"}}`), answerLook}, `/contents/1/parts/0/functionCall/thoughtSignature: unknown name`},
		"signature on a later call":  {[]string{asks, content("model", fcFind, fcLook), content("user", frFind, frLook)}, `/contents/1/parts/1: the first of parallel calls bears the signature`},
		"no parts":                   {[]string{asks, content("model"), asks}, `/contents/1/parts: must include at least one part`},
		"an empty part":              {[]string{content("user", `{}`)}, `/contents/0/parts/0: a part must have one field`},
		"two things in a part":       {[]string{content("user", `{"text":"x","inlineData":{"mimeType":"a/b","data":"x"}}`)}, `a part is one thing, got text and inlineData`},
		"role assistant":             {[]string{asks, change(says, "model", "assistant", 1), asks}, `/contents/1/role: want user or model, got "assistant"`},
		"no name":                    {[]string{asks, change(callsLook, `"look"`, `""`, 1), answerLook}, `/contents/1/parts/0/functionCall/name`},
		"nothing":                    {nil, `/contents: want a list of at least one content`},
	} {
		body := `{` + declared + `,"contents":[` + strings.Join(test.contents, ",") + `]}`
		checkFirst(t, name, pawltest.Gemini, body, test.want)
	}
}

// Models from 3 on require the signature of every step of the current turn, and of no other turn.
func TestCheckGeminiSignatures(t *testing.T) {
	unsigned := `{"role":"model","parts":[{"functionCall":{"name":"look"}}]}`
	for name, test := range map[string]struct {
		model    string
		contents []string
		want     string
	}{
		"signed":             {"gemini-3-pro-preview", []string{asks, callsLook, answerLook, callsBoth, answerBoth}, ""},
		"an earlier turn":    {"gemini-3-pro-preview", []string{asks, unsigned, answerLook, says, asks}, ""},
		"an older model":     {"gemini-2.5-flash", []string{asks, callsLook, answerLook, unsigned, answerLook}, ""},
		"the first is lost":  {"gemini-3-pro-preview", []string{asks, unsigned, answerLook}, "/contents/1/parts/0: the call is missing its thoughtSignature"},
		"the second is lost": {"gemini-3.1-flash", []string{asks, callsLook, answerLook, unsigned, answerLook}, "/contents/3/parts/0: the call is missing"},
	} {
		got := pawltest.CheckModel(pawltest.Gemini, test.model, []byte(`{"contents":[`+strings.Join(test.contents, ",")+`]}`))
		if test.want == "" && len(got) > 0 || test.want != "" &&
			(len(got) == 0 || !strings.Contains(got[0].String(), test.want)) {
			t.Errorf("%s: got %v, want %q", name, got, test.want)
		}
	}
}

func TestCheckGeminiRequests(t *testing.T) {
	const asked = `"contents":[` + asks + `]`
	for name, test := range map[string]struct{ rest, want string }{
		"auto":                 {asked + `,` + declared + `,"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}}`, ""},
		"named":                {asked + `,` + declared + `,"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["look"]}}`, ""},
		"hosted":               {asked + `,"tools":[{"googleSearch":{}}]`, ""},
		"open schema":          {asked + `,"tools":[{"functionDeclarations":[{"name":"a","parameters":{"type":"OBJECT","properties":{"x":{"type":"STRING","nullable":true}}}}]}]`, ""},
		"output":               {asked + `,"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{"type":"object"}}`, ""},
		"not declared":         {asked + `,` + declared + `,"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["gone"]}}`, `the function "gone" is not declared`},
		"names with auto":      {asked + `,` + declared + `,"toolConfig":{"functionCallingConfig":{"mode":"AUTO","allowedFunctionNames":["look"]}}`, `may only be set with mode ANY`},
		"forced, no functions": {asked + `,"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}`, `a forced call without functions`},
		"unknown mode":         {asked + `,` + declared + `,"toolConfig":{"functionCallingConfig":{"mode":"REQUIRED"}}`, `unknown mode "REQUIRED"`},
		"choice of OpenAI":     {asked + `,` + declared + `,"tool_choice":"auto"`, `/tool_choice: unknown name`},
		"tools of OpenAI":      {asked + `,` + chatTools, `this API wants functionDeclarations`},
		"name twice":           {asked + `,"tools":[{"functionDeclarations":[{"name":"a"},{"name":"a"}]}]`, `another function is named "a"`},
		"bad name":             {asked + `,"tools":[{"functionDeclarations":[{"name":"a b"}]}]`, `/tools/0/functionDeclarations/0/name`},
		"a keyword too many":   {asked + `,"tools":[{"functionDeclarations":[{"name":"a","parameters":{"type":"object","properties":{"x":{"oneOf":[]}}}}]}]`, `/tools/0/functionDeclarations/0/parameters/properties/x: unknown name "oneOf"`},
		"a list of types":      {asked + `,"tools":[{"functionDeclarations":[{"name":"a","parameters":{"type":["object","null"]}}]}]`, `/parameters/type: want one type, got a list`},
		"both schemas":         {asked + `,"tools":[{"functionDeclarations":[{"name":"a","parameters":{},"parametersJsonSchema":{}}]}]`, `exclude each other`},
		"output as text":       {asked + `,"generationConfig":{"responseSchema":{"type":"OBJECT"}}`, `wants responseMimeType application/json`},
		"messages":             {`"messages":[` + user + `]`, `/messages: unknown name`},
		"stream in the body":   {asked + `,"stream":true`, `/stream: unknown name`},
	} {
		checkFirst(t, name, pawltest.Gemini, `{`+test.rest+`}`, test.want)
	}
}
