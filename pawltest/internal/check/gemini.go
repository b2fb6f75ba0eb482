package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/pawltest/internal/wire"
)

var geminiName = wire.NameForm{Pattern: regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]*$`), Longest: 128}

// either returns v[name], or the member with the same name in snake_case. This API accepts both.
func either(v map[string]any, name string) any {
	if x, ok := v[name]; ok {
		return x
	}
	return v[wire.Snake(name)]
}

func child(v map[string]any, name string) map[string]any {
	o, _ := either(v, name).(map[string]any)
	return o
}

// list returns v[name] as a list. A single object counts as a list of one, as in the API.
func list(v map[string]any, name string) []any {
	switch x := either(v, name).(type) {
	case []any:
		return x
	case map[string]any:
		return []any{x}
	}
	return nil
}

// contentsChecker follows the contents of a Gemini request.
type contentsChecker struct {
	*checker
	calls []geminiCall // of the previous content
}

type geminiCall struct{ name, id, place string }

// gemini checks the body of a generateContent request.
func (c *checker) gemini(root map[string]any) {
	g := &contentsChecker{checker: c}
	for _, other := range []string{"messages", "input", "tool_choice", "stream"} {
		if _, ok := root[other]; ok {
			c.add("/"+other, "unknown name %q", other)
		}
	}
	g.checkTools(root)
	g.checkConfig(child(root, "generationConfig"))
	contents := list(root, "contents")
	if len(contents) == 0 {
		c.add("/contents", "want a list of at least one content")
		return
	}
	before := ""
	var turn []step
	for i, v := range contents {
		place := fmt.Sprintf("/contents/%d", i)
		content, ok := v.(map[string]any)
		if !ok {
			c.add(place, "want an object, got %s", kindOf(v))
			continue
		}
		role := text(content["role"])
		switch role {
		case "", "function":
			role = "user"
		case "user", "model":
		default:
			c.add(place+"/role", "want user or model, got %q", role)
		}
		parts := list(content, "parts")
		if len(parts) == 0 {
			c.add(place+"/parts", "must include at least one part")
		}
		calls, results := g.parts(parts, role, place)
		g.pair(results, place)
		if len(calls) > 0 && before == "model" {
			c.add(place, "calls must come right after a user turn or after results")
		}
		if role == "user" && results == nil {
			turn = nil
		} else if len(calls) > 0 {
			turn = append(turn, step{calls[0].place, g.signed(parts, calls)})
		}
		g.calls, before = calls, role
	}
	g.pair(nil, "the end")
	g.signatures(turn)
}

// parts checks the parts of a content and returns its calls and results.
func (g *contentsChecker) parts(parts []any, role, place string) (calls, results []geminiCall) {
	for i, v := range parts {
		at := fmt.Sprintf("%s/parts/%d", place, i)
		part, ok := v.(map[string]any)
		if !ok {
			g.add(at, "want an object, got %s", kindOf(v))
			continue
		}
		var kinds []string
		for _, k := range []string{"text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode",
			"codeExecutionResult", "toolCall", "toolResponse"} {
			if either(part, k) != nil {
				kinds = append(kinds, k)
			}
		}
		switch {
		case len(kinds) > 1:
			g.add(at, "a part is one thing, got %s", strings.Join(kinds, " and "))
		case len(kinds) == 0 && either(part, "thoughtSignature") == nil:
			g.add(at, "a part must have one field that is data")
		}
		if media := child(part, "inlineData"); media != nil && (text(either(media, "mimeType")) == "" || text(media["data"]) == "") {
			g.add(at+"/inlineData", "want mimeType and data")
		}
		if file := child(part, "fileData"); file != nil && text(either(file, "fileUri")) == "" {
			g.add(at+"/fileData/fileUri", "want an address")
		}
		if call := child(part, "functionCall"); call != nil {
			if role != "model" {
				g.add(at, "only the model calls functions")
			}
			calls = append(calls, g.call(call, "functionCall", "args", at))
		}
		if res := child(part, "functionResponse"); res != nil {
			if role == "model" {
				g.add(at, "the model gives no results")
			}
			results = append(results, g.call(res, "functionResponse", "response", at))
			if x := res["response"]; x != nil && kindOf(x) != "an object" {
				g.add(at+"/functionResponse/response", "want an object, got %s", kindOf(res["response"]))
			}
		}
	}
	return calls, results
}

// call checks a functionCall or a functionResponse.
func (g *contentsChecker) call(v map[string]any, kind, data, at string) geminiCall {
	c := geminiCall{text(v["name"]), text(v["id"]), at}
	if !geminiName.Fits(c.name) {
		g.add(at+"/"+kind+"/name", "want a letter or _, then up to 127 letters, digits and _.:-, got %q", c.name)
	}
	if x := v[data]; x != nil && kindOf(x) != "an object" && kind == "functionCall" {
		g.add(at+"/"+kind+"/"+data, "want an object, got %s", kindOf(x))
	}
	for k := range v {
		switch k {
		case "name", "id", data, "parts", "willContinue", "will_continue", "scheduling", "partialArgs", "partial_args":
		default:
			g.add(at+"/"+kind+"/"+k, "unknown name %q", k)
		}
	}
	return c
}

// pair matches results with the calls of the previous content: the same number, the same names, and
// the same ids if both have ids.
func (g *contentsChecker) pair(results []geminiCall, place string) {
	switch {
	case len(g.calls) == 0 && len(results) > 0:
		g.add(place, "results must come right after the content with their calls")
		return
	case len(g.calls) != len(results):
		g.add(g.calls[0].place, "%d calls, but %d results right after them", len(g.calls), len(results))
		return
	}
	open := slices.Clone(g.calls)
	for _, r := range results {
		i := slices.IndexFunc(open, func(c geminiCall) bool {
			return c.name == r.name && (c.id == "" || r.id == "" || c.id == r.id)
		})
		if i < 0 {
			g.add(r.place, "a result for %s, but no such call is open before it", strings.TrimSpace(r.name+" "+r.id))
			return
		}
		open = slices.Delete(open, i, i+1)
	}
	g.calls = nil
}

// step is a content with calls in the current turn.
type step struct {
	place  string
	signed bool // the part of its first call has a signature
}

// signed reports whether the part of the first call has a signature. A signature at a later call
// alone is a violation.
func (g *contentsChecker) signed(parts []any, calls []geminiCall) bool {
	n := 0
	first := false
	for _, v := range parts {
		part, _ := v.(map[string]any)
		if child(part, "functionCall") == nil {
			continue
		}
		has := text(either(part, "thoughtSignature")) != ""
		if n == 0 {
			first = has
		} else if has && !first {
			g.add(calls[n].place, "the first of parallel calls bears the signature, not a later one")
		}
		n++
	}
	return first
}

// signatures checks that every signed step comes back with its signature.
func (g *contentsChecker) signatures(turn []step) {
	for _, s := range turn {
		if g.checker.signed && !s.signed {
			g.add(s.place, "the call is missing its thoughtSignature")
		}
	}
}

func (g *contentsChecker) checkTools(root map[string]any) {
	var names []string
	declared := false
	for i, v := range list(root, "tools") {
		place := fmt.Sprintf("/tools/%d", i)
		tool, ok := v.(map[string]any)
		if !ok {
			g.add(place, "want an object, got %s", kindOf(v))
			continue
		}
		for _, k := range []string{"type", "function", "name", "parameters", "input_schema"} {
			if _, ok := tool[k]; ok {
				g.add(place+"/"+k, "unknown name %q: this API wants functionDeclarations", k)
				break
			}
		}
		for j, v := range list(tool, "functionDeclarations") {
			declared = true
			at := fmt.Sprintf("%s/functionDeclarations/%d", place, j)
			f, _ := v.(map[string]any)
			name := text(f["name"])
			if !geminiName.Fits(name) {
				g.add(at+"/name", "want a letter or _, then up to 127 letters, digits and _.:-, got %q", name)
			} else if slices.Contains(names, name) {
				g.add(at, "another function is named %q", name)
			}
			names = append(names, name)
			open, full := either(f, "parameters"), either(f, "parametersJsonSchema")
			switch {
			case open != nil && full != nil:
				g.add(at, "parameters and parametersJsonSchema exclude each other")
			case open != nil:
				g.schema(open, at+"/parameters")
			case full != nil && kindOf(full) != "an object":
				g.add(at+"/parametersJsonSchema", "want a JSON Schema object, got %s", kindOf(full))
			}
		}
	}
	config := child(child(root, "toolConfig"), "functionCallingConfig")
	if config == nil {
		return
	}
	mode := strings.ToUpper(text(config["mode"]))
	switch mode {
	case "", "AUTO", "ANY", "NONE", "VALIDATED":
	default:
		g.add("/toolConfig/functionCallingConfig/mode", "unknown mode %q", mode)
	}
	allowed := list(config, "allowedFunctionNames")
	switch {
	case mode == "ANY" && !declared:
		g.add("/toolConfig/functionCallingConfig", "a forced call without functions")
	case len(allowed) > 0 && mode != "ANY" && mode != "VALIDATED":
		g.add("/toolConfig/functionCallingConfig/allowedFunctionNames", "may only be set with mode ANY or VALIDATED")
	}
	for _, v := range allowed {
		if !slices.Contains(names, text(v)) {
			g.add("/toolConfig/functionCallingConfig/allowedFunctionNames", "the function %q is not declared", text(v))
		}
	}
}

// geminiKeywords are the keywords of a schema in OpenAPI's form. parametersJsonSchema accepts all
// others.
var geminiKeywords = strings.Fields(`type format title description nullable enum items properties required anyOf default example
	minItems maxItems minProperties maxProperties minLength maxLength minimum maximum pattern propertyOrdering
	additionalProperties ref defs`)

func (g *contentsChecker) schema(v any, place string) {
	schema, ok := v.(map[string]any)
	if !ok {
		g.add(place, "want a schema, got %s", kindOf(v))
		return
	}
	for k, v := range schema {
		known := slices.ContainsFunc(geminiKeywords, func(w string) bool { return k == w || k == wire.Snake(w) })
		switch {
		case !known:
			g.add(place, "unknown name %q: no field of a schema", k)
		// The number of an enum.
		case k == "type" && kindOf(v) != "a string" && kindOf(v) != "a number":
			g.add(place+"/type", "want one type, got %s", kindOf(v))
		case k == "properties":
			props, _ := v.(map[string]any)
			for name, p := range props {
				g.schema(p, place+"/properties/"+name)
			}
		case k == "items":
			g.schema(v, place+"/items")
		case k == "anyOf" || k == "any_of":
			for i, p := range list(schema, "anyOf") {
				g.schema(p, fmt.Sprintf("%s/anyOf/%d", place, i))
			}
		}
	}
}

func (g *contentsChecker) checkConfig(config map[string]any) {
	shaped := ""
	for _, k := range []string{"responseSchema", "responseJsonSchema"} {
		if either(config, k) != nil {
			if shaped != "" {
				g.add("/generationConfig", "%s and %s exclude each other", shaped, k)
			}
			shaped = k
		}
	}
	if mime := text(either(config, "responseMimeType")); shaped != "" && mime != "application/json" && mime != "text/x.enum" {
		g.add("/generationConfig/"+shaped, "wants responseMimeType application/json")
	}
	if s := either(config, "responseSchema"); s != nil {
		g.schema(s, "/generationConfig/responseSchema")
	}
}
