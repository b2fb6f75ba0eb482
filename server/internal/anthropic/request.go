package anthropic

// request.go: requests, and their conversion.

import (
	"encoding/json"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/internal/turns"
)

// messagesRequest holds the supported fields of a request to /v1/messages. Other fields are
// ignored, except that unsupported fields that would change the answer are an error.
type messagesRequest struct {
	Model         string          `json:"model"`
	Messages      []message       `json:"messages"`
	System        content         `json:"system"`
	MaxTokens     int             `json:"max_tokens"`
	Temperature   *float64        `json:"temperature"`
	TopP          *float64        `json:"top_p"`
	StopSequences []string        `json:"stop_sequences"`
	Stream        bool            `json:"stream"`
	Tools         []toolRequest   `json:"tools"`
	ToolChoice    *toolChoice     `json:"tool_choice"`
	MCPServers    json.RawMessage `json:"mcp_servers"`
	Thinking      struct {
		Type string `json:"type"`
	} `json:"thinking"`
	OutputConfig struct {
		Effort string  `json:"effort"`
		Format *format `json:"format"`
	} `json:"output_config"`
	OutputFormat *format `json:"output_format"` // the earlier place of output_config.format
}

// format is the format of the answer.
type format struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

// toolRequest is a tool of a request.
type toolRequest struct {
	Type        string          `json:"type"` // "" means custom
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// toolChoice is the choice of tools of a request.
type toolChoice struct {
	Type            string `json:"type"`
	Name            string `json:"name"`
	DisableParallel bool   `json:"disable_parallel_tool_use"`
}

// message is a message of the conversation.
type message struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

// thinks reports whether the client wants the reasoning.
func (r *messagesRequest) thinks() bool {
	return r.Thinking.Type != "" && r.Thinking.Type != "disabled"
}

// convert converts the request. limit is the agent's own limit of a reply in tokens; 0 means none.
func (r *messagesRequest) convert(limit func(agent string) int) (in turns.Asked, err error) {
	if servers := string(r.MCPServers); servers != "" && servers != "null" && servers != "[]" {
		return in, runs.BadRequest("mcp_servers: not supported", "give the servers to the agent")
	}

	in.Prefix = turns.PrefixMessage
	in.Agent = r.Model
	in.Stream = r.Stream
	if err := r.addExtras(&in.Extras); err != nil {
		return in, err
	}

	// Each client has to send max_tokens, so that it is no more than a bound.
	if own := limit(r.Model); own > 0 && own < r.MaxTokens {
		in.Extras.Settings.MaxTokens = own
	}
	for _, m := range r.Messages {
		if err := m.add(&in); err != nil {
			return in, err
		}
	}
	return in, nil
}

// addExtras adds the system prompt, the settings, the tools and the output of the request.
func (r *messagesRequest) addExtras(x *runs.Extras) (err error) {
	system, err := r.System.parts()
	if err != nil {
		return err
	}
	if len(system) > 0 {
		x.AddSystem(system)
	}

	x.Settings = llm.Settings{
		MaxTokens:     r.MaxTokens,
		Temperature:   r.Temperature,
		TopP:          r.TopP,
		Effort:        r.OutputConfig.Effort,
		StopSequences: r.StopSequences,
	}
	addTools(x, r.Tools)
	if r.ToolChoice != nil {
		x.Choice, err = r.ToolChoice.llm()
		if err != nil {
			return err
		}
		if r.ToolChoice.DisableParallel {
			x.Settings.Parallel = new(bool)
		}
	}

	f := r.OutputConfig.Format
	if f == nil {
		f = r.OutputFormat
	}
	x.Output, err = f.output()
	return err
}

// addTools adds the tools that the client executes. Tools that Anthropic defines, such as
// web_search_20250305, have no schema in the request and are skipped.
func addTools(x *runs.Extras, tools []toolRequest) {
	skipped := map[string]bool{}
	for _, t := range tools {
		switch {
		case t.Type == "" || t.Type == "custom":
			x.Tools = append(x.Tools, runs.ClientTool{
				Name:        t.Name,
				Description: t.Description,
				Parameters:  t.InputSchema,
			})
		case !skipped[t.Type]:
			skipped[t.Type] = true
			x.Skipped = append(x.Skipped, t.Type)
		}
	}
}

// llm converts the choice.
func (c *toolChoice) llm() (*llm.ToolChoice, error) {
	modes := map[string]llm.ToolMode{"auto": llm.ToolAuto, "any": llm.ToolRequired, "none": llm.ToolNone}
	mode, ok := modes[c.Type]
	switch {
	case ok:
		return &llm.ToolChoice{Mode: mode}, nil
	case c.Type == "tool":
		named := llm.Named(c.Name)
		return &named, nil
	}
	return nil, runs.BadRequest("tool_choice is not understood", "auto, any, none, or tool with a name")
}

// output returns the schema of the answer. f may be nil.
func (f *format) output() (json.RawMessage, error) {
	switch {
	case f == nil:
		return nil, nil
	case f.Type != "json_schema":
		return nil, runs.BadRequest("there is no format "+f.Type, "json_schema")
	case len(f.Schema) == 0:
		return nil, runs.BadRequest("json_schema has no schema", "")
	}
	return f.Schema, nil
}

// add adds a message to the conversation.
func (m *message) add(in *turns.Asked) error {
	parts, err := m.Content.parts()
	if err != nil {
		return err
	}
	switch m.Role {
	case "system":
		in.Extras.AddSystem(parts)
	case "assistant":
		in.Append(llm.RoleAssistant, parts...)
	case "user":
		addUser(in, parts)
	default:
		return runs.BadRequest("there is no role "+m.Role, "user and assistant")
	}
	return nil
}

// addUser adds a message of the user. Anthropic has the results of calls in it, which precede its
// other parts here.
func addUser(in *turns.Asked, parts []llm.Part) {
	var said []llm.Part
	for _, p := range parts {
		if _, isResult := p.(llm.ToolResult); isResult {
			in.Append(llm.RoleTool, p)
			continue
		}
		said = append(said, p)
	}
	if len(said) > 0 {
		in.Messages = append(in.Messages, llm.Message{Role: llm.RoleUser, Parts: said})
	}
}

// limitOf returns the agent's own limit of a reply in tokens; 0 means none.
func (c *call) limitOf(agent string) int {
	a, err := c.Runs.Agent(strings.TrimSuffix(agent, turns.SideName))
	if err != nil {
		return 0 // the run reports it
	}
	return a.Settings.MaxTokens
}
