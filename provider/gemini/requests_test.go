package gemini_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/gemini"
)

// The wire for the proofs of wiretest.
var generateWire = &wiretest.Wire{API: pawltest.Gemini, Provider: "gemini", Encode: gemini.EncodeGenerate,
	Decode: gemini.DecodeGenerate,
	Excluded: func(e *pawltest.Exchange) string {
		if strings.HasSuffix(e.Path, ":countTokens") {
			return "another endpoint: counts tokens"
		}
		return ""
	},
	Open: func(h http.RoundTripper) llm.Model {
		return gemini.New("m", &gemini.Options{BaseURL: gemini.DefaultBaseURL, Key: "k", HTTP: h, Retries: -1})
	}}

// Every recorded request keeps its meaning when it is read and encoded again.
func TestRecordedRequests(t *testing.T) {
	soak.Sequential(t)
	wiretest.Requests(t, generateWire, &spelling)
}

// list returns v as a list of objects. A single object becomes a list with one element.
func list(v any) (all []map[string]any) {
	l, ok := v.([]any)
	if !ok && v != nil {
		l = []any{v}
	}
	for _, v := range l {
		if o, ok := v.(map[string]any); ok {
			all = append(all, o)
		}
	}
	return all
}

// one converts a member that is an object to a list with one element.
func one(o map[string]any, name string) {
	if v, ok := o[name].(map[string]any); ok {
		o[name] = []any{v}
	}
}

// camel converts the names in an object to the form of the documentation, but not the caller's own
// names.
func camel(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = camel(v[i])
		}
	case map[string]any:
		for name, inner := range v {
			delete(v, name)
			words := strings.Split(name, "_")
			for i := 1; i < len(words); i++ {
				words[i] = strings.ToUpper(words[i][:min(1, len(words[i]))]) + words[i][min(1, len(words[i])):]
			}
			switch name = strings.Join(words, ""); name {
			case "args", "response", "parameters", "responseSchema", "responseJsonSchema", "parametersJsonSchema":
				v[name] = inner
			default:
				v[name] = camel(inner)
			}
		}
	}
	return v
}

// said returns data in the usual form of base64.
func said(part map[string]any) {
	if d, ok := part["inlineData"].(map[string]any); ok {
		s, _ := d["data"].(string)
		d["data"] = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(s, "="))
	}
}

// answered reads a result: JSON is sent as an object, and text in an object with one member.
func answered(v any) any {
	o, _ := v.(map[string]any)
	for _, word := range []string{"result", "output", "content"} {
		s, ok := o[word].(string)
		if !ok || len(o) != 1 {
			continue
		}
		d := json.NewDecoder(strings.NewReader(s))
		d.UseNumber()
		var inner any
		if strings.HasPrefix(s, "{") && d.Decode(&inner) == nil {
			return inner
		}
		return map[string]any{"result": s}
	}
	return v
}

// asSchema converts a schema in OpenAPI's form to JSON Schema, and names it accordingly.
func asSchema(o map[string]any, from, to string) {
	if s, ok := o[from]; ok {
		delete(o, from)
		o[to] = schemaOf(s)
	} else if s, ok := o[to]; ok {
		o[to] = schemaOf(s)
	} else if to == "parametersJsonSchema" {
		o[to] = map[string]any{"type": "object", "properties": map[string]any{}}
	}
}

func schemaOf(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = schemaOf(v[i])
		}
	case map[string]any:
		for name, inner := range v {
			switch s, isString := inner.(string); {
			case name == "type" && isString:
				v[name] = strings.ToLower(s)
			case isString && (strings.HasPrefix(name, "min") || strings.HasPrefix(name, "max")):
				v[name] = json.Number(s)
			case name == "propertyOrdering" || name == "property_ordering":
				delete(v, name)
			default:
				v[name] = schemaOf(inner)
			}
		}
		if v["nullable"] == true {
			v["type"] = []any{v["type"], "null"}
		}
		delete(v, "nullable")
	}
	return v
}

var spelling = wiretest.Spelling{
	Known:    []string{"model", "systemInstruction", "system_instruction", "contents", "tools", "toolConfig", "tool_config", "generationConfig", "generation_config"},
	Verbatim: []string{"args", "response", "parameters", "responseSchema", "responseJsonSchema", "parametersJsonSchema"},
	Dropped: map[string]string{
		"tools[].functionDeclarations[].parametersJsonSchema*": "schemas go in the API's dialect; what it cannot say is reported, and held to here (internal/dialect)",
		"generationConfig.responseJsonSchema*":                 "the same",
		"tools[].functionDeclarations[].responseJsonSchema*":   "what a function gives back has no schema on the wire; the model sees its results",
		"contents[].role": "contents of one side that follow each other are one, and results have the user's",
	},
	Otherwise: map[string]string{
		`kept {"text":"","thought":true`: "a thought without text is written with an empty one",
	},
	Options: func(body, options map[string]any) {
		delete(options, "model")
		var tools []any
		for _, tool := range list(body["tools"]) {
			own := map[string]any{}
			for name, v := range tool {
				if name != "functionDeclarations" && name != "function_declarations" {
					own[name] = v
				}
			}
			if len(own) > 0 {
				tools = append(tools, own)
			}
		}
		if tools != nil {
			options["tools"] = tools
		}
		for _, name := range []string{"toolConfig", "tool_config"} {
			c, _ := body[name].(map[string]any)
			own := map[string]any{}
			for name, v := range c {
				f, _ := v.(map[string]any)
				// a mode that llm.ToolChoice does not have
				if mode, _ := f["mode"].(string); mode == "" || strings.EqualFold(mode, "VALIDATED") {
					own[name] = v
				}
			}
			if len(own) > 0 {
				options["toolConfig"] = own
			}
		}
		for _, name := range []string{"generationConfig", "generation_config"} {
			c, _ := body[name].(map[string]any)
			own := map[string]any{}
			for name, v := range c {
				switch name {
				case "maxOutputTokens", "temperature", "topP", "stopSequences", "responseJsonSchema", "responseSchema", "max_output_tokens", "top_p", "stop_sequences", "response_schema", "response_json_schema":
				case "responseMimeType", "response_mime_type":
					if c["responseSchema"] == nil && c["responseJsonSchema"] == nil && c["response_schema"] == nil && c["response_json_schema"] == nil {
						own[name] = v
					}
				default:
					own[name] = v
				}
			}
			if len(own) > 0 {
				options["generationConfig"] = own
			}
		}
	},
	Spell: func(body map[string]any) {
		camel(body)
		delete(body, "model")
		if s, ok := body["systemInstruction"].(map[string]any); ok {
			delete(s, "role")
			one(s, "parts")
		}
		one(body, "tools")
		for _, tool := range list(body["tools"]) {
			one(tool, "functionDeclarations")
			for _, f := range list(tool["functionDeclarations"]) {
				asSchema(f, "parameters", "parametersJsonSchema")
				if f["description"] == nil {
					f["description"] = ""
				}
			}
		}
		if c, ok := body["generationConfig"].(map[string]any); ok {
			asSchema(c, "responseSchema", "responseJsonSchema")
		}
		if c, ok := body["toolConfig"].(map[string]any); ok {
			if f, ok := c["functionCallingConfig"].(map[string]any); ok {
				if mode, _ := f["mode"].(string); strings.EqualFold(mode, "AUTO") || len(list(body["tools"])) == 0 {
					delete(c, "functionCallingConfig")
				} else {
					f["mode"] = strings.ToUpper(mode)
				}
			}
		}
		for _, c := range list(body["contents"]) {
			for _, p := range list(c["parts"]) {
				said(p)
				if r, ok := p["functionResponse"].(map[string]any); ok {
					r["response"] = answered(r["response"])
					for _, p := range list(r["parts"]) {
						said(p)
					}
				}
				if f, ok := p["functionCall"].(map[string]any); ok && f["args"] == nil {
					f["args"] = map[string]any{}
				}
			}
			if c["role"] == nil || c["role"] == "function" {
				c["role"] = "user"
			}
		}
	},
}

var streams = []string{
	events(chunk("", `{"text":"Hm.","thought":true}`), chunk("", `{"text":"Ä \u00e4\ud83d\ude00"}`), chunk("", `{"functionCall":{"name":"look","args":{"at":"1"}},"thoughtSignature":"s=="}`), chunk("STOP", `{"functionCall":{"name":"look","args":{}}}`)),
	events(chunk("", `{"functionCall":{"name":"look","willContinue":true}}`), chunk("", `{"functionCall":{"partialArgs":[{"jsonPath":"$.at","stringValue":"on","willContinue":true}],"willContinue":true}}`),
		chunk("", `{"functionCall":{"partialArgs":[{"jsonPath":"$.at","stringValue":"e"}],"willContinue":true}}`), chunk("", `{"functionCall":{}}`), chunk("STOP")),
	events(chunk("", `{"functionCall":{"name":"look","args":{"at":1}}}`), chunk("MAX_TOKENS", `{"text":""}`)),
	events(chunk("", `{"text":"A"}`), chunk("", `{"text":"\u00e4 \"}"}`), chunk("", `{"text":""}`), chunk("", `{"text":null}`), chunk("", `{"text":"a","thought":true}`),
		chunk("", `{"text":"b","thought":true}`), chunk("", `{"text":"c","thought":true,"thoughtSignature":"s=="}`), chunk("", `{"text":"d","thought":true,"thoughtSignature":"s=="}`), chunk("", `{"text":"B"}`, `{"text":"C"}`),
		chunk("", `{"text":"D"}`, `{"text":"C"}`), chunk("", `{"text":"D"}`, `{"text":"more"}`), chunk("", `{"text":"E"}`), chunk("STOP", `{"text":"F"}`), chunk("STOP", `{"text":"G"}`),
		`{"candidates":[{"content":{"parts":[{"text":"H"}]},"index":0},{"content":{"parts":[{"text":"other"}]},"index":1}]}`,
		`{"candidates":[{"content":{"parts":[{"text":"H"}]},"index":0},{"content":{"parts":[{"text":"others"}]},"index":1}]}`,
		`{"candidates":[{"content":{"parts":[{"text":"I"}]},"index":1}]}`, `{"candidates":[{"content":{"parts":[{"text":"J"}]},"index":1}]}`,
		chunk("", `{"functionCall":{"name":"look","args":{"at":"}]}"}}}`), chunk("", `{"functionCall":{"name":"look","args":{"at":2}},"thoughtSignature":"s=="}`), chunk("", `{}`), chunk("", `null`),
		chunk("", `{"executableCode":{"code":"1"}}`), chunk("", `{"inlineData":{"mimeType":"image/png","data":"cG5n"}}`),
		`{"candidates":[{"content":{"parts":[{"text":"K"}]},"index":0}]}`, `{"candidates":[{"content":{"parts":[{"text":"L"}]},"index":1}]}`),
	"[" + chunk("", `{"text":"A"}`) + ",\r\n" + chunk("STOP", `{"functionCall":{"name":"look","args":{"at":"\""}}}`) + "]",
}

// A stream is the same reply in all fragmentations. A cut stream is that reply or an error, and
// has no additional call. A stream with an event lost or doubled has the same calls, or is an
// error. A call is
// stated once, so the stream cannot show all losses.
func TestStreamsInPieces(t *testing.T) {
	soak.Sequential(t)
	wiretest.Streams(t, generateWire, streams...)
	t.Run("lost", func(t *testing.T) { wiretest.Lost(t, generateWire, generateFrames, "gemini-wire.md", "losses") })
}

func TestStreamsInPiecesFindsFaults(t *testing.T) {
	wiretest.StreamsControl(t, generateWire, events(chunk("", `{"functionCall":{"name":"look","willContinue":true}}`),
		chunk("", `{"functionCall":{"partialArgs":[{"jsonPath":"$.at","stringValue":"\"on"}],"willContinue":true}}`), chunk("", `{"functionCall":{}}`), chunk("STOP")))
}

func TestRequestsThatLoseAreFound(t *testing.T) {
	const request = `{"systemInstruction":{"parts":[{"text":"s"}]},"contents":[{"role":"user","parts":[{"text":"u"}]},
		{"role":"model","parts":[{"functionCall":{"id":"c1","name":"f","args":{"x":1}},"thoughtSignature":"s=="}]},
		{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"f","response":{"a":2}}}]}],
		"tools":[{"functionDeclarations":[{"name":"f","description":"Does f."}]},{"googleSearch":{}}],"generationConfig":{"temperature":0.5,"seed":7},"cachedContent":"c"}`
	for _, drop := range []string{`,"thoughtSignature":"s=="`, `,"seed":7`, `"x":1`, `"id":"c1",`, `"temperature":0.5,`, `,"cachedContent":"c"`} {
		wiretest.RequestsControl(t, generateWire, &spelling, request, drop)
	}
}
