package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/script"
)

// suite returns a command of the official conformance suite, which needs a newer Node than
// Debian's.
func suite(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	node := packageOf(t, "node-"+runtime.GOOS+"-"+arch+"/bin/node")
	cmd := exec.CommandContext(t.Context(), node, append([]string{packageOf(t, "@modelcontextprotocol/conformance/dist/index.js")}, args...)...)
	cmd.WaitDelay = time.Second
	return cmd
}

// verdict is the suite's result for a scenario.
type verdict struct {
	passed, failed int
	why            []string
}

// verdicts reads the results that the suite wrote to dir.
func verdicts(t *testing.T, dir string) map[string]verdict {
	t.Helper()
	out := map[string]verdict{}
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "checks.json" {
			return err
		}
		name, err := filepath.Rel(dir, filepath.Dir(path))
		if err != nil {
			return err
		}
		name = regexp.MustCompile(`-\d{4}-\d\d-\d\dT.*$`).ReplaceAllString(filepath.ToSlash(name), "")
		name = strings.TrimPrefix(name, "server-")
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var checks []struct{ ID, Status, ErrorMessage string }
		if err := json.Unmarshal(b, &checks); err != nil {
			return err
		}
		v := verdict{}
		for _, c := range checks {
			switch c.Status {
			case "SUCCESS":
				v.passed++
			case "FAILURE":
				v.failed++
				v.why = append(v.why, c.ID+": "+c.ErrorMessage)
			}
		}
		out[name] = v
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// table writes the verdicts. failing are the scenarios that fail, each with its reason; the page
// must list them.
func table(t *testing.T, got map[string]verdict, failing map[string]string, whole bool) string {
	t.Helper()
	var b strings.Builder
	// numbers of checks would depend on how fast the machine is
	b.WriteString("| scenario | passes | |\n|---|---|---|\n")
	names := []string{}
	for n := range got {
		names = append(names, n)
	}
	slices.Sort(names)
	ok := 0
	for _, n := range names {
		v := got[n]
		why := failing[n]
		switch {
		case v.failed == 0 && v.passed == 0 && why == "":
			t.Errorf("%s: nothing was checked", n)
		case v.failed > 0 && why == "":
			t.Errorf("%s: %d failed: %s", n, v.failed, strings.Join(v.why, "; "))
		case v.failed == 0 && v.passed > 0 && why != "":
			t.Errorf("%s passes; take it off the list", n)
		}
		passes := "no"
		if v.failed == 0 && v.passed > 0 {
			passes = "yes"
			ok++
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", n, passes, why)
	}
	for n := range failing {
		if _, ok := got[n]; !ok && whole {
			t.Errorf("%s is on the list and was not run", n)
		}
	}
	return fmt.Sprintf("%d of %d scenarios pass.\n\n%s", ok, len(names), b.String())
}

// conforming returns a service with the tools that the suite calls.
func conforming() *mcp.Service {
	png := []byte("\x89PNG\r\n\x1a\n0000")
	text := func(name, description string, parts ...llm.Part) *pawl.Tool {
		return &pawl.Tool{Name: name, Description: description, Effect: pawl.EffectRead,
			Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
				return llm.ToolResult{Parts: parts}, nil
			}}
	}
	progress := text("test_tool_with_progress", "Tells how it gets on.")
	progress.Run = func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
		for i := range 3 {
			pawl.InvocationFrom(ctx).Emit(fmt.Sprint("step ", i), nil)
		}
		return llm.TextResult("done"), nil
	}
	fails := text("test_error_handling", "Fails.")
	fails.Run = func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		return llm.ToolResult{}, errors.New("This tool intentionally returns an error for testing")
	}
	asks := text("test_elicitation", "Is asked about.", llm.Text{Text: "User response: approved"})
	asks.Effect = pawl.EffectWrite
	asks.Input = json.RawMessage(`{"type":"object","properties":{"message":{"type":"string"}}}`)
	schema := text("json_schema_2020_12_tool", "Has a schema of 2020-12.", llm.Text{Text: "ok"})
	schema.Input = json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"address":{"type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},` +
		`"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"}},"additionalProperties":false}`)
	return &mcp.Service{Name: "pawl", Version: "1", Tools: []pawl.Toolset{
		text("test_simple_text", "Says something.", llm.Text{Text: "This is a simple text response for testing."}),
		text("test_image_content", "Shows a picture.", llm.Media{MIME: "image/png", Data: png}),
		text("test_audio_content", "Plays a sound.", llm.Media{MIME: "audio/wav", Data: []byte("RIFF0000WAVE")}),
		text("test_embedded_resource", "Gives a file.", llm.Media{MIME: "text/plain", Data: []byte("This is an embedded resource")}),
		text("test_multiple_content_types", "Gives several.", llm.Text{Text: "Multiple content types test:"}, llm.Media{MIME: "image/png", Data: png}, llm.Media{MIME: "application/json", Data: []byte(`{"test":"data"}`)}),
		progress, fails, asks, schema,
	}}
}

// notOffered lists the scenarios that the server fails because it offers tools only.
func notOffered() map[string]string {
	out := map[string]string{}
	for why, names := range map[string]string{
		"no resources":               "resources-read-text resources-read-binary resources-templates-read resources-subscribe resources-unsubscribe",
		"no prompts":                 "prompts-get-simple prompts-get-with-args prompts-get-embedded-resource prompts-get-with-image",
		"no completion of arguments": "completion-complete",
		"asks for approval, in one form of its own":    "elicitation-sep1034-defaults elicitation-sep1330-enums",
		"does not use the client's model (deprecated)": "tools-call-sampling",
		"sends no log (deprecated)":                    "tools-call-with-logging",
		"no replay of streams":                         "server-sse-polling",
	} {
		for _, n := range strings.Fields(names) {
			out[n] = why
		}
	}
	return out
}

func TestConformanceOfServer(t *testing.T) {
	cmd := suite(t, "server")
	h, err := conforming().Handler(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	dir := t.TempDir()
	cmd.Args = append(cmd.Args, "--url", web.URL+"/mcp", "--suite", "all", "-o", dir)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatalf("%v: %s", err, out)
	}
	section(t, "conformance-server", table(t, verdicts(t, dir), notOffered(), true))
}

// conformanceClient is the client that the suite starts: it lists the tools of the server and calls
// each.
func conformanceClient(url string) error {
	s := mcp.Server{Name: "suite", URL: url, StartSeconds: 20}
	o := &mcp.Options{Ask: func(context.Context, mcp.Question) (mcp.Answer, error) {
		return mcp.Answer{Accept: true, Content: map[string]any{}}, nil
	}}
	scenario := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	if strings.HasPrefix(scenario, "auth/") {
		// the suite's authorization servers use other ports of this machine
		s.Allow = []string{"localhost"}
		s.OAuth = &mcp.OAuth{Redirect: "http://localhost:3000/callback"}
		var given struct {
			ClientID string `json:"client_id"`
			Secret   string `json:"client_secret"`
		}
		if json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &given) == nil && given.ClientID != "" {
			s.OAuth.ClientID = given.ClientID
			if given.Secret != "" {
				s.OAuth.SecretEnv = "SUITE_SECRET"
				os.Setenv("SUITE_SECRET", given.Secret)
			}
		}
		if scenario == "auth/basic-cimd" {
			s.OAuth.ClientID = "https://conformance-test.local/client-metadata.json"
		}
		if !strings.Contains(scenario, "client-credentials") {
			o.Login = func(ctx context.Context, url string) (string, error) {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
				if err != nil {
					return "", err
				}
				c := http.Client{CheckRedirect: func(*http.Request,
					[]*http.Request) error {
					return http.ErrUseLastResponse
				}}
				res, err := c.Do(req)
				if err != nil {
					return "", err
				}
				res.Body.Close()
				return res.Header.Get("Location"), nil
			}
		}
	}
	c, err := mcp.New(s, o)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx := context.Background()
	tools, err := c.Tools(ctx)
	if err != nil {
		return err
	}
	turns := []script.Turn{}
	for _, tool := range tools {
		args := `{}`
		if strings.HasSuffix(tool.Name, "add_numbers") {
			args = `{"a":5,"b":3}`
		}
		turns = append(turns, script.Call(tool.Name, args))
	}
	_, err = (&pawl.Agent{Model: script.New(append(turns, script.Say("done"))...), Tools: []pawl.Toolset{c}}).Run(ctx,
		llm.User("go"))
	return err
}

// clientFails lists the scenarios that the client fails.
var clientFails = map[string]string{
	"auth/2025-03-26-oauth-metadata-backcompat": "the suite's server names another issuer than the one it was asked as, which RFC 8414 has a client refuse",
}

// some are the scenarios of the client that `make test` runs. Each starts Node, and the client as a
// process.
var some = []string{"initialize", "tools_call", "sse-retry", "auth/basic-cimd", "auth/scope-step-up"}

func TestConformanceOfClient(t *testing.T) {
	list, err := suite(t, "list", "--client").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, m := range regexp.MustCompile(`(?m)^\s+- ([\w/-]+) \[([\w.,-]+)\]`).FindAllStringSubmatch(string(list), -1) {
		if m[2] == "extension" || m[2] == "draft" || !soak.On() && !*update && !slices.Contains(some, m[1]) {
			continue
		}
		cmd := suite(t, "client", "--command", os.Args[0], "--scenario", m[1], "-o", dir, "--timeout", "20000")
		cmd.Env = append(os.Environ(), asServer+"=client")
		out, _ := cmd.CombinedOutput()
		t.Logf("%s: %s", m[1], lastLine(string(out)))
	}
	text := table(t, verdicts(t, dir), clientFails, soak.On() || *update)
	if soak.On() || *update {
		section(t, "conformance-client", text)
		return
	}
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "| `") && !strings.Contains(string(b), line) {
			t.Errorf("docs/mcp.md has no line %s", line)
		}
	}
	if n := strings.Count(text, "| yes |"); n != len(some) {
		t.Errorf("%d of %d scenarios pass:\n%s", n, len(some), text)
	}
}

func lastLine(s string) string {
	l := strings.Split(strings.TrimSpace(s), "\n")
	return l[len(l)-1]
}
