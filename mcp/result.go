package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// maxMedia is the maximum size of an image, a sound or a document in a result.
const maxMedia = 5 << 20

// result converts the server's result to parts for the model and data for programs.
func (c *Client) result(ctx context.Context, d *Definition, res *sdk.CallToolResult) llm.ToolResult {
	out := llm.ToolResult{IsError: res.IsError}
	out.Parts = c.parts(d.Name, res.Content)
	if exact, ok := res.Meta[structuredKey].(string); ok && res.StructuredContent != nil {
		out.Data = json.RawMessage(exact)
	} else {
		out.Data = asJSON(res.StructuredContent)
	}
	if out.Data != nil && !res.IsError {
		if why := unfit(ctx, d, out.Data); why != "" {
			c.notice(Dropped, d.Name, "its structured result does not fit the schema that it named: "+why)
			out.Data = nil
		}
	}
	if len(out.Parts) == 0 && out.Data != nil {
		out.Parts = []llm.Part{llm.Text{Text: clean(string(out.Data))}}
	}
	if len(out.Parts) == 0 && out.IsError {
		out.Parts = []llm.Part{llm.Text{Text: "The tool failed and did not say why."}}
	}
	return out
}

// unfit returns why data does not match the output schema of d. Empty means that it matches, or
// that there is no schema to check.
func unfit(ctx context.Context, d *Definition, data json.RawMessage) string {
	if len(d.Output) == 0 || len(data) == 0 || data[0] != '{' {
		return ""
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

// parts converts the contents of a result for a model. Invisible characters are removed from texts;
// their meaning is not checked.
func (c *Client) parts(tool string, contents []sdk.Content) []llm.Part {
	var parts []llm.Part
	hid := false
	text := func(s string) {
		t := clean(s)
		hid = hid || smuggles(s)
		parts = append(parts, llm.Text{Text: t})
	}

	for _, content := range contents {
		// A model reads texts that follow each other as one: each begins on a line of its own.
		if len(parts) > 0 {
			last, ok := parts[len(parts)-1].(llm.Text)
			if ok && !strings.HasSuffix(last.Text, "\n") {
				parts[len(parts)-1] = llm.Text{Text: last.Text + "\n"}
			}
		}

		switch x := content.(type) {
		case *sdk.TextContent:
			text(x.Text)
		case *sdk.ImageContent:
			parts = append(parts, c.media(tool, "image/", x.MIMEType, x.Data))
		case *sdk.AudioContent:
			parts = append(parts, c.media(tool, "audio/", x.MIMEType, x.Data))
		case *sdk.EmbeddedResource:
			parts = append(parts, c.resource(tool, x.Resource)...)
		case *sdk.ResourceLink:
			about := strings.TrimSpace(strings.Join([]string{x.Name, x.MIMEType, x.Description}, " "))
			text(fmt.Sprintf("[a link to the resource %s: %s]", x.URI, about))
		default:
			text("[content of an unknown kind]")
		}
	}

	if hid {
		c.notice(Cleaned, tool, "its result had text that a reader does not see")
	}
	return parts
}

// media returns an image or a sound if the bytes match the type that the server states.
func (c *Client) media(tool, kind, mime string, data []byte) llm.Part {
	is := http.DetectContentType(data)
	name := clip(clean(mime), 60)
	switch {
	case len(data) == 0 || len(data) > maxMedia:
		c.notice(Dropped, tool, fmt.Sprintf("%s of %d bytes", name, len(data)))
		return llm.Text{Text: fmt.Sprintf("[%s of %d bytes is left out]", name, len(data))}
	case !strings.HasPrefix(mime, kind), kind == "image/" && !mayBeImage(is, mime):
		c.notice(Dropped, tool, fmt.Sprintf("what it calls %s is %s", name, is))
		return llm.Text{Text: fmt.Sprintf("[%s is left out: the bytes are %s]", name, is)}
	}
	return llm.Media{MIME: mime, Data: data}
}

// mayBeImage reports whether bytes that were detected as is can be an image of the stated type.
// Formats that the detection does not know are octets to it.
func mayBeImage(is, stated string) bool {
	return is == stated || strings.HasPrefix(is, "image/") || is == "application/octet-stream"
}

// resource returns the content of a resource under its address.
func (c *Client) resource(tool string, r *sdk.ResourceContents) []llm.Part {
	if r == nil {
		return nil
	}
	head := fmt.Sprintf("[resource %s", clip(clean(r.URI), 500))
	if r.MIMEType != "" {
		head += ", " + clip(clean(r.MIMEType), 60)
	}
	head += "]\n"
	if r.Blob == nil {
		if smuggles(r.Text) {
			c.notice(Cleaned, tool, "a resource had text that a reader does not see")
		}
		return []llm.Part{llm.Text{Text: head + clean(r.Text)}}
	}

	kind, _, _ := strings.Cut(r.MIMEType, "/")
	switch {
	case kind == "image" || kind == "audio":
		return []llm.Part{llm.Text{Text: head}, c.media(tool, kind+"/", r.MIMEType, r.Blob)}
	case r.MIMEType == "application/pdf" && len(r.Blob) <= maxMedia:
		return []llm.Part{llm.Text{Text: head}, llm.Media{MIME: r.MIMEType, Data: r.Blob}}
	}
	return []llm.Part{llm.Text{Text: head + fmt.Sprintf("[%d bytes that are not text]", len(r.Blob))}}
}
