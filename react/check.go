package react

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// check returns the faults of d, in words for the model, or its calls.
func (m *Model) check(req *llm.Request, d *Decision) (calls []llm.ToolCall, faults []string) {
	switch {
	case d.Type == FinalAnswer:
		if f := m.answerFault(req, d); f != "" {
			faults = append(faults, f)
		}
		return nil, faults
	case d.Type != CallTool:
		return nil, []string{"Decision type must be call_tool or final_answer."}
	case req.Choice.Mode == llm.ToolNone:
		return nil, []string{"No tool may be called now. Give the final answer."}
	}

	// The ids go on from the calls of the conversation, so that no result belongs to two calls.
	number := countCalls(req.Messages)
	for _, c := range d.calls() {
		tool := findTool(req.Tools, c.Tool)
		if f := m.toolFault(req, c, tool); f != "" {
			faults = append(faults, f)
			continue
		}
		args, notes, err := fitArgs(tool, c.Args)
		if err != nil && !m.opts.Lenient {
			faults = append(faults, err.Error())
			continue
		}
		d.Notes = append(d.Notes, notes...)
		number++
		calls = append(calls, llm.ToolCall{ID: freeID(req.Messages, number), Name: c.Tool, Args: args})
	}
	return calls, faults
}

// answerFault says why the answer of d cannot be used. Empty means that it can.
func (m *Model) answerFault(req *llm.Request, d *Decision) string {
	switch {
	case strings.TrimSpace(d.Answer) == "" && !m.opts.FinalViaInference:
		return "Answer is required when type=final_answer."
	case len(req.Tools) == 0:
		return ""
	case req.Choice.Mode == llm.ToolRequired:
		return "A tool must be called now; the final answer comes later."
	case req.Choice.Mode == llm.ToolNamed:
		return chooseOf(req)
	}
	return ""
}

// toolFault says why the tool of a call cannot be called. Empty means that it can. tool is nil if
// there is none of this name.
func (m *Model) toolFault(req *llm.Request, c Call, tool *llm.ToolSpec) string {
	switch {
	case c.Tool == "":
		return "Tool name is required when type=call_tool."
	case tool == nil && !m.opts.Lenient:
		return fmt.Sprintf("Requested tool is not available: %q. Available tools: %s.", clip(c.Tool, 80), toolNames(req.Tools))
	case req.Choice.Mode == llm.ToolNamed && !slices.Contains(req.Choice.Names, c.Tool):
		return chooseOf(req)
	}
	return ""
}

func chooseOf(req *llm.Request) string {
	return fmt.Sprintf("One of these tools must be called now: %s.", strings.Join(req.Choice.Names, ", "))
}

// fitArgs reads a model's arguments for tool, which may be nil. Arguments that nearly fit stay
// unchanged: the pipeline repairs and records them, as in native calling. With an error, args is
// the original text.
func fitArgs(tool *llm.ToolSpec, raw json.RawMessage) (args json.RawMessage, notes []string, err error) {
	raw = bytes.TrimSpace(raw)
	args = raw
	if len(raw) == 0 || string(raw) == "null" {
		raw = nil
		args = json.RawMessage("{}")
	}
	if tool == nil {
		return args, nil, nil
	}
	err = tool.Validate(raw)
	if err == nil || raw == nil {
		return args, nil, err
	}

	switch raw[0] {
	case '{':
	case '[':
		if json.Valid(raw) {
			err = fmt.Errorf("the arguments of %s must be a JSON object keyed by parameter name, not a list", tool.Name)
		}
	// A text in place of an object is clear if the tool has a single parameter.
	default:
		if wrapped, name := asOnlyParameter(tool, raw); wrapped != nil {
			return wrapped, []string{"took the text for the only parameter, " + name}, nil
		}
	}
	return raw, nil, err
}

// asOnlyParameter returns arguments with a text as the only parameter of tool, and its name. Nil
// means that the tool does not take them.
func asOnlyParameter(tool *llm.ToolSpec, raw json.RawMessage) (args json.RawMessage, name string) {
	name = onlyText(tool)
	if name == "" {
		return nil, ""
	}
	text := string(raw)
	_ = json.Unmarshal(raw, &text) // a JSON string; any other text is used unchanged
	args, _ = json.Marshal(map[string]string{name: text})
	if tool.Validate(args) != nil {
		return nil, ""
	}
	return args, name
}

// onlyText returns the name of tool's only parameter if that takes text, else "".
func onlyText(tool *llm.ToolSpec) string {
	var schema struct {
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
	}
	if json.Unmarshal(tool.Input, &schema) != nil || len(schema.Properties) != 1 {
		return ""
	}
	for name, p := range schema.Properties {
		if p.Type == "string" {
			return name
		}
	}
	return ""
}

// choiceHint describes a tool choice other than auto to the model. Empty means that no hint is
// needed.
func choiceHint(req *llm.Request) string {
	if len(req.Tools) == 0 {
		return ""
	}
	switch req.Choice.Mode {
	case llm.ToolNone:
		return "Call no tool now. Give the final answer with what you know."
	case llm.ToolRequired:
		return "Call a tool now. The final answer comes later."
	case llm.ToolNamed:
		return "Call one of these tools now: " + strings.Join(req.Choice.Names, ", ") + "."
	}
	return ""
}

func countCalls(msgs []llm.Message) int {
	n := 0
	for _, m := range msgs {
		n += len(m.Calls())
	}
	return n
}

// freeID returns an id that no call of the conversation has. It is made from the transcript, so a
// repeated request gives the same id.
func freeID(msgs []llm.Message, number int) string {
	id := "call_" + strconv.Itoa(number)
	for _, m := range msgs {
		for _, p := range m.Parts {
			if c, ok := p.(llm.ToolCall); ok && c.ID == id {
				// the driver's own calls are numbered, so this one belongs to another driver
				return "react_" + id
			}
		}
	}
	return id
}

func findTool(tools []*llm.ToolSpec, name string) *llm.ToolSpec {
	if i := slices.IndexFunc(tools, func(t *llm.ToolSpec) bool { return t.Name == name }); i >= 0 {
		return tools[i]
	}
	return nil
}

func toolNames(tools []*llm.ToolSpec) string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
