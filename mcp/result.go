package mcp

import (
	"context"
	"encoding/json"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/foreign"
	"github.com/pawl-go/pawl/llm"
)

// maxMedia is the maximum size of an image, a sound or a document in a result.
const maxMedia = 5 << 20

// result converts the server's result to parts for the model and data for programs. The model reads
// texts and structured data, unless the texts hold the data. Data that does not fit its schema is
// for the model alone.
func (c *Client) result(ctx context.Context, d *Definition, res *sdk.CallToolResult) llm.ToolResult {
	from := carriedBy(res.Meta, res)
	r := c.read(d.Name)
	defer r.report()
	r.Blocks(from.Content)

	out := llm.ToolResult{IsError: from.failed(), Data: from.Structured}
	r.Structured(out.Data)
	if why := unfit(ctx, d, out.Data); why != "" && !out.IsError {
		r.Note("the structured content does not fit the schema that the server stated for it: %s", why)
		c.notice(Dropped, d.Name, "its structured result does not fit the schema that it named: "+why)
		out.Data = nil
	}
	if len(r.Parts) == 0 && out.IsError {
		r.Text("The tool failed and did not say why.")
	}
	out.Parts = r.Parts
	return out
}

// unfit returns why data does not match the output schema of d. Empty means that it matches, or
// that there is no schema to check.
func unfit(ctx context.Context, d *Definition, data json.RawMessage) string {
	if len(d.Output) == 0 || len(data) == 0 {
		return ""
	}
	if data[0] != '{' {
		var schema struct{ Type any }
		_ = json.Unmarshal(d.Output, &schema) // inspect has read it
		if schema.Type == "object" {
			return "want an object, got " + clip(string(data), 60)
		}
		return "" // the check below reads objects
	}
	check := &pawl.Tool{Name: "result", Input: d.Output, NoRepair: true,
		Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			return llm.ToolResult{}, nil
		}}
	if check.Check() != nil {
		return ""
	}
	x := pawl.Toolsets{check}.Execute(ctx, llm.ToolCall{ID: "result", Name: "result", Args: data})
	if x.Outcome != pawl.OutcomeInvalid {
		return ""
	}
	_, faults, _ := strings.Cut(x.Result.Text(), ":")
	faults, _, _ = strings.Cut(faults, "\nArguments of the right form")
	return clip(strings.Join(strings.Fields(faults), " "), 300)
}

// prompt is one message of a prompt.
type prompt struct {
	Role    string
	Content json.RawMessage
}

// reading converts the content of one result, and knows what a person should know about it.
type reading struct {
	foreign.Reader
	client *Client
	tool   string // for notices
	hid    bool   // a text had characters that a reader does not see
}

// read returns a reading for the results of a tool. Invisible characters are removed from texts;
// their meaning is not checked.
func (c *Client) read(tool string) *reading {
	r := &reading{client: c, tool: tool}
	r.MaxMedia = maxMedia
	r.Clean = func(s string) string {
		r.hid = r.hid || smuggles(s)
		return clean(s)
	}
	return r
}

// report sends the notices about the result.
func (r *reading) report() {
	for _, what := range r.Dropped {
		r.client.notice(Dropped, r.tool, what)
	}
	if r.hid {
		r.client.notice(Cleaned, r.tool, "its result had text that a reader does not see")
	}
}
