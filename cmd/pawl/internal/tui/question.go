package tui

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/mcp"
)

// question shows a question of an MCP server, under the name of the server. The answer goes to the
// server and approves no call.
func (a *asker) question(ctx context.Context, q mcp.Question) (mcp.Answer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	done := a.out.hold()
	defer done()
	fmt.Fprintf(a.out.w, "\n%s\n", a.style.Yellow("  the MCP server "+cli.Line(q.Server, 40)+
		" asks (pawl does not; what you say goes to the server):"))
	for _, l := range wholeArgs(q.Message, a.width-6) {
		fmt.Fprintf(a.out.w, "      | %s\n", l)
	}
	if q.URL != "" {
		fmt.Fprintf(a.out.w, "      it wants you to open: %s\n", cli.Exact(q.URL))
	}
	content, err := a.form(ctx, q.Schema)
	if err != nil {
		return mcp.Answer{}, err
	}
	said, err := a.typed(ctx, "  y: send this answer, n: refuse > ")
	if err != nil {
		return mcp.Answer{}, err
	}
	said = strings.ToLower(said)
	return mcp.Answer{Accept: said == "y" || said == "yes", Content: content}, nil
}

// form asks for each field. Empty fields are omitted.
func (a *asker) form(ctx context.Context, schema json.RawMessage) (map[string]any, error) {
	var s struct {
		Properties map[string]struct {
			Title, Description, Type string
			Enum                     []string
		}
	}
	_ = json.Unmarshal(schema, &s)
	content := map[string]any{}
	for _, n := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[n]
		about := strings.TrimSpace(p.Title + " " + p.Description)
		if len(p.Enum) > 0 {
			about += " (" + strings.Join(p.Enum, ", ") + ")"
		}
		said, err := a.typed(ctx, "  "+cli.Line(cli.Exact(n+" "+about), 100)+" > ")
		if err != nil {
			return nil, err
		}
		var v any
		switch {
		case said == "":
			continue
		case p.Type == "string" || p.Type == "":
			v = said
		case json.Unmarshal([]byte(said), &v) != nil:
			v = said // the SDK reports the error
		}
		content[n] = v
	}
	return content, nil
}

func (a *asker) typed(ctx context.Context, prompt string) (string, error) {
	if a.console != nil {
		s := a.console.put(ctx, newPrompt(strings.TrimSuffix(strings.TrimSpace(prompt), " >")), "")
		if s.verdict == 0 {
			return "", cmp.Or(context.Cause(ctx), io.EOF)
		}
		return s.text, nil
	}
	fmt.Fprint(a.out.w, prompt)
	said, err := a.in.Next(ctx)
	return strings.TrimSpace(said), err
}
