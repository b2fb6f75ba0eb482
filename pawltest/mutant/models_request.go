package mutant

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// messageFaults lose or change messages of a request.
func messageFaults() []Mutant[llm.Model] {
	return []Mutant[llm.Model]{
		ofRequest("drops the model's name", "request/model", func(r *llm.Request) { r.Model = "" }),
		ofRequest("drops the instructions", "request/instructions", func(r *llm.Request) { r.Messages = r.Messages[1:] }),
		ofRequest("sends the instructions as a user's message", "request/instructions", func(r *llm.Request) { r.Messages[0].Role = llm.RoleUser }),
		ofRequest("drops instructions but the last", "request/instructions/several", func(r *llm.Request) {
			r.Messages = slices.DeleteFunc(r.Messages, func(m llm.Message) bool {
				return m.Role == llm.RoleSystem && m.Text() != "Be brief."
			})
		}),
		ofRequest("sends a developer's instructions as a user's message", "request/instructions/developer", func(r *llm.Request) {
			if r.Messages[0].Role == llm.RoleDeveloper {
				r.Messages[0].Role = llm.RoleUser
			}
		}),
		ofRequest("changes the ends of lines", "request/odd texts", eachOf(func(t llm.Text) llm.Part {
			t.Text = strings.ReplaceAll(t.Text, "\r\n", "\n")
			return t
		})),
		ofRequest("drops characters that are not printed", "request/odd texts", eachOf(func(t llm.Text) llm.Part {
			t.Text = strings.NewReplacer("\u200d", "", "\x7f", "", "\u2028", "").Replace(t.Text)
			return t
		})),
		ofRequest("writes the model's name in lower case", "request/model", func(r *llm.Request) { r.Model = strings.ToLower(r.Model) }),
		ofRequest("writes the names of calls in lower case", "request/calls/names", eachOf(func(c llm.ToolCall) llm.Part {
			c.Name = strings.ToLower(c.Name)
			return c
		})),
		ofRequest("trims texts", "request/instructions", eachOf(func(t llm.Text) llm.Part {
			t.Text = strings.TrimSpace(t.Text)
			return t
		})),
		ofRequest("sends the last message only", "request/messages", func(r *llm.Request) {
			r.Messages = append(r.Messages[:1:1], r.Messages[len(r.Messages)-1])
		}),
		ofRequest("drops the oldest message of a long conversation", "request/messages", func(r *llm.Request) {
			if len(r.Messages) > 4 {
				r.Messages = slices.Delete(r.Messages, 1, 2)
			}
		}),
		ofRequest("sends the first text of a message only", "request/messages", func(r *llm.Request) {
			for i := range r.Messages {
				r.Messages[i].Parts = r.Messages[i].Parts[:1]
			}
		}),
		ofRequest("sends replies as the user's", "request/messages", func(r *llm.Request) {
			for i := range r.Messages {
				if r.Messages[i].Role == llm.RoleAssistant {
					r.Messages[i].Role = llm.RoleUser
				}
			}
		}),
		ofRequest("escapes texts", "request/messages", eachOf(func(t llm.Text) llm.Part {
			t.Text = strings.ReplaceAll(t.Text, "\n", `\n`)
			return t
		})),
		ofRequest("cuts large messages", "request/large messages", eachOf(func(t llm.Text) llm.Part {
			t.Text = t.Text[:min(len(t.Text), 64<<10)]
			return t
		})),
	}
}

// mediaFaults lose or change media of the user.
func mediaFaults() []Mutant[llm.Model] {
	return []Mutant[llm.Model]{
		ofRequest("drops images by value", "request/media/data", eachOf(func(m llm.Media) llm.Part {
			if m.URL == "" {
				return nil
			}
			return m
		})),
		ofRequest("sends the first image of a conversation only", "request/media/several", func(r *llm.Request) {
			sent := 0
			eachOf(func(m llm.Media) llm.Part {
				sent++
				if sent > 1 {
					return nil
				}
				return m
			})(r)
		}),
		ofRequest("drops images by URL", "request/media/url", eachOf(func(m llm.Media) llm.Part {
			if m.URL != "" {
				return nil
			}
			return m
		})),
		ofRequest("sends an image's URL as a text", "request/media/url", eachOf(func(m llm.Media) llm.Part { return llm.Text{Text: m.URL} })),
		ofRequest("drops documents", "request/media/document", eachOf(func(m llm.Media) llm.Part {
			if strings.HasPrefix(m.MIME, "image/") {
				return m
			}
			return nil
		})),
		ofRequest("sends every medium as a PNG", "request/media/document", eachOf(func(m llm.Media) llm.Part {
			m.MIME = "image/png"
			return m
		})),
	}
}

// resultFaults lose or change calls and results of a request.
func resultFaults() []Mutant[llm.Model] {
	return []Mutant[llm.Model]{
		ofRequest("drops the text that comes with calls", "request/calls", func(r *llm.Request) {
			for i, m := range r.Messages {
				if m.HasCalls() {
					r.Messages[i].Parts = slices.DeleteFunc(m.Parts, isA[llm.Text])
				}
			}
		}),
		ofRequest("writes arguments anew", "request/calls", eachOf(func(c llm.ToolCall) llm.Part {
			c.Args = compact(c.Args)
			return c
		})),
		ofRequest("exchanges the results of parallel calls", "request/calls", func(r *llm.Request) {
			for _, m := range r.Messages {
				if len(m.Parts) != 2 || m.Role != llm.RoleTool {
					continue
				}
				first := m.Parts[0].(llm.ToolResult)
				second := m.Parts[1].(llm.ToolResult)
				first.CallID, second.CallID = second.CallID, first.CallID
				m.Parts[0] = first
				m.Parts[1] = second
			}
		}),
		ofRequest("drops all results but the first of a step", "request/calls", func(r *llm.Request) {
			for i, m := range r.Messages {
				if m.Role == llm.RoleTool {
					r.Messages[i].Parts = m.Parts[:1]
				}
			}
		}),
		ofRequest("drops IsError", "request/results/failed", eachOf(func(t llm.ToolResult) llm.Part {
			t.IsError = false
			return t
		})),
		ofRequest("sends every result as failed", "request/results/failed", eachOf(func(t llm.ToolResult) llm.Part {
			t.IsError = true
			return t
		})),
		ofRequest("sends the first text of a result only", "request/results/parts", eachOf(func(t llm.ToolResult) llm.Part {
			t.Parts = t.Parts[:min(len(t.Parts), 1)]
			return t
		})),
		ofRequest("writes JSON results anew", "request/results/parts", eachOf(func(t llm.Text) llm.Part {
			if json.Valid([]byte(t.Text)) {
				t.Text = string(compact([]byte(t.Text)))
			}
			return t
		})),
		ofRequest("drops images of results", "request/results/media", func(r *llm.Request) {
			for _, m := range r.Messages {
				for i, p := range m.Parts {
					if result, ok := p.(llm.ToolResult); ok {
						result.Parts = slices.DeleteFunc(result.Parts, isA[llm.Media])
						m.Parts[i] = result
					}
				}
			}
		}),
		ofRequest("mixes up calls of two replies with the same id", "request/results/same calls", func(r *llm.Request) {
			seen := map[string]llm.Part{}
			eachPart(r, func(p llm.Part) llm.Part {
				result, ok := p.(llm.ToolResult)
				if !ok {
					return p
				}
				if seen[result.CallID] == nil {
					seen[result.CallID] = result
				}
				return seen[result.CallID]
			})
		}),
	}
}

// isA reports whether p is of the type P.
func isA[P llm.Part](p llm.Part) bool {
	_, ok := p.(P)
	return ok
}

// compact decodes JSON and writes it again.
func compact(b []byte) []byte {
	var v any
	if json.Unmarshal(b, &v) != nil {
		return b
	}
	out, err := json.Marshal(v)
	if err != nil {
		return b
	}
	return bytes.Clone(out)
}

// toolFaults lose or change tools, the choice between them, or the output of a request.
func toolFaults() []Mutant[llm.Model] {
	eachTool := func(change func(t *llm.ToolSpec)) func(r *llm.Request) {
		return func(r *llm.Request) {
			for _, t := range r.Tools {
				change(t)
			}
		}
	}
	mode := func(from, to llm.ToolMode) func(r *llm.Request) {
		return func(r *llm.Request) {
			if r.Choice.Mode == from {
				r.Choice = llm.ToolChoice{Mode: to}
			}
		}
	}
	return []Mutant[llm.Model]{
		ofRequest("drops the tools", "request/tools", func(r *llm.Request) { r.Tools = nil }),
		ofRequest("sends the first tool only", "request/tools", func(r *llm.Request) { r.Tools = r.Tools[:min(len(r.Tools), 1)] }),
		ofRequest("changes the order of the tools", "request/tools", func(r *llm.Request) { slices.Reverse(r.Tools) }),
		ofRequest("drops the descriptions of tools", "request/tools", eachTool(func(t *llm.ToolSpec) { t.Description = "" })),
		ofRequest("changes the names of tools", "request/tools", eachTool(func(t *llm.ToolSpec) { t.Name = strings.ReplaceAll(t.Name, "-", "_") })),
		ofRequest("sends the tools of an earlier request", "request/no tools", func(r *llm.Request) {
			if len(r.Tools) == 0 {
				r.Tools = []*llm.ToolSpec{{Name: "look", Description: "Looks."}}
			}
		}),
		ofRequest("drops the schemas of tools", "request/schemas", eachTool(func(t *llm.ToolSpec) { t.Input = json.RawMessage(`{"type":"object"}`) })),
		ofRequest("drops required", "request/schemas", eachTool(func(t *llm.ToolSpec) { t.Input = without(t.Input, "required") })),
		ofRequest("drops enum and pattern", "request/schemas", eachTool(func(t *llm.ToolSpec) { t.Input = without(t.Input, "enum", "pattern") })),
		ofRequest("drops $defs", "request/schemas", eachTool(func(t *llm.ToolSpec) { t.Input = without(t.Input, "$defs") })),
		ofRequest("drops the descriptions of fields", "request/schemas", eachTool(func(t *llm.ToolSpec) { t.Input = without(t.Input, "description") })),
		ofRequest("drops the choice none", "request/choice/none", mode(llm.ToolNone, llm.ToolAuto)),
		ofRequest("drops the choice required", "request/choice/required", mode(llm.ToolRequired, llm.ToolAuto)),
		ofRequest("drops the choice of a tool", "request/choice/named", mode(llm.ToolNamed, llm.ToolAuto)),
		ofRequest("forces any tool in place of the chosen one", "request/choice/named", mode(llm.ToolNamed, llm.ToolRequired)),
		ofRequest("forces the first of several tools", "request/choice/several", func(r *llm.Request) {
			r.Choice.Names = r.Choice.Names[:min(len(r.Choice.Names), 1)]
		}),
		ofRequest("drops the output schema", "request/output", func(r *llm.Request) { r.Output = nil }),
		ofRequest("drops the constraints of the output schema", "request/output", func(r *llm.Request) { r.Output = without(r.Output, "enum", "minItems") }),
	}
}

// without returns a schema without the given keywords, at every depth.
func without(schema json.RawMessage, keys ...string) json.RawMessage {
	var v any
	if json.Unmarshal(schema, &v) != nil {
		return schema
	}
	strip(v, keys)
	out, err := json.Marshal(v)
	if err != nil {
		return schema
	}
	return out
}

func strip(v any, keys []string) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range keys {
			delete(v, k)
		}
		for _, inner := range v {
			strip(inner, keys)
		}
	case []any:
		for _, inner := range v {
			strip(inner, keys)
		}
	}
}

// settingFaults lose a setting of a request.
func settingFaults() []Mutant[llm.Model] {
	set := func(name, part string, change func(s *llm.Settings)) Mutant[llm.Model] {
		return ofRequest(name, "request/settings/"+part, func(r *llm.Request) { change(&r.Settings) })
	}
	return []Mutant[llm.Model]{
		set("drops the token limit", "max_tokens", func(s *llm.Settings) { s.MaxTokens = 0 }),
		set("drops the temperature", "temperature", func(s *llm.Settings) { s.Temperature = nil }),
		set("takes the temperature 0 for the default", "temperature", func(s *llm.Settings) {
			if s.Temperature != nil && *s.Temperature == 0 {
				s.Temperature = nil
			}
		}),
		set("rounds the temperature", "temperature/fraction", func(s *llm.Settings) {
			if s.Temperature != nil {
				rounded := math.Round(*s.Temperature*10) / 10
				s.Temperature = &rounded
			}
		}),
		set("drops top_p", "top_p", func(s *llm.Settings) { s.TopP = nil }),
		set("sends top_p as the temperature", "top_p", func(s *llm.Settings) { s.Temperature, s.TopP = s.TopP, nil }),
		set("drops stop sequences", "stop", func(s *llm.Settings) { s.StopSequences = nil }),
		set("sends the first stop sequence only", "stop", func(s *llm.Settings) { s.StopSequences = s.StopSequences[:min(len(s.StopSequences), 1)] }),
		set("drops the effort", "effort", func(s *llm.Settings) { s.Effort = "" }),
		set("drops that calls may be parallel", "parallel", func(s *llm.Settings) { s.Parallel = nil }),
		set("takes never parallel for the default", "parallel/never", func(s *llm.Settings) {
			if s.Parallel != nil && !*s.Parallel {
				s.Parallel = nil
			}
		}),
	}
}
