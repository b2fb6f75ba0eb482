package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// The inspector's command line lists and calls the offered tools, and reads resources and prompts,
// over standard input and output and over HTTP.
func TestInspector(t *testing.T) {
	t.Parallel()
	cli := packageOf(t, "@modelcontextprotocol/inspector/cli/build/cli.js")
	h, err := service(new(atomic.Int32)).Handler(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	run := func(server []string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), "node", append(append([]string{cli, "--cli"}, server...), args...)...)
		cmd.Env = append(os.Environ(), asServer+"=doors")
		cmd.WaitDelay = time.Second
		out, err := cmd.CombinedOutput()
		if err != nil {
			return "status: " + err.Error() + ": " + string(out)
		}
		return string(out)
	}
	var table strings.Builder
	table.WriteString("| over | what | result |\n|---|---|---|\n")
	for _, way := range []struct {
		name   string
		server []string
	}{
		{"stdio", []string{os.Args[0]}},
		{"HTTP", []string{web.URL + "/mcp", "--transport", "http"}},
	} {
		var list struct {
			Tools []struct{ Name string } `json:"tools"`
		}
		out := run(way.server, "--method", "tools/list")
		if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Tools) != 5 {
			t.Errorf("%s: tools/list: %v: %s", way.name, err, out)
		}
		fmt.Fprintf(&table, "| %s | `tools/list` | %d tools |\n", way.name, len(list.Tools))
		for _, test := range []struct{ tool, arg, text string }{
			{"look", "name=front", `{"door":"front","open":false}`},
			{"unlock", "name=front", "Not run: unlock needs a person's approval, and this client cannot ask for it (it has no elicitation)."},
		} {
			var res struct {
				Content []struct{ Text string } `json:"content"`
				IsError bool                    `json:"isError"`
			}
			out := run(way.server, "--method", "tools/call", "--tool-name", test.tool, "--tool-arg", test.arg)
			if err := json.Unmarshal([]byte(out), &res); err != nil || len(res.Content) != 1 ||
				res.Content[0].Text != test.text || res.IsError != (test.tool == "unlock") {
				t.Errorf("%s: tools/call %s: %v: %s", way.name, test.tool, err, out)
				continue
			}
			kind := "result"
			if res.IsError {
				kind = "error"
			}
			fmt.Fprintf(&table, "| %s | `tools/call %s` | %s: %s |\n", way.name, test.tool, kind, res.Content[0].Text)
		}
		if way.name != "HTTP" {
			continue // each method starts Node; TestTheMCPClientReads reads over stdio
		}
		var got struct {
			Resources         []struct{ URI string }
			ResourceTemplates []struct{ URITemplate string }
			Contents          []struct{ Text string }
			Prompts           []struct{ Name string }
			Messages          []struct{ Content struct{ Text string } }
		}
		for _, args := range [][]string{{"resources/list"}, {"resources/templates/list"}, {"resources/read", "--uri", "pawl://doors/d001"},
			{"prompts/list"}, {"prompts/get", "--prompt-name", "ask", "--prompt-args", "name=d002"}} {
			out := run(way.server, append([]string{"--method"}, args...)...)
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Errorf("%s: %s: %v: %s", way.name, args, err, out)
			}
		}
		if len(got.Resources) != 150 || len(got.ResourceTemplates) != 1 || len(got.Contents) != 1 ||
			len(got.Prompts) != 1 || len(got.Messages) != 2 {
			t.Fatalf("%s: %+v", way.name, got)
		}
		fmt.Fprintf(&table, "| %s | `resources/list` | %d resources |\n| %s | `resources/templates/list` | %s |\n| %s | `resources/read pawl://doors/d001` | %s |\n", way.name, len(got.Resources),
			way.name, got.ResourceTemplates[0].URITemplate, way.name, got.Contents[0].Text)
		fmt.Fprintf(&table, "| %s | `prompts/list` | %s |\n| %s | `prompts/get ask` | %s |\n", way.name, got.Prompts[0].Name, way.name, got.Messages[0].Content.Text)
	}
	section(t, "inspector", table.String())
}
