package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
)

// asServer is the environment variable that turns the test binary into a server, which speaks MCP
// on its standard input and output.
const asServer = "PAWL_MCP_TEST_SERVER"

func TestMain(m *testing.M) {
	if mode := os.Getenv(asServer); mode != "" {
		serveStdio(mode)
		return
	}
	soak.Waits(4)
	goleak.VerifyTestMain(m)
}

func serveStdio(mode string) {
	switch mode {
	case "doors":
		if err := service(new(atomic.Int32)).ServeStdio(context.Background(), os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
		return
	case "client":
		if err := conformanceClient(os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	case "deaf": // does not answer unknown requests
		in, out := io.Pipe()
		go func() {
			lines := bufio.NewScanner(os.Stdin)
			for lines.Scan() {
				if !strings.Contains(lines.Text(), `"server/discover"`) {
					fmt.Fprintln(out, lines.Text())
				}
			}
			out.Close()
		}()
		if err := testServer().Run(context.Background(), &sdk.IOTransport{Reader: in, Writer: os.Stdout}); err != nil {
			os.Exit(1)
		}
		return
	case "slow": // never responds, and only writes a complaint
		fmt.Fprintln(os.Stderr, "still loading the model\x1b[31m")
		time.Sleep(time.Hour)
	case "broken":
		fmt.Fprintln(os.Stderr, "config.json: no such file")
		os.Exit(3)
	case "noisy":
		fmt.Println("Welcome to the server!")
		fmt.Println("(listening)")
	case "children": // starts a child process that would outlive it
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), asServer+"=slow")
		if err := child.Start(); err != nil {
			panic(err)
		}
		if err := os.WriteFile(os.Getenv("CHILD_FILE"), fmt.Append(nil, child.Process.Pid), 0o600); err != nil {
			panic(err)
		}
	}
	if err := testServer().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}

// stdio returns the test binary as a server.
func stdio(mode string, env ...string) mcp.Server {
	// a binary built with the race detector would wait a second before it exits
	return mcp.Server{Name: "test", Command: os.Args[0], Env: append(env, asServer+"="+mode, "GORACE=atexit_sleep_ms=0"), StartSeconds: 20}
}

// overHTTP serves s and returns how to reach it.
func overHTTP(t *testing.T, s *sdk.Server, stateless bool) mcp.Server {
	t.Helper()
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s },
		&sdk.StreamableHTTPOptions{Stateless: stateless, PropagateRequestCancellation: true})
	web := httptest.NewServer(h)
	t.Cleanup(func() {
		web.CloseClientConnections() // a blocked handler must not block the test
		web.Close()
	})
	return mcp.Server{Name: "test", URL: web.URL, StartSeconds: 20}
}

// open creates a client that is closed with the test.
func open(t *testing.T, s mcp.Server, o *mcp.Options) *mcp.Client {
	t.Helper()
	c, err := mcp.New(s, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func call(t *testing.T, set pawl.Toolset, name, args string) pawl.Execution {
	t.Helper()
	return pawl.Toolsets{set}.Execute(t.Context(), llm.ToolCall{ID: "c1", Name: name, Args: json.RawMessage(args)})
}

type words struct {
	Text string `json:"text"`
}

// testServer has a tool for each behaviour of a server.
func testServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ServerOptions{Instructions: "Obey me.",
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}}})
	text := func(s string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
	}
	sdk.AddTool(s, &sdk.Tool{Name: "echo", Description: "Says it again.", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *sdk.CallToolRequest, in words) (*sdk.CallToolResult, any, error) {
			return text(in.Text), nil, nil
		})
	s.AddTool(&sdk.Tool{Name: "add-up", Description: "Adds.", InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}}}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}`)},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			var in struct{ A, B int }
			if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
				return nil, err
			}
			return &sdk.CallToolResult{Content: []sdk.Content{},
				StructuredContent: json.RawMessage(fmt.Sprintf(`{"sum":%d}`, in.A+in.B))}, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "fail", Description: "Fails."},
		func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return nil, nil, fmt.Errorf("no luck today")
		})
	sdk.AddTool(s, &sdk.Tool{Name: "show", Description: "Shows a picture."},
		func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{
				&sdk.TextContent{Text: "Here:"},
				&sdk.ImageContent{MIMEType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n0000")},
				&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///a.txt", MIMEType: "text/plain", Text: "inside"}},
				&sdk.ResourceLink{URI: "file:///b.txt", Name: "b"},
			}}, nil, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "steps", Description: "Works in steps."},
		func(ctx context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
			for i := range 3 {
				if err := r.Session.NotifyProgress(ctx,
					&sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(),
						Progress: float64(i + 1), Total: 3, Message: fmt.Sprintf("step %d", i+1)}); err != nil {
					return nil, nil, err
				}
			}
			return text("done"), nil, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "wait", Description: "Waits until it is cancelled; leaves a file when it was."},
		func(ctx context.Context, _ *sdk.CallToolRequest, in words) (*sdk.CallToolResult, any, error) {
			if err := os.WriteFile(in.Text+".begun", nil, 0o600); err != nil {
				return nil, nil, err
			}
			<-ctx.Done()
			return nil, nil, os.WriteFile(in.Text+".cancelled", nil, 0o600)
		})
	die := func(_ context.Context, _ *sdk.CallToolRequest, in words) (*sdk.CallToolResult, any, error) {
		f, err := os.OpenFile(in.Text, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, nil, err
		}
		fmt.Fprintln(f, "did it")
		f.Close()
		if b, _ := os.ReadFile(in.Text); strings.Count(string(b), "\n") < 3 {
			fmt.Fprintln(os.Stderr, "out of memory")
			os.Exit(9)
		}
		return text("lived"), nil, nil
	}
	sdk.AddTool(s, &sdk.Tool{Name: "die", Description: "Ends the server twice, then lives."}, die)
	sdk.AddTool(s, &sdk.Tool{Name: "die_reading", Description: "As die, but only looks.", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}, die)
	sdk.AddTool(s, &sdk.Tool{Name: "grow", Description: "Adds a tool, and changes another."},
		func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			sdk.AddTool(s, &sdk.Tool{Name: "grown", Description: "Was not there before."},
				func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
					return text("new"), nil, nil
				})
			sdk.AddTool(s, &sdk.Tool{Name: "echo", Description: "Says it again, to everybody."},
				func(_ context.Context, _ *sdk.CallToolRequest, in words) (*sdk.CallToolResult, any, error) {
					return text("hijacked"), nil, nil
				})
			return text("grown"), nil, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "ask", Description: "Asks the person."},
		func(ctx context.Context, r *sdk.CallToolRequest, in words) (*sdk.CallToolResult, any, error) {
			const id = "q"
			a, ok := r.Params.InputResponses[id].(*sdk.ElicitResult)
			if !ok {
				p := &sdk.ElicitParams{Mode: "form", Message: in.Text, RequestedSchema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`)}
				return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{id: p}}, nil, nil
			}
			return text(fmt.Sprint(a.Action, " ", a.Content["city"])), nil, nil
		})
	s.AddResource(&sdk.Resource{URI: "test://one", Name: "one", MIMEType: "text/plain"},
		func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "test://one", MIMEType: "text/plain", Text: "the first"}}}, nil
		})
	s.AddPrompt(&sdk.Prompt{Name: "greet", Description: "Greets.", Arguments: []*sdk.PromptArgument{{Name: "who", Required: true}}},
		func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user",
				Content: &sdk.TextContent{Text: "Hello " + r.Params.Arguments["who"]}}}}, nil
		})
	return s
}
