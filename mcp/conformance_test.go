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
	"sync"
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

// table writes the verdicts: a table of the scenarios that fail, which are failing with their
// reasons, and the list of the others.
func table(t *testing.T, got map[string]verdict, failing map[string]string, whole bool) string {
	t.Helper()
	// numbers of checks would depend on how fast the machine is
	fails, passes := "| not passed | why |\n|---|---|\n", ""
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
		if v.failed == 0 && v.passed > 0 {
			passes += "`" + n + "`\n"
			ok++
		} else {
			fails += "| `" + n + "` | " + why + " |\n"
		}
	}
	for n := range failing {
		if _, ok := got[n]; !ok && whole {
			t.Errorf("%s is on the list and was not run", n)
		}
	}
	return fmt.Sprintf("%d of %d scenarios pass.\n\n%s\n%s", ok, len(names), fails, passes)
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
	logs := text("test_tool_with_logging", "Says what it does.")
	logs.Run = func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
		for _, s := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			pawl.InvocationFrom(ctx).Emit(s, nil)
		}
		return llm.TextResult("done"), nil
	}
	slow := text("test_reconnection", "Takes longer than a response.")
	slow.Run = func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		<-time.After(5 * polled)
		return llm.TextResult("done"), nil
	}
	form := func(name, schema string) *pawl.Tool {
		t := text(name, "Asks with a form of its own.")
		t.Run = func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
			a, err := mcp.Ask(ctx, "Fill it in", json.RawMessage(schema))
			return llm.TextResult(fmt.Sprintf("Elicitation completed: %t %v", a.Accept, a.Content)), err
		}
		return t
	}
	return &mcp.Service{Name: "pawl", Version: "1", Resources: resources(png), Prompts: prompts(), Tools: []pawl.Toolset{
		text("test_simple_text", "Says something.", llm.Text{Text: "This is a simple text response for testing."}),
		text("test_image_content", "Shows a picture.", llm.Media{MIME: "image/png", Data: png}),
		text("test_audio_content", "Plays a sound.", llm.Media{MIME: "audio/wav", Data: []byte("RIFF0000WAVE")}),
		text("test_embedded_resource", "Gives a file.", llm.Media{MIME: "text/plain", Data: []byte("This is an embedded resource")}),
		text("test_multiple_content_types", "Gives several.", llm.Text{Text: "Multiple content types test:"}, llm.Media{MIME: "image/png", Data: png}, llm.Media{MIME: "application/json", Data: []byte(`{"test":"data"}`)}),
		progress, fails, asks, schema, logs, slow,
		form("test_elicitation_sep1034_defaults", `{"type":"object","properties":{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},`+
			`"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}}`),
		form("test_elicitation_sep1330_enums", `{"type":"object","properties":{"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},`+
			`"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},`+
			`"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},`+
			`"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},`+
			`"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}}`),
	}}
}

// polled is the time after which responses end in the test of the suite.
const polled = 50 * time.Millisecond

// resources are the resources that the suite reads.
func resources(png []byte) []mcp.Resource {
	fixed := func(uri, kind string, data []byte) mcp.Resource {
		return mcp.Resource{URI: uri, Name: uri, MIME: kind, Read: func(context.Context, string) (llm.Media, error) {
			return llm.Media{MIME: kind, Data: data}, nil
		}}
	}
	watched := fixed("test://watched-resource", "text/plain", []byte("Watched."))
	watched.Version = func(context.Context, string) (string, error) { return "1", nil }
	of := mcp.Resource{URI: "test://template/{id}/data", Name: "data", MIME: "application/json",
		Read: func(_ context.Context, rest string) (llm.Media, error) {
			id := strings.TrimSuffix(rest, "/data")
			return llm.Media{MIME: "application/json", Data: fmt.Appendf(nil, `{"id":%q,"data":"Data for ID: %s"}`, id, id)}, nil
		}}
	return []mcp.Resource{fixed("test://static-text", "text/plain", []byte("This is the content of the static text resource.")),
		fixed("test://static-binary", "image/png", png), watched, of,
		fixed("test://example-resource", "text/plain", []byte("Embedded resource content for testing."))}
}

// prompts are the prompts that the suite gets.
func prompts() []mcp.Prompt {
	return []mcp.Prompt{
		{Name: "test_simple_prompt", Description: "Simple.", Text: "This is a simple prompt for testing."},
		{Name: "test_prompt_with_arguments", Description: "With arguments.", Text: "Prompt with arguments: arg1='{arg1}', arg2='{arg2}'",
			Arguments: []mcp.Argument{{Name: "arg1", Required: true, Values: []string{"testValue1", "other"}}, {Name: "arg2", Required: true}}},
		{Name: "test_prompt_with_embedded_resource", Description: "With a resource.", Text: "Please process the embedded resource below.",
			Arguments: []mcp.Argument{{Name: "resourceUri", Required: true}}, Resources: []string{"{resourceUri}"}},
		{Name: "test_prompt_with_image", Description: "With an image.", Text: "Please analyze the image below.", Resources: []string{"test://static-binary"}},
	}
}

// serverFails lists the scenarios that the server fails.
var serverFails = map[string]string{
	"tools-call-sampling": "does not use the client's model: agents have their own, and the protocol deprecates it",
}

func TestConformanceOfServer(t *testing.T) {
	t.Parallel()
	cmd := suite(t, "server")
	h, err := conforming().Handler(t.Context(), &mcp.HTTPOptions{Poll: polled})
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
	section(t, "conformance-server", table(t, verdicts(t, dir), serverFails, true))
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
	t.Parallel()
	list, err := suite(t, "list", "--client").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var scenarios sync.WaitGroup
	slots := make(chan struct{}, 3) // each waits for two processes
	for _, m := range regexp.MustCompile(`(?m)^\s+- ([\w/-]+) \[([\w.,-]+)\]`).FindAllStringSubmatch(string(list), -1) {
		if m[2] == "extension" || m[2] == "draft" || !soak.On() && !*update && !slices.Contains(some, m[1]) {
			continue
		}
		cmd := suite(t, "client", "--command", os.Args[0], "--scenario", m[1], "-o", dir, "--timeout", "20000")
		cmd.Env = append(os.Environ(), asServer+"=client")
		scenarios.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			out, _ := cmd.CombinedOutput()
			t.Logf("%s: %s", m[1], lastLine(string(out)))
		})
	}
	scenarios.Wait()
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
		if (strings.HasPrefix(line, "| `") || strings.HasPrefix(line, "`")) && !strings.Contains(string(b), line) {
			t.Errorf("docs/mcp.md has no line %s", line)
		}
	}
	if n := strings.Count(text, "\n`"); n != len(some) {
		t.Errorf("%d of %d scenarios pass:\n%s", n, len(some), text)
	}
}

func lastLine(s string) string {
	l := strings.Split(strings.TrimSpace(s), "\n")
	return l[len(l)-1]
}
