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

// The inspector's command line lists and calls the offered tools, over standard input and output
// and over HTTP.
func TestInspector(t *testing.T) {
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
	}
	section(t, "inspector", table.String())
}
