package leak

import (
	"bytes"
	"encoding/json"
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawl-go/pawl/internal/jsonrepair"
	"github.com/pawl-go/pawl/llm"
)

// mark is the text that a family of models puts around calls. The first of ends, or the end of the
// text, closes it.
type mark struct {
	open string
	ends []string
}

// marks are all that are known. Where one begins like another, the longer one stands first.
var marks = []mark{
	{"<tool_calls>", []string{"</tool_calls>"}},                              // Jamba
	{"<tool_call>", []string{"</tool_call>"}},                                // Hermes, Qwen, GLM
	{"<function_calls>", []string{"</function_calls>"}},                      // Claude-like, OLMo
	{"<function_call>", []string{"</function_call>"}},                        //
	{"<functioncall>", []string{"</functioncall>", "<|endoftext|>"}},         // Glaive
	{"<function=", []string{"</function>"}},                                  // Llama, Qwen coder
	{"<invoke name=", []string{"</invoke>"}},                                 // Claude-like
	{"<tool_use>", []string{"</tool_use>"}},                                  //
	{"<TOOLCALL>", []string{"</TOOLCALL>"}},                                  // Nemotron
	{"<minimax:tool_call>", []string{"</minimax:tool_call>"}},                // MiniMax
	{"<seed:tool_call>", []string{"</seed:tool_call>"}},                      // Seed
	{"<|tool_call|>", []string{"<|/tool_call|>", "</tool_call>"}},            // Granite, Phi
	{"<|tool_call_start|>", []string{"<|tool_call_end|>"}},                   // LFM
	{"<|tool_calls_section_begin|>", []string{"<|tool_calls_section_end|>"}}, // Kimi
	{"<|START_ACTION|>", []string{"<|END_ACTION|>"}},                         // Cohere
	{"<|action_start|>", []string{"<|action_end|>"}},                         // InternLM
	{"<|python_tag|>", []string{"<|eom_id|>", "<|eot_id|>"}},                 // Llama
	{"<|channel|>commentary to=", []string{"<|call|>"}},                      // gpt-oss
	{"<｜tool▁calls▁begin｜>", []string{"<｜tool▁calls▁end｜>"}},                 // DeepSeek

	// DeepSeek, without the outer mark
	{"<｜tool▁call▁begin｜>", []string{"<｜tool▁call▁end｜>"}},

	{"<｜DSML｜function_calls>", []string{"</｜DSML｜function_calls>"}}, // DeepSeek
	{"[TOOL_CALLS]", []string{"</s>"}},                              // Mistral
	{"[TOOL_REQUEST]", []string{"[END_TOOL_REQUEST]"}},              // LM Studio
	{"functools[", nil},        // Firefunction, Phi
	{"```", []string{"\n```"}}, // fenced
}

// mayBegin returns how much of s cannot be part of a call: up to the first place where one may
// begin. atStart means that s begins the reply.
func mayBegin(s string, atStart bool) int {
	if t := strings.TrimLeft(s, " \t\r\n"); atStart && (t == "" || isJSON(t)) {
		return 0
	}
	for i := range s {
		switch s[i] {
		case '<', '[', '`', 'f':
			if mayBeMark(s[i:]) {
				return i
			}
		}
	}
	return len(s)
}

// isJSON reports whether s begins as an object or a list.
func isJSON(s string) bool { return strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[") }

// mayBeMark reports whether s begins with a mark, or is the beginning of a mark.
func mayBeMark(s string) bool {
	for _, m := range marks {
		begins := strings.HasPrefix(m.open, s) || strings.HasPrefix(s, m.open)
		if begins && !otherCode(s) {
			return true
		}
	}
	return false
}

// otherCode reports whether s begins with a fence of a language that no call is written in.
func otherCode(s string) bool {
	lang, _, whole := strings.Cut(strings.TrimPrefix(s, "```"), "\n")
	return strings.HasPrefix(s, "```") && whole && !callFence(lang)
}

func callFence(lang string) bool {
	return slices.Contains([]string{"", "json", "tool", "tool_call", "tool_calls", "tool_code", "function_call"},
		strings.TrimSpace(lang))
}

// find is Find. whole means that text is the whole reply, which may be a call without marks.
func find(text string, tools []*llm.ToolSpec, whole bool) (rest string, calls []llm.ToolCall) {
	if t := strings.TrimSpace(text); whole && isJSON(t) {
		if found := inside(t, tools, false); found != nil {
			return "", found
		}
	}

	// A reply that is nothing but JSON needs no mark. Within a text, JSON without a mark is more
	// often data or an example.
	var words strings.Builder
	pos := 0
	for pos < len(text) {
		i := pos + mayBegin(text[pos:], false)
		if i >= len(text) {
			break
		}

		n := 0
		var found []llm.ToolCall
		at := slices.IndexFunc(marks, func(m mark) bool { return strings.HasPrefix(text[i:], m.open) })
		if at >= 0 {
			n, found = marked(text[i:], marks[at], tools)
		}
		if found == nil {
			// A mark without a call of an offered tool stays text. The search resumes after its
			// first character, since another mark may be in it.
			_, size := utf8.DecodeRuneInString(text[i:])
			words.WriteString(text[pos : i+size])
			pos = i + size
			continue
		}
		words.WriteString(text[pos:i])
		calls = append(calls, found...)
		pos = i + n
	}

	if len(calls) == 0 {
		return text, nil
	}
	words.WriteString(text[pos:])
	return strings.TrimSpace(words.String()), calls
}

// marked returns the calls in the mark at the start of s, and where the mark ends.
func marked(s string, m mark, tools []*llm.ToolSpec) (n int, calls []llm.ToolCall) {
	body := s[len(m.open):]
	fence := m.open == "```"
	if fence {
		lang, rest, ok := strings.Cut(body, "\n")
		if !ok || !callFence(lang) {
			return 0, nil
		}
		body = rest
	}

	end := len(body)
	size := 0
	for _, e := range m.ends {
		if i := strings.Index(body, e); i >= 0 && i < end {
			end = i
			size = len(e)
		}
	}
	if fence && size == 0 {
		return 0, nil // a fence that does not end
	}

	n = len(s) - len(body) + end + size
	content := body[:end]
	switch m.open {
	// The name of the tool is behind these marks, so that the reader of the content needs them.
	case "<function=", "<invoke name=", "functools[", "<|channel|>commentary to=", "<｜tool▁call▁begin｜>":
		content = s[:len(m.open)] + content
	}
	if m.open == "functools[" {
		content = content[len("functools"):]
	}
	return n, inside(content, tools, !fence)
}

var (
	block     = regexp.MustCompile(`(?s)<(?:｜DSML｜)?(?:function=|invoke name=)["']?([\w.:-]+)["']?>(.*?)(?:</(?:｜DSML｜)?(?:function|invoke)>|$)`)
	parameter = regexp.MustCompile(`(?s)<(?:｜DSML｜)?parameter(?:=| name=)["']?([^"'>\s]+)["']?([^>]*)>(.*?)</(?:｜DSML｜)?parameter>`)
	argPair   = regexp.MustCompile(`(?s)<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>`)
	named     = regexp.MustCompile("(?s)([A-Za-z_][\\w.-]*)(?::\\d+)?(?:\\s|```|json\\b|function\\b|<[^<>{}]*>|\\[ARGS\\]|\\[CALL_ID\\][\\w-]*|:)*\\{")
	python    = regexp.MustCompile(`^(?:print\()?(?:default_api\.|functions\.)?([A-Za-z_]\w*)(\.call)?\(`)
)

// inside reads the text between marks. It returns nil unless all of it is calls of offered tools.
// loose allows forms other than JSON; in a code fence, these are code.
func inside(s string, tools []*llm.ToolSpec, loose bool) []llm.ToolCall {
	s = strings.TrimSpace(s)
	if calls := jsonCalls(s, tools); calls != nil {
		return calls
	}
	if !loose {
		return pythonCalls(s, tools)
	}
	for _, read := range []func(string, []*llm.ToolSpec) []llm.ToolCall{blockCalls, pairCalls, namedCalls,
		pythonCalls} {
		if calls := read(s, tools); calls != nil {
			return calls
		}
	}
	return nil
}

// jsonCalls reads {"name", "arguments"}, a list of them, or several one after another.
func jsonCalls(s string, tools []*llm.ToolSpec) []llm.ToolCall {
	s = strings.TrimPrefix(s, "<|plugin|>")
	var calls []llm.ToolCall
	for s = strings.TrimSpace(s); s != ""; s = strings.Trim(s, " \t\r\n;,") {
		if s[0] != '{' && s[0] != '[' {
			return nil
		}
		n := jsonrepair.Balanced(s, "{[(", "}])")
		if n == 0 {
			return nil
		}
		fixed, _, err := jsonrepair.Repair([]byte(s[:n]))
		if err != nil {
			return nil
		}
		list := []json.RawMessage{fixed}
		if fixed[0] == '[' && json.Unmarshal(fixed, &list) != nil || len(list) == 0 {
			return nil
		}
		// One object that is no call makes all of it text: such a text is data that resembles
		// calls.
		for _, raw := range list {
			c := jsonCall(raw, tools)
			if c == nil {
				return nil
			}
			calls = append(calls, *c)
		}
		s = s[n:]
	}
	return calls
}

// jsonCall reads one object as a call: a name, arguments, and nothing else but an id and a type.
func jsonCall(raw json.RawMessage, tools []*llm.ToolSpec) *llm.ToolCall {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	// The form of the API: {"id", "type", "function": {"name", "arguments"}}.
	if f, ok := fields["function"]; ok && len(f) > 0 && f[0] == '{' {
		return jsonCall(f, tools)
	}

	var name string
	var args json.RawMessage
	for k, v := range fields {
		switch k {
		case "name", "tool_name", "function", "tool":
			if json.Unmarshal(v, &name) != nil {
				return nil
			}
		case "arguments", "parameters", "args", "input":
			args = v
		case "id", "type", "tool_call_id", "index":
		// An object with any other field is data, such as a list of people.
		default:
			return nil
		}
	}
	// A name alone is no call: many objects have one.
	if args == nil {
		return nil
	}

	// Models copy the API's form, in which arguments are a string.
	var text string
	if json.Unmarshal(args, &text) == nil {
		args = json.RawMessage(text)
	}
	return callOf(name, args, tools)
}

// callOf is the call of an offered tool, or nil.
func callOf(name string, args []byte, tools []*llm.ToolSpec) *llm.ToolCall {
	args = bytes.TrimSpace(args)
	if len(args) == 0 || string(args) == "null" {
		args = []byte("{}")
	}
	if args[0] != '{' || !json.Valid(args) {
		return nil
	}
	// gpt-oss puts its tools into the namespace functions.
	for _, n := range []string{name, strings.TrimPrefix(name, "functions.")} {
		for _, t := range tools {
			if t.Name == n {
				return &llm.ToolCall{Name: n, Args: args}
			}
		}
	}
	return nil
}

// blockCalls reads <function=NAME> and <invoke name="NAME"> with JSON or parameters inside.
func blockCalls(s string, tools []*llm.ToolSpec) []llm.ToolCall {
	var calls []llm.ToolCall
	for _, m := range block.FindAllStringSubmatch(s, -1) {
		args := []byte(strings.TrimSpace(m[2]))
		if len(args) == 0 || args[0] != '{' {
			var keys, values []string
			for _, p := range parameter.FindAllStringSubmatch(m[2], -1) {
				keys = append(keys, p[1])
				values = append(values, p[3])
			}
			// Content that is neither JSON nor parameters is a text about the mark.
			if len(keys) == 0 && len(args) > 0 {
				return nil
			}
			args = object(m[1], keys, values, tools)
		} else if fixed, _, err := jsonrepair.Repair(args); err == nil {
			args = fixed
		}
		c := callOf(m[1], args, tools)
		if c == nil {
			return nil
		}
		calls = append(calls, *c)
	}
	return calls
}

// pairCalls reads GLM's NAME followed by keys and values.
func pairCalls(s string, tools []*llm.ToolSpec) []llm.ToolCall {
	name, _, ok := strings.Cut(s, "<arg_key>")
	if !ok {
		return nil
	}
	name = strings.TrimSpace(name)
	var keys, values []string
	for _, p := range argPair.FindAllStringSubmatch(s, -1) {
		keys, values = append(keys, strings.TrimSpace(p[1])), append(values, p[2])
	}
	if c := callOf(name, object(name, keys, values, tools), tools); c != nil {
		return []llm.ToolCall{*c}
	}
	return nil
}

// object makes arguments of parameters that are written as text. A parameter is text if the tool
// wants text, otherwise JSON if it is valid.
func object(tool string, keys, values []string, tools []*llm.ToolSpec) []byte {
	var schema struct {
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
	}
	for _, t := range tools {
		if t.Name == tool {
			_ = json.Unmarshal(t.Input, &schema) // without a schema, valid JSON is taken as JSON
		}
	}
	args := map[string]json.RawMessage{}
	for i, k := range keys {
		// Parameters are written between tags: a line break on each side belongs to the tags, and <
		// is often escaped.
		v := html.UnescapeString(strings.TrimSuffix(strings.TrimPrefix(values[i], "\n"), "\n"))
		if schema.Properties[k].Type != "string" && json.Valid([]byte(v)) {
			args[k] = json.RawMessage(v)
		} else {
			args[k], _ = json.Marshal(v) // a string has a JSON form
		}
	}
	b, err := json.Marshal(args)
	if err != nil {
		return nil
	}
	return b
}

// namedCalls reads a name and the object after it, with any marks between: DeepSeek, Kimi, Mistral,
// gpt-oss.
func namedCalls(s string, tools []*llm.ToolSpec) []llm.ToolCall {
	var calls []llm.ToolCall
	for {
		m := named.FindStringSubmatchIndex(s)
		if m == nil {
			return calls
		}
		n := jsonrepair.Balanced(s[m[1]-1:], "{[(", "}])")
		if n == 0 {
			return nil
		}
		fixed, _, err := jsonrepair.Repair([]byte(s[m[1]-1 : m[1]-1+n]))
		if err != nil {
			return nil
		}
		c := callOf(s[m[2]:m[3]], fixed, tools)
		if c == nil {
			return nil
		}
		calls = append(calls, *c)
		s = s[m[1]-1+n:]
	}
}

// pythonCalls reads NAME(key=value, …), alone, one a line, or in a list.
func pythonCalls(s string, tools []*llm.ToolSpec) []llm.ToolCall {
	if t, ok := strings.CutPrefix(s, "["); ok && strings.HasSuffix(t, "]") {
		s = strings.TrimSuffix(t, "]")
	}
	var calls []llm.ToolCall
	for s = strings.TrimSpace(s); s != ""; s = strings.Trim(s, " \t\r\n;,") {
		m := python.FindStringSubmatchIndex(s)
		if m == nil {
			return nil
		}
		n := jsonrepair.Balanced(s[m[1]-1:], "{[(", "}])")
		if n == 0 {
			return nil
		}
		// Positional arguments have no names, and the order of a schema's properties means nothing.
		// So they are no call.
		args, ok := keywords(s[m[1] : m[1]-2+n])
		c := callOf(s[m[2]:m[3]], args, tools)
		if !ok || c == nil {
			return nil
		}
		calls = append(calls, *c)
		s = s[m[1]-1+n:]
		if rest, ok := strings.CutPrefix(strings.TrimLeft(s, " "), ")"); ok { // of print(
			s = rest
		}
	}
	return calls
}

var keyword = regexp.MustCompile(`^\s*([A-Za-z_]\w*)\s*=\s*`)

// keywords makes an object of key=value, ….
func keywords(s string) ([]byte, bool) {
	var b strings.Builder
	b.WriteByte('{')
	for first := true; strings.TrimSpace(s) != ""; first = false {
		m := keyword.FindStringSubmatchIndex(s)
		if m == nil {
			return nil, false
		}
		end := valueEnd(s[m[1]:])
		if !first {
			b.WriteByte(',')
		}
		b.WriteString(`"` + s[m[2]:m[3]] + `":` + s[m[1]:m[1]+end])
		s = strings.TrimPrefix(s[m[1]+end:], ",")
	}
	b.WriteByte('}')
	// The repair reads what Python writes and JSON does not: True, None, and quotes of the other
	// kind.
	fixed, _, err := jsonrepair.Repair([]byte(b.String()))
	return fixed, err == nil
}

// valueEnd returns the end of the Python value at the start of s: a comma outside of brackets and
// quotes, or the end of s.
func valueEnd(s string) int {
	depth := 0
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == ')' || c == ']' || c == '}':
			depth--
		case c == ',' && depth == 0:
			return i
		}
	}
	return len(s)
}
