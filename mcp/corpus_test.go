package mcp_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl/internal/test/corpora"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/mcp"
)

// Every example message of the specification is read by the SDK's types, and writing it again gives
// the same message.
func TestSpecificationExamples(t *testing.T) {
	types := map[string]reflect.Type{}
	for _, v := range []any{sdk.CallToolParams{}, sdk.CallToolResult{}, sdk.Tool{}, sdk.ListToolsResult{},
		sdk.ListResourcesResult{}, sdk.ListPromptsResult{}, sdk.GetPromptResult{},
		sdk.ReadResourceResult{}, sdk.Resource{}, sdk.ResourceTemplate{}, sdk.Prompt{}, sdk.InitializeResult{},
		sdk.InitializeParams{}, sdk.ElicitResult{}, sdk.ElicitParams{},
		sdk.ListResourceTemplatesResult{}, sdk.CompleteResult{}} {
		types[reflect.TypeOf(v).Name()] = reflect.TypeOf(v)
	}
	for name, v := range map[string]any{"CallToolRequestParams": sdk.CallToolParams{}, "CompleteRequestParams": sdk.CompleteParams{}, "ElicitRequestFormParams": sdk.ElicitParams{},
		"ElicitRequestURLParams": sdk.ElicitParams{}, "GetPromptRequestParams": sdk.GetPromptParams{}, "CancelledNotificationParams": sdk.CancelledParams{},
		"ProgressNotificationParams": sdk.ProgressNotificationParams{}, "PaginatedRequestParams": sdk.ListToolsParams{}, "ResourceUpdatedNotificationParams": sdk.ResourceUpdatedNotificationParams{},
		"ServerCapabilities": sdk.ServerCapabilities{}, "ClientCapabilities": sdk.ClientCapabilities{}, "DiscoverResult": sdk.DiscoverResult{}, "InputRequiredResult": sdk.CallToolResult{},
		"SubscriptionsListenResult": sdk.SubscriptionsListenResult{}, "TextResourceContents": sdk.ResourceContents{}, "BlobResourceContents": sdk.ResourceContents{},
		"InputResponses": sdk.InputResponseMap{}, "InputRequests": sdk.InputRequestMap{}} {
		types[name] = reflect.TypeOf(v)
	}
	contents := []string{"TextContent", "ImageContent", "AudioContent", "EmbeddedResource", "ResourceLink"}
	examples := corpora.Lines[struct {
		Version, Type, Name string
		Example             json.RawMessage
	}](t, "mcp-spec/examples.jsonl.gz")
	messages, typed, plain := 0, 0, 0
	for _, x := range examples {
		var env struct{ JSONRPC string }
		_ = json.Unmarshal(x.Example, &env)
		kind := types[x.Type]
		if slices.Contains(contents, x.Type) {
			kind = types["CallToolResult"]
			x.Example = json.RawMessage(`{"content":[` + string(x.Example) + `]}`)
		}
		switch {
		case env.JSONRPC != "":
			m, err := jsonrpc.DecodeMessage(x.Example)
			if err != nil {
				t.Errorf("%s %s: %v", x.Type, x.Name, err)
				continue
			}
			again, err := jsonrpc.EncodeMessage(m)
			if err != nil || !sameJSON(again, x.Example) {
				t.Errorf("%s %s is written as %s, %v", x.Type, x.Name, again, err)
			}
			messages++
		case kind != nil:
			v := reflect.New(kind)
			if err := json.Unmarshal(x.Example, v.Interface()); err != nil {
				t.Errorf("%s %s: %v", x.Type, x.Name, err)
			}
			typed++
		default:
			if !json.Valid(x.Example) {
				t.Errorf("%s %s is no JSON", x.Type, x.Name)
			}
			plain++
		}
	}
	if len(examples) != 258 {
		t.Errorf("%d examples, want 258", len(examples))
	}
	t.Logf("%d examples: %d whole messages, %d values of a type of the SDK, %d other values", len(examples), messages, typed, plain)
}

func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// Every recorded list of tools is loaded. A tool that is left out does not affect the others.
func TestCorpusOfServers(t *testing.T) {
	t.Parallel()
	soak.Sequential(t)
	lines := corpora.Lines[json.RawMessage](t, "tool-schemas/mcp-servers.dev.jsonl.gz")
	total, offered, mended := 0, 0, 0
	count := map[mcp.Verdict]int{}
	var why []string
	for _, line := range lines {
		var x struct{ Server string }
		if err := json.Unmarshal(line, &x); err != nil {
			t.Fatal(err)
		}
		s := mcp.Server{Name: "s", Command: "x"}
		listed, err := mcp.Inspect(s, line, nil)
		if err != nil {
			t.Errorf("%s: %v", x.Server, err)
			continue
		}
		var all struct{ Tools []json.RawMessage }
		if err := json.Unmarshal(line, &all); err != nil || len(all.Tools) != len(listed) {
			t.Errorf("%s: %d tools of %d, %v", x.Server, len(listed), len(all.Tools), err)
		}
		names := map[string]bool{}
		for _, l := range listed {
			total++
			count[l.Verdict]++
			if l.Tool != nil {
				offered++
				if names[l.As] {
					t.Errorf("%s: two tools are called %s", x.Server, l.As)
				}
				names[l.As] = true
			}
			if len(l.Changes) > 0 {
				mended++
			}
			if l.Verdict != mcp.Accepted {
				why = append(why, fmt.Sprintf("%s of %s: %s: %s", l.Name, x.Server, l.Verdict, l.Why))
			}
		}
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%d lists, %d tools: %d offered (%d with a repaired schema), %d left out.\n\n| verdict | tools |\n|---|---|\n", len(lines), total, offered, mended, total-offered)
	for _, v := range []mcp.Verdict{mcp.Accepted, mcp.Cleaned, mcp.Cut, mcp.Suspect, mcp.Quarantined} {
		fmt.Fprintf(&table, "| %s | %d |\n", v, count[v])
	}
	slices.Sort(why)
	for _, w := range why {
		t.Log(w)
	}
	section(t, "corpus", table.String())
}

// The patterns of suspicious descriptions flag no honest tool of lists that were not used to write
// the patterns: recorded traffic, BFCL, AgentDojo, tau-bench, and snapshots of a server.
func TestHonestDescriptions(t *testing.T) {
	t.Parallel()
	soak.Sequential(t)
	tuned := map[string]bool{} // descriptions of the lists that were used
	for _, x := range corpora.Lines[struct {
		Tools []struct{ Description string }
	}](t, "tool-schemas/mcp-servers.dev.jsonl.gz") {
		for _, tool := range x.Tools {
			tuned[strings.TrimSpace(tool.Description)] = true
		}
	}
	tools, flagged, origins := 0, 0, map[string]int{}
	for _, x := range corpora.Lines[struct {
		Origins, Names []string
		Description    string
		Schema         json.RawMessage
	}](t, "tool-schemas/dev.jsonl.gz") {
		if len(x.Names) == 0 || tuned[strings.TrimSpace(x.Description)] {
			continue
		}
		list, err := json.Marshal(map[string]any{"tools": []any{map[string]any{"name": x.Names[0],
			"description": x.Description, "inputSchema": x.Schema}}})
		if err != nil {
			t.Fatal(err)
		}
		listed, err := mcp.Inspect(mcp.Server{Name: "s", Command: "x"}, list, nil)
		if err != nil || len(listed) != 1 {
			t.Errorf("%s: %d tools, %v", x.Names[0], len(listed), err)
			continue
		}
		origin, _, _ := strings.Cut(x.Origins[0], ":")
		tools++
		origins[origin]++
		if listed[0].Verdict == mcp.Suspect {
			flagged++
			t.Errorf("%s of %v: %s", x.Names[0], x.Origins, listed[0].Why)
		}
	}
	t.Logf("%d of %d tools are flagged; by origin: %v", flagged, tools, origins)
	section(t, "precision", fmt.Sprintf("Of %d honest tools of lists that were not used to write the patterns, %d are suspect. One was, with \"This replaces\", which changed a pattern.\n", tools, flagged))
	if tools < 2000 {
		t.Errorf("only %d tools", tools)
	}
}
