package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// extras returns the tools with which a model reads the server's resources and prompts, if the
// configuration enables them.
func (c *Client) extras(v *view) []*pawl.Tool {
	caps := v.caps
	var tools []*pawl.Tool
	add := func(name, description, schema string, run pawl.ToolFunc) {
		as := c.server.distinct([]string{name}, c.opts.OtherServers)[0]
		c.mu.Lock()
		defer c.mu.Unlock()
		if t := c.more[as]; t != nil {
			tools = append(tools, t)
			return
		}
		t := &pawl.Tool{Name: as, Description: description, Input: json.RawMessage(schema), Effect: pawl.EffectRead,
			Timeout: c.server.callTime(), Server: c.server.Name, StatesSending: true, Run: run}
		if !c.server.Trust {
			t.Effect = pawl.EffectUnstated // the effect of reading is unknown there
		}
		c.more[as] = t
		tools = append(tools, t)
	}
	if c.server.Resources && caps != nil && caps.Resources != nil {
		add("list_resources", "Lists what can be read from the server "+c.server.Name+": the address of each, and what it is.",
			`{"type":"object","properties":{}}`, over(c, c.listResources))
		add("read_resource", "Reads one of the resources that the server "+c.server.Name+" lists.",
			`{"type":"object","properties":{"uri":{"type":"string","description":"Its address, as it was listed"}},`+
				`"required":["uri"]}`, over(c, c.readResource))
	}
	if c.server.Prompts && caps != nil && caps.Prompts != nil {
		add("list_prompts", "Lists the prompts that the server "+c.server.Name+" has, with their arguments.",
			`{"type":"object","properties":{}}`, over(c, c.listPrompts))
		add("read_prompt", "Gives the text of one of the prompts that the server "+c.server.Name+" lists, with arguments filled in.",
			`{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object",`+
				`"additionalProperties":{"type":"string"}}},"required":["name"]}`, over(c, c.readPrompt))
	}
	return tools
}

// maxListed is the maximum number of resources or prompts listed.
const maxListed = 200

func (c *Client) listResources(ctx context.Context, s *session, _ struct{}) (llm.ToolResult, error) {
	var b strings.Builder
	n := 0
	entry := func(uri, name, mime, description string) bool {
		fmt.Fprintf(&b, "%s: %s\n", clean(uri), clip(clean(strings.Join(strings.Fields(name+" "+mime+" "+description), " ")), 300))
		n++
		return n < maxListed
	}
	for r, err := range s.conn.Resources(ctx, nil) {
		if err != nil {
			return llm.ToolResult{}, err
		}
		if !entry(r.URI, r.Name, r.MIMEType, r.Description) {
			break
		}
	}
	for r, err := range s.conn.ResourceTemplates(ctx, nil) {
		// many servers have none and return an error
		if err != nil || !entry(r.URITemplate, r.Name, r.MIMEType, r.Description) {
			break
		}
	}
	return listing(b.String(), n), nil
}

func listing(text string, n int) llm.ToolResult {
	switch {
	case n == 0:
		text = "There are none."
	case n >= maxListed:
		text += fmt.Sprintf("(%d are listed; there are more)", n)
	}
	return llm.TextResult(text)
}

func (c *Client) readResource(ctx context.Context, s *session, q sdk.ReadResourceParams) (llm.ToolResult, error) {
	res, err := s.conn.ReadResource(ctx, &sdk.ReadResourceParams{URI: q.URI})
	if err != nil {
		return llm.ToolResult{}, err
	}
	from := carriedBy(res.Meta, res)
	r := c.read("read_resource")
	defer r.report()
	r.Contents(from.Contents)
	return llm.ToolResult{Parts: r.Parts}, nil
}

func (c *Client) listPrompts(ctx context.Context, s *session, _ struct{}) (llm.ToolResult, error) {
	var b strings.Builder
	n := 0
	for p, err := range s.conn.Prompts(ctx, nil) {
		if err != nil {
			return llm.ToolResult{}, err
		}
		fmt.Fprintf(&b, "%s: %s\n", clean(p.Name), clip(clean(p.Description), 300))
		for _, a := range p.Arguments {
			need := ""
			if a.Required {
				need = " (required)"
			}
			fmt.Fprintf(&b, "  %s%s: %s\n", clean(a.Name), need, clip(clean(a.Description), 200))
		}
		n++
		if n >= maxListed {
			break
		}
	}
	return listing(b.String(), n), nil
}

func (c *Client) readPrompt(ctx context.Context, s *session, q sdk.GetPromptParams) (llm.ToolResult, error) {
	res, err := s.conn.GetPrompt(ctx, &sdk.GetPromptParams{Name: q.Name, Arguments: q.Arguments})
	if err != nil {
		return llm.ToolResult{}, err
	}
	from := carriedBy(res.Meta, res)
	r := c.read("read_prompt")
	defer r.report()
	var messages []prompt
	if json.Unmarshal(from.Messages, &messages) != nil {
		r.Blocks(from.Messages)
	}
	for _, m := range messages {
		r.Text(m.Role + ":\n")
		r.Blocks(m.Content)
		r.EndLine()
	}
	return llm.ToolResult{Parts: r.Parts}, nil
}

// over returns a tool that runs do with the connection, as a call does.
func over[T any](c *Client, do func(context.Context, *session, T) (llm.ToolResult, error)) pawl.ToolFunc {
	return func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
		var args T
		if err := json.Unmarshal(call.Args, &args); err != nil {
			return llm.ToolResult{}, err
		}
		var res llm.ToolResult
		s, _, err := c.within(ctx, "", "", func(ctx context.Context, s *session) (err error) {
			_, work := c.begin(ctx, "")
			defer c.endCall(work)
			res, err = do(ctx, s, args)
			return err
		})
		if err != nil {
			return c.failure(ctx, s, err)
		}
		return c.hidden(res), nil
	}
}
