package mcp_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/parts"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/script"
)

// packageOf returns a file of an npm package that make test installs.
func packageOf(t *testing.T, path string) string {
	t.Helper()
	parts.Packages(t, "testdata/npm", path)
	file, err := filepath.Abs(filepath.Join("testdata/npm/node_modules", path))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// everything returns the reference server that uses every feature.
func everything(t *testing.T, how string) mcp.Server {
	file := packageOf(t, "@modelcontextprotocol/server-everything/dist/index.js")
	if how == "stdio" {
		return mcp.Server{Name: "every", Command: "node", Args: []string{file}, Resources: true, Prompts: true}
	}
	port, err := parts.Port()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", file, how)
	cmd.Env = append(os.Environ(), "PORT="+port)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	path := "/mcp"
	if how == "sse" {
		path = "/sse"
	}
	s := mcp.Server{Name: "every", URL: "http://127.0.0.1:" + port + path, Resources: true, Prompts: true}
	if how == "sse" {
		s.Transport = "sse"
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for over := time.After(3 * time.Minute); ; {
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			c.Close()
			return s
		}
		select {
		case <-tick.C:
		case <-over:
			t.Fatal("the server does not listen")
		}
	}
}

// step is a call and the text that its result must contain.
type step struct{ tool, args, want string }

// everyTool makes the calls. It fails if a tool of the server is called by none of them.
func everyTool(t *testing.T, c *mcp.Client, prefix string, steps []step) {
	t.Helper()
	tools, err := c.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	called := map[string]bool{}
	for _, s := range steps {
		called[prefix+s.tool] = true
		x := call(t, c, prefix+s.tool, s.args)
		text := x.Result.Text() + string(x.Result.Data)
		for _, p := range x.Result.Parts {
			if m, ok := p.(llm.Media); ok {
				text += fmt.Sprintf("<%s %d>", m.MIME, len(m.Data))
			}
		}
		if !strings.Contains(text, s.want) || strings.HasPrefix(s.want, "!") {
			if strings.HasPrefix(s.want, "!") && x.Outcome == pawl.OutcomeError && strings.Contains(text, s.want[1:]) {
				continue
			}
			t.Errorf("%s %s: %s %q, want %q", s.tool, s.args, x.Outcome, text, s.want)
		}
	}
	for _, tool := range tools {
		if !called[tool.Name] {
			t.Errorf("%s was never called", tool.Name)
		}
	}
	t.Logf("%d tools, %d calls", len(tools), len(steps))
}

func TestEverything(t *testing.T) {
	for _, how := range []string{"stdio", "streamableHttp", "sse"} {
		t.Run(how, func(t *testing.T) {
			s := everything(t, how)
			c := open(t, s, &mcp.Options{
				Ask: func(_ context.Context, q mcp.Question) (mcp.Answer, error) {
					return mcp.Answer{Accept: true, Content: map[string]any{"name": "Ada", "check": true}}, nil
				},
				Sample: &mcp.Sampling{Model: script.New(script.Say("lent words")),
					Approve: func(context.Context, mcp.SampleRequest) error { return nil }},
			})
			everyTool(t, c, "every_", []step{
				{"echo", `{"message":"hi"}`, "Echo: hi"},
				{"get-annotated-message", `{"messageType":"error","includeImage":true}`, "<image/png "},
				{"get-env", `{}`, `"PATH"`},
				{"get-resource-links", `{"count":2}`, "a link to the resource demo://"},
				{"get-resource-reference", `{"resourceType":"Text","resourceId":1}`, "[resource demo://"},
				{"get-structured-content", `{"location":"Chicago"}`, `"temperature":`},
				{"get-sum", `{"a":2,"b":40}`, "42"},
				{"get-tiny-image", `{}`, "<image/png "},
				{"gzip-file-as-resource", `{"name":"a.gz","data":"data:text/plain;base64,aGVsbG8=","outputType":"resource"}`, "[resource "},
				{"toggle-simulated-logging", `{}`, "Started simulated"},
				{"toggle-simulated-logging", `{}`, "Stopped simulated"},
				{"toggle-subscriber-updates", `{}`, "Started simulated"},
				{"toggle-subscriber-updates", `{}`, "Stopped simulated"},
				{"trigger-long-running-operation", `{"duration":0.2,"steps":2}`, "Duration: 0.2 seconds, Steps: 2"},
				{"simulate-research-query", `{"topic":"pawls"}`, ""},
				{"trigger-elicitation-request", `{}`, "Ada"},
				{"trigger-sampling-request", `{"prompt":"say it"}`, "lent words"},
				{"trigger-url-elicitation", `{"url":"https://example.com/ok"}`, "accept"},
				{"list_resources", `{}`, "demo://"},
				{"read_resource", `{"uri":"demo://resource/static/document/features.md"}`, "# "},
				{"list_prompts", `{}`, "simple-prompt"},
				{"read_prompt", `{"name":"args-prompt","arguments":{"city":"Oslo"}}`, "Oslo"},
			})
		})
	}
}

func TestEverythingProgressAndCancel(t *testing.T) {
	for _, how := range []string{"stdio", "streamableHttp"} {
		t.Run(how, func(t *testing.T) {
			c := open(t, everything(t, how), nil)
			model := script.New(script.Call("every_trigger-long-running-operation", `{"duration":0.3,"steps":3}`), script.Say("ok"))
			words := 0
			for e, err := range (&pawl.Agent{Model: model, Tools: []pawl.Toolset{c}}).Stream(t.Context(), llm.User("go")) {
				if err != nil {
					t.Fatal(err)
				}
				if e.Kind == pawl.EventProgress {
					words++
				}
			}
			if words != 3 {
				t.Errorf("%d words of progress, want 3", words)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			model = script.New(script.Call("every_trigger-long-running-operation", `{"duration":60,"steps":600}`))
			var last *pawl.Result
			began := time.Now()
			for e := range (&pawl.Agent{Model: model, Tools: []pawl.Toolset{c}}).Stream(ctx, llm.User("go")) {
				if e.Kind == pawl.EventProgress {
					cancel(pawl.ErrCancelled)
				}
				if e.Kind == pawl.EventRunEnded {
					last = e.Result
				}
			}
			if last == nil || last.Stop != pawl.StopCancelled || time.Since(began) > 20*time.Second {
				t.Errorf("after %v: %+v", time.Since(began), last)
			}
			if x := call(t, c, "every_echo", `{"message":"still here"}`); x.Outcome != pawl.OutcomeOK {
				t.Errorf("afterwards: %s %q", x.Outcome, x.Result.Text())
			}
		})
	}
}

// A server over HTTP dies during a call, and another takes its place.
func TestEverythingKilled(t *testing.T) {
	s := everything(t, "streamableHttp")
	proxy := newProxy(t, s.URL)
	s.URL = proxy.url
	c := open(t, s, nil)
	if x := call(t, c, "every_echo", `{"message":"a"}`); x.Outcome != pawl.OutcomeOK {
		t.Fatalf("%s %q", x.Outcome, x.Result.Text())
	}
	proxy.cut()
	x := call(t, c, "every_toggle-simulated-logging", `{}`)
	if x.Outcome != pawl.OutcomeError || !strings.Contains(x.Result.Text(), "may have happened") {
		t.Errorf("a call whose reply was lost: %s %q", x.Outcome, x.Result.Text())
	}
	proxy.mend()
	if x := call(t, c, "every_echo", `{"message":"b"}`); x.Outcome != pawl.OutcomeOK {
		t.Errorf("afterwards: %s %q", x.Outcome, x.Result.Text())
	}
}

// lossy forwards requests and, while cut is set, drops the replies to new ones.
type lossy struct {
	url string
	mu  sync.Mutex
	off bool
}

func newProxy(t *testing.T, to string) *lossy {
	p := &lossy{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		off := p.off
		p.mu.Unlock()
		req, _ := http.NewRequestWithContext(r.Context(), r.Method, to, r.Body)
		req.Header = r.Header.Clone()
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil || off {
			if res != nil {
				res.Body.Close()
			}
			panic(http.ErrAbortHandler)
		}
		defer res.Body.Close()
		for k, v := range res.Header {
			w.Header()[k] = v
		}
		w.WriteHeader(res.StatusCode)
		w.(http.Flusher).Flush()
		buf := make([]byte, 4096)
		for {
			n, err := res.Body.Read(buf)
			w.Write(buf[:n])
			w.(http.Flusher).Flush()
			if err != nil {
				return
			}
		}
	})}
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close(); http.DefaultTransport.(*http.Transport).CloseIdleConnections() })
	p.url = "http://" + l.Addr().String() + "/mcp"
	return p
}

func (p *lossy) cut()  { p.mu.Lock(); p.off = true; p.mu.Unlock() }
func (p *lossy) mend() { p.mu.Lock(); p.off = false; p.mu.Unlock() }

func TestFilesystem(t *testing.T) {
	file := packageOf(t, "@modelcontextprotocol/server-filesystem/dist/index.js")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := open(t, mcp.Server{Name: "fs", Command: "node", Args: []string{file, dir}, Trust: true}, nil)
	at := func(name string) string { return strconv.Quote(filepath.Join(dir, name)) }
	if err := os.WriteFile(filepath.Join(dir, "p.png"), []byte("\x89PNG\r\n\x1a\n0000"), 0o600); err != nil {
		t.Fatal(err)
	}
	everyTool(t, c, "fs_", []step{
		{"write_file", `{"path":` + at("a.txt") + `,"content":"one\ntwo\n"}`, "Successfully wrote"},
		{"read_file", `{"path":` + at("a.txt") + `}`, "one\ntwo"},
		{"read_text_file", `{"path":` + at("a.txt") + `,"head":1}`, "one"},
		{"read_media_file", `{"path":` + at("p.png") + `}`, "image/png"},
		{"read_multiple_files", `{"paths":[` + at("a.txt") + `]}`, "two"},
		{"edit_file", `{"path":` + at("a.txt") + `,"edits":[{"oldText":"two","newText":"2"}]}`, "+2"},
		{"create_directory", `{"path":` + at("d") + `}`, "Successfully created"},
		{"list_directory", `{"path":` + at("") + `}`, "[FILE] a.txt"},
		{"list_directory_with_sizes", `{"path":` + at("") + `}`, "a.txt"},
		{"directory_tree", `{"path":` + at("") + `}`, `"name": "a.txt"`},
		{"move_file", `{"source":` + at("a.txt") + `,"destination":` + at("d/b.txt") + `}`, "Successfully moved"},
		{"search_files", `{"path":` + at("") + `,"pattern":"**/*.txt"}`, "b.txt"},
		{"get_file_info", `{"path":` + at("d/b.txt") + `}`, "size: 6"},
		{"list_allowed_directories", `{}`, dir},
		{"read_file", `{"path":"/etc/passwd"}`, "!Access denied"},
	})
	b, err := os.ReadFile(filepath.Join(dir, "d/b.txt"))
	if string(b) != "one\n2\n" {
		t.Errorf("the file has %q, %v", b, err)
	}
	tools, err := c.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	effect := func(name string) pawl.Effect {
		return tools[slices.IndexFunc(tools, func(x *pawl.Tool) bool { return x.Name == name })].Effect
	}
	if effect("fs_read_file") != pawl.EffectRead || effect("fs_write_file") != pawl.EffectIdempotent || effect("fs_edit_file") != pawl.EffectWrite {
		t.Errorf("effects: %v %v %v", effect("fs_read_file"), effect("fs_write_file"), effect("fs_edit_file"))
	}
}

func TestMemory(t *testing.T) {
	file := packageOf(t, "@modelcontextprotocol/server-memory/dist/index.js")
	s := mcp.Server{Name: "memory", Command: "node", Args: []string{file}, Env: []string{"MEMORY_FILE_PATH=" + filepath.Join(t.TempDir(), "m.jsonl")}}
	everyTool(t, open(t, s, nil), "memory_", []step{
		{"create_entities", `{"entities":[{"name":"pawl","entityType":"part","observations":["turns one way"]},{"name":"ratchet","entityType":"part","observations":[]}]}`, `"pawl"`},
		{"create_relations", `{"relations":[{"from":"pawl","to":"ratchet","relationType":"holds"}]}`, `"holds"`},
		{"add_observations", `{"observations":[{"entityName":"pawl","contents":["is small"]}]}`, "is small"},
		{"search_nodes", `{"query":"small"}`, `"pawl"`},
		{"open_nodes", `{"names":["ratchet"]}`, `"ratchet"`},
		{"read_graph", `{}`, `"relations"`},
		{"delete_observations", `{"deletions":[{"entityName":"pawl","observations":["is small"]}]}`, "deleted"},
		{"delete_relations", `{"relations":[{"from":"pawl","to":"ratchet","relationType":"holds"}]}`, "deleted"},
		{"delete_entities", `{"entityNames":["pawl","ratchet"]}`, "deleted"},
		{"read_graph", `{}`, `"entities":[]`},
	})
}
