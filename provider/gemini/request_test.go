package gemini_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/gemini"
)

// asked returns a request with messages to gemini-2.5-flash.
func asked(messages ...llm.Message) *llm.Request {
	return &llm.Request{Model: "gemini-2.5-flash", Messages: messages}
}

func with(r *llm.Request, change func(*llm.Request)) *llm.Request {
	change(r)
	return r
}

func parts(role llm.Role, parts ...llm.Part) llm.Message {
	return llm.Message{Role: role, Parts: parts}
}

func result(id, text string) llm.ToolResult {
	return llm.ToolResult{CallID: id, Parts: []llm.Part{llm.Text{Text: text}}}
}

func TestRequests(t *testing.T) {
	half, yes, no := 0.5, true, false
	png := llm.Media{MIME: "image/png", Data: []byte("PNG")}
	call := func(id string, more ...string) llm.ToolCall {
		c := llm.ToolCall{ID: id, Name: "look", Args: []byte(`{"at":"x"}`)}
		if more != nil {
			c.Opaque = own(more[0])
		}
		return c
	}
	newer := func(r *llm.Request) { r.Model = "gemini-3-flash-preview" }
	u := llm.User("u")
	for _, c := range []struct {
		name string
		req  *llm.Request
		want string
	}{
		{"a text", asked(u), `{"contents":[{"role":"user","parts":[{"text":"u"}]}]}`},
		{"instructions", asked(llm.System("a"), parts(llm.RoleDeveloper, llm.Text{Text: "b"}), u, llm.System("c")), `{"systemInstruction":{"parts":[{"text":"a"},{"text":"b"},{"text":"c"}]},"contents":[{"role":"user","parts":[{"text":"u"}]}]}`},
		{"instructions with a picture", asked(parts(llm.RoleSystem, png), u), `error unsupported: messages[0].parts[0]: instructions are text; Gemini cannot take llm.Media there`},
		{"instructions alone", asked(llm.System("a")), `error invalid_request: messages: Gemini wants at least one message that is no instruction`},
		{"no model", &llm.Request{Messages: []llm.Message{u}}, `error invalid_request: model: no model is named`},
		{"an unknown role", asked(parts("bard", llm.Text{Text: "x"})), `error invalid_request: messages: message 0 has the unknown role "bard"`},
		{"sides alternate", asked(u, llm.User("v"), llm.Assistant(llm.Text{Text: "a"}), llm.Assistant(llm.Text{Text: "b"}), llm.User("w")), `{"contents":[{"role":"user","parts":[{"text":"u"},{"text":"v"}]},{"role":"model","parts":[{"text":"a"},{"text":"b"}]},{"role":"user","parts":[{"text":"w"}]}]}`},
		{"a reply without anything", asked(u, llm.Assistant(llm.Reasoning{Text: "foreign"}, llm.Text{}), llm.User("v")), `{"contents":[{"role":"user","parts":[{"text":"u"},{"text":"v"}]}]}`},
		{"a call and its result", asked(u, llm.Assistant(call("a")), llm.Results(result("a", "42"))), `{"contents":[{"role":"user","parts":[{"text":"u"}]},{"role":"model","parts":[{"functionCall":{"id":"a","name":"look","args":{"at":"x"}}}]},{"role":"user","parts":[{"functionResponse":{"id":"a","name":"look","response":{"result":"42"}}}]}]}`},
		{"what follows a result", asked(u, llm.Assistant(call("a")), llm.Results(result("a", "42")), llm.User("and?")), `{"functionResponse":{"id":"a","name":"look","response":{"result":"42"}}},{"text":"and?"}]}]}`},
		{"an error", asked(u, llm.Assistant(call("a")),
			llm.Results(llm.ToolResult{CallID: "a", IsError: true, Parts: []llm.Part{llm.Text{Text: "no"}}})), `"response":{"error":"no"}`},
		{"an error without words", asked(u, llm.Assistant(call("a")), llm.Results(llm.ToolResult{CallID: "a", IsError: true})), `"response":{"error":"error"}`},
		{"an empty result", asked(u, llm.Assistant(call("a")), llm.Results(llm.ToolResult{CallID: "a"})), `"response":{"result":""}`},
		{"ids that pawl made", asked(u, llm.Assistant(call("call_0"), call("call_1")), llm.Results(result("call_0", "1"), result("call_1", "2"))), `[{"functionCall":{"name":"look","args":{"at":"x"}}},{"functionCall":{"name":"look","args":{"at":"x"}}}]},{"role":"user","parts":[{"functionResponse":{"name":"look","response":{"result":"1"}}},{"functionResponse":{"name":"look","response":{"result":"2"}}}]`},
		{"results in another order", asked(u, llm.Assistant(call("call_0"), call("b"), call("call_2")),
			llm.Results(result("call_2", "3"), result("b", "2")), llm.System("s"), llm.Results(result("call_0", "1"))), `{"functionResponse":{"name":"look","response":{"result":"1"}}},{"functionResponse":{"id":"b","name":"look","response":{"result":"2"}}},{"functionResponse":{"name":"look","response":{"result":"3"}}}`},
		{"a missing result", asked(u, llm.Assistant(call("a"), call("b")), llm.Results(result("a", "1"))), `error invalid_request: messages: message 2 has no result of the call b of look; Gemini wants one for each call`},
		{"a result too many", asked(u, llm.Assistant(call("a")), llm.Results(result("a", "1"), result("a", "2"))), `error invalid_request: messages[2].parts[1]: no call of the reply before has the id "a", so the name of its function is not known`},
		{"a result without a call", asked(u, llm.Results(result("a", "1"))), `error invalid_request: messages[1].parts[0]: no call of the reply before has the id "a", so the name of its function is not known`},
		{"a text among results", asked(u, llm.Assistant(call("a")), parts(llm.RoleTool, result("a", "1"), llm.Text{Text: "x"})), `error invalid_request: messages[2].parts[1]: llm.Text has no place among results`},
		{"the same id in two rounds", asked(u, llm.Assistant(call("a")), llm.Results(result("a", "1")),
			llm.Assistant(llm.ToolCall{ID: "a", Name: "find"}), llm.Results(result("a", "2"))), `{"functionResponse":{"id":"a","name":"find","response":{"result":"2"}}}`},
		{"calls of two messages", asked(u, llm.Assistant(call("a")), llm.Assistant(call("b")), llm.Results(result("a", "1"), result("b", "2"))), `{"functionResponse":{"id":"a","name":"look","response":{"result":"1"}}},{"functionResponse":{"id":"b","name":"look","response":{"result":"2"}}}`},
		{"no arguments", asked(u, llm.Assistant(llm.ToolCall{ID: "a", Name: "look"})), `"args":{}`},
		{"arguments that are no JSON", asked(u, llm.Assistant(llm.ToolCall{ID: "a", Name: "look", Args: []byte(`{"x": oops`)})), `"args":{"invalid_arguments":"{\"x\": oops"}`},
		{"arguments that are no object", asked(u, llm.Assistant(llm.ToolCall{ID: "a", Name: "look", Args: []byte(`[1]`)})), `"args":{"invalid_arguments":"[1]"}`},
		{"a name that does not fit", asked(u, llm.Assistant(llm.ToolCall{ID: "a", Name: "a b"}), llm.Results(result("a", "1"))), `"functionCall":{"id":"a","name":"a_b_`},
		{"a name with a dot", asked(u, llm.Assistant(llm.ToolCall{ID: "a", Name: "a.b"}), llm.Results(result("a", "1"))), `"functionCall":{"id":"a","name":"a.b",`},

		{"signatures on their own parts", asked(u, llm.Assistant(llm.Text{Text: "t", Opaque: own(`{"thoughtSignature":"a+/="}`)}, call("x8", `{"thoughtSignature":"b"}`), call("x9"), llm.Text{Opaque: own(`{"thoughtSignature":"c"}`)})),
			`[{"text":"t","thoughtSignature":"a+/="},{"functionCall":{"id":"x8","name":"look","args":{"at":"x"}},"thoughtSignature":"b"},{"functionCall":{"id":"x9","name":"look","args":{"at":"x"}}},{"text":"","thoughtSignature":"c"}]`},
		{"thoughts", asked(u, llm.Assistant(llm.Reasoning{Text: "hm", Opaque: own(`{"thought":true}`)}, llm.Text{Text: "t"})), `[{"text":"hm","thought":true},{"text":"t"}]`},
		{"thoughts of another host", asked(u, llm.Assistant(
			llm.Reasoning{Text: "hm", Opaque: &llm.Opaque{Provider: "gemini@local.test",
				Data: []byte(`{"thought":true}`)}},
			llm.Reasoning{Text: "x", Opaque: &llm.Opaque{Provider: "anthropic", Data: []byte(`{"signature":"s"}`)}}, llm.Text{Text: "t"})), `{"role":"model","parts":[{"text":"t"}]}`},
		{"parts of the provider's own", asked(u, llm.Assistant(llm.Reasoning{Opaque: own(`{"executableCode":{"code":"1"},"thoughtSignature":"a"}`)}, llm.Text{Text: "t"})), `[{"executableCode":{"code":"1"},"thoughtSignature":"a"},{"text":"t"}]`},
		{"signatures beside the whole part, as other readers of the API keep it",
			with(asked(u, llm.Assistant(llm.Text{Text: "new", Opaque: own(`{"text":"old","thoughtSignature":"a"}`)},
				llm.Reasoning{Text: "hm", Opaque: own(`{"text":"hm","thought":true}`)}, call("a", `{"function_call":{"name":"look"},"thought_signature":"b"}`))), newer),
			`[{"text":"new","thoughtSignature":"a"},{"text":"hm","thought":true},{"functionCall":{"id":"a","name":"look","args":{"at":"x"}},"thought_signature":"b"}]`},
		{"a picture that the model drew", asked(u, llm.Assistant(png, llm.Reasoning{Opaque: own(`{"ofMedia":{"thoughtSignature":"a"}}`)}, png)), `[{"inlineData":{"mimeType":"image/png","data":"UE5H"},"thoughtSignature":"a"},{"inlineData":{"mimeType":"image/png","data":"UE5H"}}]`},
		{"calls from elsewhere, Gemini 3", with(asked(u, llm.Assistant(call("a"), call("b")),
			llm.Results(result("a", "1"), result("b", "2")), llm.Assistant(call("c", `{"thoughtSignature":"s"}`))), newer),
			`[{"functionCall":{"id":"a","name":"look","args":{"at":"x"}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"id":"b","name":"look","args":{"at":"x"}}}]`},
		{"a call of its own, Gemini 3", with(asked(u, llm.Assistant(call("c", `{"thoughtSignature":"s"}`), call("d"))), newer), `[{"functionCall":{"id":"c","name":"look","args":{"at":"x"}},"thoughtSignature":"s"},{"functionCall":{"id":"d","name":"look","args":{"at":"x"}}}]`},
		{"the newest model", with(asked(u, llm.Assistant(call("a"))), func(r *llm.Request) { r.Model = "models/gemini-flash-latest" }), `skip_thought_signature_validator`},

		{"a picture", asked(parts(llm.RoleUser, llm.Text{}, llm.Text{Text: "what?"}, png)), `"parts":[{"text":"what?"},{"inlineData":{"mimeType":"image/png","data":"UE5H"}}]`},
		{"a picture in a data address", asked(parts(llm.RoleUser, llm.Media{URL: "data:image/png;base64,UE5H"})), `{"inlineData":{"mimeType":"image/png","data":"UE5H"}}`},
		{"a picture in a data address, in the other alphabet", asked(parts(llm.RoleUser, llm.Media{URL: "data:image/png;base64,-_8"})), `{"inlineData":{"mimeType":"image/png","data":"+/8="}}`},
		{"a picture by address", asked(parts(llm.RoleUser, llm.Media{URL: "https://example.com/a.PNG?x=1"})), `{"fileData":{"mimeType":"image/png","fileUri":"https://example.com/a.PNG?x=1"}}`},
		{"a video by address", asked(parts(llm.RoleUser, llm.Media{URL: "https://youtu.be/x"})), `{"fileData":{"fileUri":"https://youtu.be/x"}}`},
		{"a sound", asked(parts(llm.RoleUser, llm.Media{MIME: "audio/wav", Data: []byte("RIFF")})), `{"inlineData":{"mimeType":"audio/wav","data":"UklGRg=="}}`},
		{"a document", asked(parts(llm.RoleUser, llm.Media{MIME: "application/pdf", URL: "gs://bucket/a"})), `{"fileData":{"mimeType":"application/pdf","fileUri":"gs://bucket/a"}}`},
		{"media of no type", asked(parts(llm.RoleUser, llm.Media{Data: []byte("x")})), `error unsupported: messages[0].parts[0]: Gemini wants to know the type of media`},
		{"media of nothing", asked(parts(llm.RoleUser, llm.Media{MIME: "image/png"})), `error invalid_request: messages[0].parts[0]: the media have neither data nor an address`},
		{"a picture in a result, Gemini 3", with(asked(u, llm.Assistant(call("a", `{"thoughtSignature":"s"}`)),
			llm.Results(llm.ToolResult{CallID: "a",
				Parts: []llm.Part{llm.Text{Text: "see"}, png, llm.Media{MIME: "audio/wav", Data: []byte("R")}}})), newer),
			`"parts":[{"functionResponse":{"id":"a","name":"look","response":{"result":"see"},"parts":[{"inlineData":{"mimeType":"image/png","data":"UE5H"}}]}},{"text":"From the result of look (call a):"},{"inlineData":{"mimeType":"audio/wav","data":"Ug=="}}]`},
		{"pictures by address in a result, Gemini 3",
			with(asked(u, llm.Assistant(call("a", `{"thoughtSignature":"s"}`)),
				llm.Results(llm.ToolResult{CallID: "a", Parts: []llm.Part{llm.Media{URL: "data:image/png;base64,UE5H"}, llm.Media{URL: "gs://b/a.pdf"}}})), newer),
			`"parts":[{"functionResponse":{"id":"a","name":"look","response":{"result":""},"parts":[{"inlineData":{"mimeType":"image/png","data":"UE5H"}},{"fileData":{"mimeType":"application/pdf","fileUri":"gs://b/a.pdf"}}]}}]`},
		{"pictures in results, before Gemini 3", asked(u, llm.Assistant(call("call_0"), call("b")),
			llm.Results(llm.ToolResult{CallID: "call_0", Parts: []llm.Part{png, png}},
				llm.ToolResult{CallID: "b", Parts: []llm.Part{png}})),
			`"parts":[{"functionResponse":{"name":"look","response":{"result":""}}},{"functionResponse":{"id":"b","name":"look","response":{"result":""}}},{"text":"From the result of look:"},{"inlineData":{"mimeType":"image/png","data":"UE5H"}},{"inlineData":{"mimeType":"image/png","data":"UE5H"}},{"text":"From the result of look (call b):"},{"inlineData":{"mimeType":"image/png","data":"UE5H"}}]`},

		{"a tool", with(asked(u), func(r *llm.Request) { r.Tools = []*llm.ToolSpec{tool("f"), {Name: "g"}} }), `"tools":[{"functionDeclarations":[{"name":"f","description":"Does f.","parametersJsonSchema":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}},{"name":"g","description":"","parametersJsonSchema":{"type":"object","properties":{}}}]}],"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}}}`},
		{"choice none", with(asked(u), func(r *llm.Request) { r.Tools = []*llm.ToolSpec{tool("f")}; r.Choice.Mode = llm.ToolNone }), `{"mode":"NONE"}`},
		{"choice required", with(asked(u), func(r *llm.Request) {
			r.Tools = []*llm.ToolSpec{tool("f")}
			r.Choice.Mode = llm.ToolRequired
		}), `{"mode":"ANY"}`},
		{"choice named", with(asked(u), func(r *llm.Request) { r.Tools = []*llm.ToolSpec{tool("f")}; r.Choice = llm.Named("f") }), `{"mode":"ANY","allowedFunctionNames":["f"]}`},
		{"choice of some", with(asked(u), func(r *llm.Request) {
			r.Tools = []*llm.ToolSpec{tool("f"), tool("a.b"), tool("h")}
			r.Choice = llm.Named("h", "f")
		}), `{"mode":"ANY","allowedFunctionNames":["h","f"]}`},
		{"choice of what is not there", with(asked(u), func(r *llm.Request) { r.Tools = []*llm.ToolSpec{tool("f")}; r.Choice = llm.Named("g") }), `error invalid_request: tool choice: no tool "g" is offered; offered: f`},
		{"one call at a time", with(asked(u), func(r *llm.Request) { r.Tools = []*llm.ToolSpec{tool("f")}; r.Settings.Parallel = &no }), `error unsupported: settings.parallel_calls: Gemini cannot limit the model to one call at a time`},
		{"several calls at a time", with(asked(u), func(r *llm.Request) { r.Tools = []*llm.ToolSpec{tool("f")}; r.Settings.Parallel = &yes }), `"tools"`},
		{"a schema that is no JSON", with(asked(u), func(r *llm.Request) { r.Tools = []*llm.ToolSpec{{Name: "f", Input: []byte(`{`)}} }), `error invalid_request: tools: f: input: the schema is not a JSON object`},

		{"settings", with(asked(u), func(r *llm.Request) {
			r.Settings = llm.Settings{MaxTokens: 9, Temperature: &half, TopP: &half,
				StopSequences: []string{"x", "y"}, Effort: "low"}
		}), `"generationConfig":{"maxOutputTokens":9,"temperature":0.5,"topP":0.5,"stopSequences":["x","y"],"thinkingConfig":{"thinkingBudget":1024}}}`},
		{"effort, Gemini 3", with(with(asked(u), newer), func(r *llm.Request) { r.Settings.Effort = "minimal" }), `{"thinkingLevel":"minimal"}`},
		{"no effort, Gemini 3", with(with(asked(u), newer), func(r *llm.Request) { r.Settings.Effort = "none" }), `error unsupported: settings.effort: gemini-3-flash-preview always thinks; its lowest effort is "minimal"`},
		{"effort as a number", with(with(asked(u), newer), func(r *llm.Request) { r.Settings.Effort = "0512" }), `{"thinkingBudget":512}`},
		{"no effort, before Gemini 3", with(asked(u), func(r *llm.Request) { r.Settings.Effort = "none" }), `{"thinkingBudget":0}`},
		{"effort in unknown words", with(asked(u), func(r *llm.Request) { r.Settings.Effort = "xhigh" }), `error unsupported: settings.effort: gemini-2.5-flash thinks by a budget: a number of tokens, or none, minimal, low, medium, high or dynamic; not "xhigh"`},
		{"output", with(asked(u), func(r *llm.Request) { r.Output = []byte(`{"type":"object"}`) }), `"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{"type":"object","properties":{}}}}`},
		{"output beside tools, Gemini 3", with(with(asked(u), newer),
			func(r *llm.Request) { r.Tools = []*llm.ToolSpec{tool("f")}; r.Output = []byte(`{"type":"object"}`) }), `"responseJsonSchema":{"type":"object","properties":{}}`},
		{"output beside tools, before Gemini 3", with(asked(u), func(r *llm.Request) { r.Tools = []*llm.ToolSpec{tool("f")}; r.Output = []byte(`{"type":"object"}`) }), `{"systemInstruction":{"parts":[{"text":"When you give your final answer, give one JSON value and nothing else: no explanation, no code fence. It must fit this JSON Schema:\n{\"type\":\"object\"}"}]},"contents":[{"role":"user","parts":[{"text":"u"}]}],"tools":[{"functionDeclarations":[{"name":"f","description":"Does f.","parametersJsonSchema":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}}]}],"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}}}`},
		{"output that is no schema", with(asked(u), func(r *llm.Request) { r.Output = []byte(`7`) }), `error invalid_request: output: the schema is not a JSON object`},
		{"options", with(asked(u), func(r *llm.Request) {
			r.Tools = []*llm.ToolSpec{tool("f")}
			r.Settings.MaxTokens = 9
			r.Settings.Temperature = &half
			r.Settings.Options = map[string]json.RawMessage{"gemini": json.RawMessage(`{"safetySettings":[ {"threshold":"OFF"} ],"tools":[{"googleSearch":{}}],"toolConfig":{"includeServerSideToolInvocations":true},
				"generationConfig":{"temperature":0.1,"thinkingConfig":{"includeThoughts":true}},"cachedContent":"c"}`), "openai": json.RawMessage(`{"x":1}`)}
		}), `{"contents":[{"role":"user","parts":[{"text":"u"}]}],"tools":[{"functionDeclarations":[{"name":"f","description":"Does f.","parametersJsonSchema":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}}]},{"googleSearch":{}}],"toolConfig":{"functionCallingConfig":{"mode":"AUTO"},"includeServerSideToolInvocations":true},"generationConfig":{"maxOutputTokens":9,"temperature":0.1,"thinkingConfig":{"includeThoughts":true}},"safetySettings":[ {"threshold":"OFF"} ],"cachedContent":"c"}`},
		{"options alone", with(asked(u), func(r *llm.Request) {
			r.Settings.Options = map[string]json.RawMessage{"gemini": json.RawMessage(`{"tools":[{"codeExecution":{}}],"contents":[]}`)}
		}), `{"tools":[{"codeExecution":{}}],"contents":[]}`},
		{"options that are no object", with(asked(u), func(r *llm.Request) {
			r.Settings.Options = map[string]json.RawMessage{"gemini": json.RawMessage(`[]`)}
		}), `error invalid_request: settings.options.gemini: not a JSON object`},
	} {
		t.Run(c.name, func(t *testing.T) { checkEncode(t, c.name, c.req, c.want) })
	}
}

// A user may name a file; a tool, or a model, may not.
func TestLocalFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.png")
	if err := os.WriteFile(file, []byte("PNG"), 0o600); err != nil {
		t.Fatal(err)
	}
	media := llm.Media{URL: file}
	want := `{"inlineData":{"mimeType":"image/png","data":"UE5H"}}`
	checkEncode(t, "a user's", asked(parts(llm.RoleUser, media)), want)
	checkEncode(t, "a user's, as an address", asked(parts(llm.RoleUser, llm.Media{URL: "file://" + file})), want)
	t.Setenv("HOME", dir)
	checkEncode(t, "at home", asked(parts(llm.RoleUser, llm.Media{URL: "~/a.png"})), want)
	t.Chdir(dir)
	checkEncode(t, "here", asked(parts(llm.RoleUser, llm.Media{URL: "./a.png"})), want)
	checkEncode(t, "a tool's", asked(llm.User("u"), llm.Assistant(llm.ToolCall{ID: "a", Name: "f"}),
		llm.Results(llm.ToolResult{CallID: "a", Parts: []llm.Part{media}})),
		`is not shown: a result cannot name a local file; a tool that may read it can return its bytes]`)
	checkEncode(t, "a model's", asked(llm.User("u"), llm.Assistant(media)), `error invalid_request: messages[1].parts[0]: only a user's message can name a local file`)
	checkEncode(t, "of no known type", asked(parts(llm.RoleUser, llm.Media{URL: "./a"})), `error invalid_request: messages[0].parts[0]: the type of a is unknown: set MIME`)
	checkEncode(t, "a folder", asked(parts(llm.RoleUser, llm.Media{URL: dir, MIME: "image/png"})), `error invalid_request: messages[0].parts[0]: `+filepath.Base(dir)+` is not a file`)
	if _, err := gemini.EncodeGenerate(asked(parts(llm.RoleUser, llm.Media{URL: "./none.png"}))); err == nil ||
		!strings.Contains(err.Error(), "no such file") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// A longer conversation begins with the bytes of the shorter one, up to the continuation.
func TestRequestsGrowAtTheEnd(t *testing.T) {
	for _, model := range []string{"gemini-2.5-flash", "gemini-3-pro-preview"} {
		msgs := []llm.Message{llm.System("s"), llm.User("u")}
		for range 4 {
			short := mustEncode(t, &llm.Request{Model: model, Messages: msgs, Tools: []*llm.ToolSpec{tool("f")}})
			msgs = append(msgs, llm.Assistant(llm.ToolCall{ID: "a", Name: "f"}),
				llm.Results(llm.ToolResult{CallID: "a"}), llm.User("and?"))
			long := mustEncode(t, &llm.Request{Model: model, Messages: msgs, Tools: []*llm.ToolSpec{tool("f")}})
			cut := strings.LastIndex(short, `]}],"tools"`)
			if cut < 0 || !strings.HasPrefix(long, short[:cut]) {
				t.Errorf("%s\ndoes not begin with\n%s", long, short[:max(cut, 0)])
			}
			if !strings.HasSuffix(long, short[cut:]) {
				t.Errorf("%s\ndoes not end with\n%s", long, short[cut:])
			}
		}
	}
}

// A file at another provider is refused, because its ID is unknown here.
func TestUploadedFilesOfOthers(t *testing.T) {
	for _, id := range []string{"file-1", "file_1"} {
		req := &llm.Request{Model: "gemini-3-pro",
			Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{llm.Media{URL: id}}}}}
		checkEncode(t, id, req, "error unsupported: messages[0].parts[0]: "+id+" is a file at another provider; Gemini names its own by an address, https://…/files/NAME")
	}
}
