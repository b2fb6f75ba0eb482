package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/answertest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/script"
)

type doorArgs struct {
	Name string `json:"name"`
}

// service offers a tool that reads, a tool that writes, a tool that works in steps and waits, and
// an agent that uses the writing tool.
func service(opened *atomic.Int32) *mcp.Service {
	look := pawl.Func("look", "Looks at a door.", func(_ context.Context, a doorArgs) (map[string]any, error) {
		return map[string]any{"door": a.Name, "open": opened.Load() > 0}, nil
	})
	look.Effect = pawl.EffectRead
	unlock := pawl.Func("unlock", "Opens a door.", func(_ context.Context, a doorArgs) (string, error) {
		opened.Add(1)
		return "opened " + a.Name, nil
	})
	work := pawl.Func("work", "Works, and waits.", func(ctx context.Context, a doorArgs) (string, error) {
		pawl.InvocationFrom(ctx).Emit("half done", nil)
		if a.Name == "forever" {
			<-ctx.Done()
			return "", ctx.Err()
		}
		return "done", nil
	})
	work.Effect = pawl.EffectRead
	crash := pawl.Func("crash", "Panics.", func(context.Context, struct{}) (string, error) { panic("at the wall") })
	crash.Effect = pawl.EffectRead
	clerk := &pawl.Agent{Name: "clerk", Tools: []pawl.Toolset{unlock, look}, Model: script.New(script.Call("unlock", `{"name":"front"}`),
		script.Func(func(r *llm.Request) script.Turn { return script.Say("I was told: " + script.Results(r)[0].Text()) }))}
	return &mcp.Service{Name: "doors", Version: "1", Tools: []pawl.Toolset{look, unlock, work, crash},
		Agents:    []mcp.Offer{{Agent: clerk, Title: "The clerk", Description: "Opens doors."}},
		Resources: []mcp.Resource{doors(opened)},
		Prompts: []mcp.Prompt{{Name: "ask", Text: "Is the door {name} {name2}? {other}", Resources: []string{"pawl://doors/{name}"},
			Arguments: []mcp.Argument{{Name: "name", Required: true, Values: []string{"front", "back", "foot"}}, {Name: "name2"}}},
			{Name: "ask", Text: "the second of a name"}}}
}

// doors are the doors d000 to d149 as resources. The door front/left is not listed.
func doors(opened *atomic.Int32) mcp.Resource {
	version := func(_ context.Context, name string) (string, error) {
		if name != "front/left" && !strings.HasPrefix(name, "d") {
			return "", pawl.ErrNotFound
		}
		return strconv.Itoa(int(opened.Load())), nil
	}
	return mcp.Resource{URI: "pawl://doors/{name}", Name: "door", MIME: "text/plain", Version: version,
		Read: func(ctx context.Context, name string) (llm.Media, error) {
			n, err := version(ctx, name)
			return llm.Media{MIME: "text/plain", Data: []byte(name + " was opened " + n + " times")}, err
		},
		Values: func(context.Context, string) (all []string, err error) {
			for i := range 150 {
				all = append(all, fmt.Sprintf("d%03d", i))
			}
			return all, nil
		}}
}

// clients connects to the service over each transport and in each protocol version.
func clients(t *testing.T, o *sdk.ClientOptions, test func(t *testing.T, c *sdk.ClientSession, opened *atomic.Int32)) {
	for _, version := range sdk.SupportedProtocolVersions() {
		for _, how := range []string{"stdio", "http"} {
			t.Run(how+" "+version, func(t *testing.T) {
				c, opened := connected(t, how, version, o)
				test(t, c, opened)
			})
		}
	}
}

// connected connects a client to a service over a transport, in a protocol version.
func connected(t *testing.T, how, version string, o *sdk.ClientOptions) (c *sdk.ClientSession, opened *atomic.Int32) {
	t.Helper()
	opened = new(atomic.Int32)
	s := service(opened)
	var transport sdk.Transport
	if how == "stdio" {
		in, toServer := io.Pipe()
		fromServer, out := io.Pipe()
		done := make(chan error, 1)
		go func() { done <- s.ServeStdio(context.Background(), in, out) }()
		t.Cleanup(func() {
			toServer.Close()
			if err := <-done; err != nil {
				t.Errorf("served: %v", err)
			}
		})
		transport = &sdk.IOTransport{Reader: fromServer, Writer: toServer}
	} else {
		h, err := s.Handler(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		web := httptest.NewServer(h)
		t.Cleanup(web.Close)
		transport = &sdk.StreamableClientTransport{Endpoint: web.URL, HTTPClient: web.Client()}
	}
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(),
		transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if got := c.InitializeResult().ProtocolVersion; got != version {
		t.Fatalf("the protocol is %s, want %s", got, version)
	}
	return c, opened
}

func ask(t *testing.T, c *sdk.ClientSession, name string, args any) (string, *sdk.CallToolResult) {
	t.Helper()
	res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	text := ""
	for _, x := range res.Content {
		if x, ok := x.(*sdk.TextContent); ok {
			text += x.Text
		}
	}
	return text, res
}

func TestService(t *testing.T) {
	clients(t, nil, func(t *testing.T, c *sdk.ClientSession, opened *atomic.Int32) {
		list, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, tool := range list.Tools {
			name := tool.Name
			if tool.Annotations.ReadOnlyHint {
				name += " read-only"
			}
			got = append(got, name)
		}
		if d := cmp.Diff([]string{"clerk", "crash read-only", "look read-only", "unlock", "work read-only"}, got); d != "" {
			t.Error(d)
		}
		text, res := ask(t, c, "look", map[string]any{"name": "front"})
		data, _ := json.Marshal(res.StructuredContent)
		if want := `{"door":"front","open":false}`; res.IsError || text != want || string(data) != want {
			t.Errorf("look: %q, structured %s", text, data)
		}
		for _, test := range []struct {
			name string
			args any
			want string
		}{
			{"look", map[string]any{"nme": 1}, "The arguments of look do not fit its schema"},
			{"crash", map[string]any{}, "The tool failed unexpectedly and gave no result."},
			{"unlock", map[string]any{"name": "front"}, "this client cannot ask"},
			{"clerk", map[string]any{"task": "open"}, "this client cannot ask"},
			{"clerk", map[string]any{"task": " "}, "need a task"},
		} {
			if text, res := ask(t, c, test.name, test.args); !res.IsError || !strings.Contains(text, test.want) {
				t.Errorf("%s %v: %v %q, want %q", test.name, test.args, res.IsError, text, test.want)
			}
		}
		if opened.Load() != 0 {
			t.Error("a door was opened without anybody's yes")
		}
		if _, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "nothing"}); err == nil {
			t.Error("a tool that is not there is called")
		}
	})
}

func TestServiceAsks(t *testing.T) {
	for _, answer := range []struct {
		name string
		res  *sdk.ElicitResult
		yes  bool
	}{
		{"yes", &sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, true},
		{"a form that says no", &sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": false}}, false},
		{"no", &sdk.ElicitResult{Action: "decline"}, false},
		{"nothing", &sdk.ElicitResult{Action: "cancel"}, false},
	} {
		t.Run(answer.name, func(t *testing.T) {
			var asked atomic.Value
			o := &sdk.ClientOptions{ElicitationHandler: func(_ context.Context,
				r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				asked.Store(r.Params.Message)
				return answer.res, nil
			}}
			clients(t, o, func(t *testing.T, c *sdk.ClientSession, opened *atomic.Int32) {
				if v := c.InitializeResult().ProtocolVersion; v < "2025-06-18" {
					t.Logf("elicitation is not in %s", v) // the SDK offers it nevertheless
				}
				text, res := ask(t, c, "unlock", map[string]any{"name": "front"})
				if want := `May unlock run with {"name":"front"}? (it may change the world)`; asked.Load() != want {
					t.Errorf("asked %q, want %q", asked.Load(), want)
				}
				if (opened.Load() == 1) != answer.yes || res.IsError == answer.yes {
					t.Errorf("opened %d times, %q", opened.Load(), text)
				}
				text, _ = ask(t, c, "clerk", map[string]any{"task": "open the front door"})
				want := "I was told: opened front"
				if !answer.yes {
					want = "I was told: Denied"
				}
				if !strings.HasPrefix(text, want) {
					t.Errorf("clerk: %q, want %q", text, want)
				}
			})
		})
	}
}

func TestServiceProgressAndCancel(t *testing.T) {
	words := make(chan string, 100)
	o := &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context,
		r *sdk.ProgressNotificationClientRequest) {
		words <- r.Params.Message
	}}
	clients(t, o, func(t *testing.T, c *sdk.ClientSession, _ *atomic.Int32) {
		p := &sdk.CallToolParams{Meta: sdk.Meta{}, Name: "work", Arguments: map[string]any{"name": "forever"}}
		p.SetProgressToken("t")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { _, err := c.CallTool(ctx, p); done <- err }()
		for _, want := range []string{"calls work", "half done"} {
			if got := <-words; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		cancel()
		if err := <-done; err == nil {
			t.Error("a call that was cancelled has a result")
		}
		if text, _ := ask(t, c, "work", map[string]any{"name": "short"}); text != "done" {
			t.Errorf("afterwards: %q", text)
		}
	})
}

// An approval covers one call and one attempt.
func TestServiceBindsAnswers(t *testing.T) {
	opened := new(atomic.Int32)
	h, err := service(opened).Handler(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"},
		&sdk.ClientOptions{MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
			ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				return nil, nil
			}}).
		Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: web.URL, HTTPClient: web.Client()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	call := func(door, state string, in sdk.InputResponseMap) (*sdk.CallToolResult, string) {
		res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "unlock",
			Arguments: map[string]any{"name": door}, RequestState: state, InputResponses: in})
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		if len(res.Content) > 0 {
			text = res.Content[0].(*sdk.TextContent).Text
		}
		return res, text
	}
	first, _ := call("front", "", nil)
	if !first.NeedsInput() || len(first.InputRequests) != 1 {
		t.Fatalf("it does not ask: %+v", first)
	}
	yes := sdk.InputResponseMap{}
	for k := range first.InputRequests {
		yes[k] = &sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}
	}
	for _, test := range []struct{ name, door, state string }{
		{"for another door", "back", first.RequestState},
		{"invented", "front", "invented"},
	} {
		if _, text := call(test.door, test.state, yes); !strings.Contains(text, "not open any more") || opened.Load() != 0 {
			t.Errorf("%s: %q, opened %d", test.name, text, opened.Load())
		}
	}
	if res, text := call("front", first.RequestState, yes); res.IsError || opened.Load() != 1 {
		t.Errorf("the right one: %q, opened %d", text, opened.Load())
	}
	if _, text := call("front", first.RequestState, yes); !strings.Contains(text, "not open any more") || opened.Load() != 1 {
		t.Errorf("a second time: %q, opened %d", text, opened.Load())
	}
}

func TestServiceGate(t *testing.T) {
	h, err := service(new(atomic.Int32)).Handler(t.Context(),
		&mcp.HTTPOptions{Token: "s3cret", Hosts: []string{"tools.example.com"}, Origins: []string{"https://app.example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	for _, test := range []struct {
		name, host, origin, auth string
		body                     string
		want                     int
	}{
		{"this machine", "localhost:1234", "", "Bearer s3cret", body, 200},
		{"its address", "[::1]:1234", "http://[::1]:1234", "Bearer s3cret", body, 200},
		{"a page of another port", "127.0.0.1:1234", "http://127.0.0.1:5173", "Bearer s3cret", body, 403},
		{"a host that is named", "tools.example.com", "https://app.example.com", "bearer s3cret", body, 200},
		{"a name that was pointed here", "evil.example.com", "", "Bearer s3cret", body, 403},
		{"a page from elsewhere", "localhost", "https://evil.example.com", "Bearer s3cret", body, 403},
		{"a page without an origin", "localhost", "null", "Bearer s3cret", body, 403},
		{"no token", "localhost", "", "", body, 401},
		{"another token", "localhost", "", "Bearer s3cret2", body, 401},
		{"too long", "localhost", "", "Bearer s3cret", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"x":"` + strings.Repeat("x", 5<<20) + `"}}`, 413},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+test.host+"/", strings.NewReader(test.body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if test.origin != "" {
			r.Header.Set("Origin", test.origin)
		}
		if test.auth != "" {
			r.Header.Set("Authorization", test.auth)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != test.want {
			t.Errorf("%s: got %d %s, want %d", test.name, w.Code, w.Body, test.want)
		}
	}
}

// A Client can use a Service.
func TestServiceThroughClient(t *testing.T) {
	h, err := service(new(atomic.Int32)).Handler(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	c := open(t, mcp.Server{Name: "doors", URL: web.URL},
		&mcp.Options{Ask: func(_ context.Context, q mcp.Question) (mcp.Answer, error) {
			return mcp.Answer{Accept: q.Call == "doors_unlock", Content: map[string]any{"approve": true}}, nil
		}})
	if x := call(t, c, "doors_unlock", `{"name":"front"}`); x.Result.Text() != "opened front" {
		t.Errorf("%s %q", x.Outcome, x.Result.Text())
	}
	c.Close()
}

// A client of an older protocol keeps its session until there are 256 others and it has been idle
// longest. A session in use stays.
func TestSessionsAreBounded(t *testing.T) {
	h, err := service(new(atomic.Int32)).Handler(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	defer web.Close()
	post := func(session, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		res, err := web.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		return res
	}
	begin := func() string {
		t.Helper()
		res := post("", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
		id := res.Header.Get("Mcp-Session-Id")
		if id == "" {
			t.Fatalf("no session: %s", res.Status)
		}
		post(id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		return id
	}
	ping := func(id string) int { return post(id, `{"jsonrpc":"2.0","id":2,"method":"ping"}`).StatusCode }
	var ids []string
	for range 256 {
		ids = append(ids, begin())
	}
	if got := ping(ids[0]); got != http.StatusOK {
		t.Errorf("the first of 256 is gone: %d", got)
	}
	last := begin()
	if got := []int{ping(ids[0]), ping(ids[1]), ping(ids[2]), ping(last)}; !cmp.Equal(got, []int{200, 404, 200, 200}) {
		t.Errorf("used, idle longest, next, new: %v", got)
	}
}

// clientOf returns a client of a server that offers an agent.
func clientOf(t *testing.T, a *pawl.Agent) *sdk.ClientSession {
	t.Helper()
	s := &mcp.Service{Name: "agents", Version: "1",
		Agents: []mcp.Offer{{Agent: a, Title: "The agent", Description: "Works."}}}
	h, err := s.Handler(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	transport := &sdk.StreamableClientTransport{Endpoint: web.URL, HTTPClient: web.Client()}
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// A number of rounds means the same for a client: without rounds, the result has the calls.
func TestRounds(t *testing.T) {
	answertest.PlayRounds(t, "MCP", func(t *testing.T, l *answertest.Looker, _ int) string {
		text, _ := ask(t, clientOf(t, l.Agent), "looker", map[string]any{"task": "go"})
		return text
	})
}

// An agent that is a tool of a client has the answer that its own tool gave.
func TestAnswerOfATool(t *testing.T) {
	c := clientOf(t, answertest.Writer())
	answertest.PlayReport(t, "MCP", func(t *testing.T, task string) string {
		text, _ := ask(t, c, "writer", map[string]any{"task": task})
		return text
	})
}

// A caller of an agent over MCP finds why its answer does not fit with errors.As.
func TestUnfitAnswerOverMCP(t *testing.T) {
	counter := &pawl.Agent{Name: "counter", Model: script.New(script.Loop(script.Say(`{"n":"many"}`))),
		Limits: pawl.Limits{Corrections: -1},
		Output: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)}
	h, err := (&mcp.Service{Agents: []mcp.Offer{{Agent: counter, Description: "Counts."}}}).Handler(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	c := open(t, mcp.Server{Name: "far", URL: web.URL}, nil)
	x := call(t, c, "far_counter", `{"task":"go"}`)

	var unfit *pawl.OutputError
	if !errors.As(x.Err(), &unfit) || unfit.Text != `{"n":"many"}` || len(unfit.Faults) != 1 {
		t.Errorf("%s, %v, %+v; the model reads %q", x.Outcome, x.Err(), unfit, x.Result.Text())
	}
	if !x.Result.IsError || !strings.Contains(x.Result.Text(), "does not fit") {
		t.Errorf("the model reads %q", x.Result.Text())
	}
}

// away is a Runner that first waits for a provider, as a run of a server does.
type away struct{ pawl.Runner }

func (a away) Stream(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		notice := pawl.Event{Kind: pawl.EventNotice, Run: "run", Code: "outage", Text: "waiting for openai"}
		if yield(notice, nil) {
			a.Runner.Stream(ctx, msgs...)(yield)
		}
	}
}

// A run that waits for the provider of its model is progress, by which clients extend their time.
func TestServiceTellsOfAnOutage(t *testing.T) {
	clerk := &pawl.Agent{Name: "clerk", Model: script.New(script.Loop(script.Say("done")))}
	s := &mcp.Service{Agents: []mcp.Offer{{
		Agent:       clerk,
		Description: "Works.",
		Runner:      func(string) pawl.Runner { return away{clerk} },
	}}}
	h, err := s.Handler(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)

	words := make(chan string, 10)
	o := &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context,
		r *sdk.ProgressNotificationClientRequest) {
		words <- r.Params.Message
	}}
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: web.URL, HTTPClient: web.Client()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })

	p := &sdk.CallToolParams{Meta: sdk.Meta{}, Name: "clerk", Arguments: map[string]any{"task": "work"}}
	p.SetProgressToken("t")
	res, err := c.CallTool(t.Context(), p)
	if err != nil || res.IsError {
		t.Fatalf("%+v, %v", res, err)
	}
	if got := <-words; got != "waiting for openai" {
		t.Errorf("the progress is %q", got)
	}
}
