package mcp_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/script"
)

// each runs a test against the same server over every transport: a process, HTTP with a session
// (protocols up to 2025-11-25), and HTTP without one (2026-07-28).
func each(t *testing.T, test func(t *testing.T, s mcp.Server)) {
	t.Run("stdio", func(t *testing.T) { test(t, stdio("normal")) })
	t.Run("http", func(t *testing.T) { test(t, overHTTP(t, testServer(), false)) })
	t.Run("http stateless", func(t *testing.T) { test(t, overHTTP(t, testServer(), true)) })
}

func TestTools(t *testing.T) {
	each(t, func(t *testing.T, s mcp.Server) {
		s.Trust, s.Exclude = true, []string{"die*", "w?it"}
		s.Concurrent = s.URL != "" // the process is the control
		c := open(t, s, nil)
		tools, err := c.Tools(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, tool := range tools {
			if tool.Concurrent != s.Concurrent {
				t.Errorf("%s has Concurrent %v", tool.Name, tool.Concurrent)
			}
			got = append(got, tool.Name+" "+tool.Effect.String())
		}
		want := []string{"test_add-up unstated", "test_ask unstated", "test_echo read", "test_fail unstated", "test_grow unstated",
			"test_show unstated", "test_steps unstated"}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		again, err := c.Tools(t.Context())
		if err != nil || again[0] != tools[0] {
			t.Errorf("the second list has other tools, %v", err)
		}
	})
}

func TestCalls(t *testing.T) {
	each(t, func(t *testing.T, s mcp.Server) {
		c := open(t, s, nil)
		tests := []struct {
			name, args string
			outcome    pawl.Outcome
			text, data string
		}{
			{"test_echo", `{"text":"hi\u001b[31m there"}`, pawl.OutcomeOK, "hi[31m there", ""},
			{"test_add-up", `{"a":9007199254740993,"b":0}`, pawl.OutcomeOK, `{"sum":9007199254740993}`, `{"sum":9007199254740993}`},
			{"test_fail", `{}`, pawl.OutcomeError, "no luck today", ""},
			{"test_echo", `{"txt":1}`, pawl.OutcomeInvalid, "", ""},
			{"test_show", `{}`, pawl.OutcomeOK, "Here:\n[resource file:///a.txt, text/plain]\ninside\n[a link to the resource file:///b.txt: b]", ""},
		}
		for _, test := range tests {
			x := call(t, c, test.name, test.args)
			if x.Outcome != test.outcome || test.text != "" && x.Result.Text() != test.text ||
				string(x.Result.Data) != test.data {
				t.Errorf("%s %s: got %s, %q, data %s; want %s, %q, data %s", test.name, test.args, x.Outcome,
					x.Result.Text(), x.Result.Data, test.outcome, test.text, test.data)
			}
		}
		pictures := 0
		for _, p := range call(t, c, "test_show", `{}`).Result.Parts {
			if m, ok := p.(llm.Media); ok && m.MIME == "image/png" {
				pictures++
			}
		}
		if pictures != 1 {
			t.Errorf("got %d pictures, want 1", pictures)
		}
	})
}

func TestProgress(t *testing.T) {
	each(t, func(t *testing.T, s mcp.Server) {
		model := script.New(script.Call("test_steps", `{}`), script.Say("ok"))
		a := &pawl.Agent{Model: model, Tools: []pawl.Toolset{open(t, s, nil)}}
		var got []string
		for e, err := range a.Stream(t.Context(), llm.User("go")) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == pawl.EventProgress {
				got = append(got, e.Text+" "+string(e.Data))
			}
		}
		want := []string{`step 1 {"progress":1,"total":3}`, `step 2 {"progress":2,"total":3}`, `step 3 {"progress":3,"total":3}`}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	})
}

// waitFor waits for a file that another process or goroutine writes.
func waitFor(t *testing.T, path string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	over := time.After(3 * time.Minute)
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-over:
			t.Fatalf("%s did not appear", filepath.Base(path))
		}
	}
}

// waiting starts a call that blocks until it is cancelled, and returns when it is executing. file
// is the path next to which the call writes file.cancelled, cancel cancels it, and done returns its
// execution.
func waiting(t *testing.T, c *mcp.Client) (file string, cancel context.CancelCauseFunc, done <-chan pawl.Execution) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "f")
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	ended := make(chan pawl.Execution, 1)
	go func() {
		ended <- pawl.Toolsets{c}.Execute(ctx, llm.ToolCall{ID: "1", Name: "test_wait", Args: []byte(`{"text":` + strconv.Quote(file) + `}`)})
	}()
	waitFor(t, file+".begun")
	return file, cancel, ended
}

func TestCancel(t *testing.T) {
	each(t, func(t *testing.T, s mcp.Server) {
		c := open(t, s, nil)
		if _, err := c.Tools(t.Context()); err != nil {
			t.Fatal(err)
		}
		file, cancel, done := waiting(t, c)
		cancel(pawl.ErrCancelled)
		x := <-done
		if want := "Cancelled while it ran. What it does may have happened."; x.Outcome != pawl.OutcomeCancelled || x.Result.Text() != want {
			t.Errorf("got %s, %q, want %q", x.Outcome, x.Result.Text(), want)
		}
		waitFor(t, file+".cancelled") // the server received the cancellation
		if x := call(t, c, "test_echo", `{"text":"still here"}`); x.Result.Text() != "still here" {
			t.Errorf("afterwards: %s %q", x.Outcome, x.Result.Text())
		}
	})
}

func TestKilledBetweenCallAndReply(t *testing.T) {
	tests := []struct {
		name  string
		tool  string
		trust bool
		lines int // how often it happened
		ok    bool
	}{
		{"a write is not repeated", "test_die", true, 1, false},
		{"a read is", "test_die_reading", true, 3, true},
		{"not where the server is not trusted", "test_die_reading", false, 1, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var mu sync.Mutex
			var told []string
			s := stdio("normal")
			s.Trust = test.trust
			c := open(t, s, &mcp.Options{Notice: func(n mcp.Notice) {
				mu.Lock()
				told = append(told,
					n.String())
				mu.Unlock()
			}})
			file := filepath.Join(t.TempDir(), "f")
			x := call(t, c, test.tool, `{"text":`+strconv.Quote(file)+`}`)
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(b), "did it"); n != test.lines || (x.Outcome == pawl.OutcomeOK) != test.ok {
				t.Errorf("happened %d times, %s %q; want %d times, ok %v", n, x.Outcome, x.Result.Text(), test.lines, test.ok)
			}
			if !test.ok && !strings.Contains(x.Result.Text(), "may have happened") {
				t.Errorf("the result does not say so: %q", x.Result.Text())
			}
			mu.Lock()
			if want := "mcp test: disconnected: its last words: out of memory"; len(told) == 0 || told[0] != want {
				t.Errorf("got %q, want %q first", told, want)
			}
			mu.Unlock()
			if x := call(t, c, "test_echo", `{"text":"again"}`); x.Result.Text() != "again" {
				t.Errorf("it was not started again: %s %q", x.Outcome, x.Result.Text())
			}
		})
	}
}

// A call whose reply is lost blocks no other call, neither those in progress nor later ones.
func TestLostBesideOthers(t *testing.T) {
	s := overHTTP(t, testServer(), false)
	proxy := newProxy(t, s.URL)
	s.URL = proxy.url
	c := open(t, s, nil)
	if _, err := c.Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	file, cancel, done := waiting(t, c)
	proxy.cut()
	if x := call(t, c, "test_echo", `{"text":"a"}`); x.Outcome != pawl.OutcomeError || !strings.Contains(x.Result.Text(), "may have happened") {
		t.Errorf("%s %q", x.Outcome, x.Result.Text())
	}
	proxy.mend()
	if x := call(t, c, "test_echo", `{"text":"b"}`); x.Result.Text() != "b" {
		t.Errorf("the next: %s %q", x.Outcome, x.Result.Text())
	}
	select {
	case x := <-done:
		t.Errorf("the one at work was ended: %s %q", x.Outcome, x.Result.Text())
	default:
	}
	cancel(pawl.ErrCancelled)
	<-done
	waitFor(t, file+".cancelled") // after that, nothing is written into the folder
}

// A server receives the cancellation of a call even if the client is closed right after it.
func TestCancelledAndClosed(t *testing.T) {
	for range 20 {
		c := open(t, overHTTP(t, testServer(), false), nil)
		if _, err := c.Tools(t.Context()); err != nil {
			t.Fatal(err)
		}
		file, cancel, done := waiting(t, c)
		cancel(pawl.ErrCancelled)
		<-done
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		waitFor(t, file+".cancelled")
	}
}

func TestListChange(t *testing.T) {
	each(t, func(t *testing.T, s mcp.Server) {
		c := open(t, s, nil)
		tools, err := c.Tools(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if x := call(t, c, "test_grow", `{}`); x.Outcome != pawl.OutcomeOK {
			t.Fatalf("%s %q", x.Outcome, x.Result.Text())
		}
		fixed := fixedSet(tools) // a run that began before
		over := time.After(3 * time.Minute)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for { // the notification arrives at some time
			x := call(t, fixed, "test_echo", `{"text":"hello"}`)
			if x.Result.Text() == "Not run: the server test has changed this tool since it was offered. Do without it." {
				break
			}
			select {
			case <-tick.C:
			case <-over:
				t.Fatalf("a tool that changed is called: %s %q", x.Outcome, x.Result.Text())
			}
		}
		if x := call(t, c, "test_grown", `{}`); x.Result.Text() != "new" {
			t.Errorf("a tool that is new: %s %q", x.Outcome, x.Result.Text())
		}
	})
}

type fixedSet []*pawl.Tool

func (f fixedSet) Tools(context.Context) ([]*pawl.Tool, error) { return f, nil }

func TestAsk(t *testing.T) {
	each(t, func(t *testing.T, s mcp.Server) {
		var got mcp.Question
		c := open(t, s, &mcp.Options{Ask: func(_ context.Context, q mcp.Question) (mcp.Answer, error) {
			got = q
			return mcp.Answer{Accept: true, Content: map[string]any{"city": "Oslo"}}, nil
		}})
		x := call(t, c, "test_ask", `{"text":"Which\u202e city?"}`)
		if x.Result.Text() != "accept Oslo" {
			t.Errorf("%s %q", x.Outcome, x.Result.Text())
		}
		if got.Message != "Which city?" || got.Server != "test" || got.Call != "test_ask" {
			t.Errorf("got %+v", got)
		}
		nobody := open(t, s, nil)
		if x := call(t, nobody, "test_ask", `{"text":"Which city?"}`); x.Outcome == pawl.OutcomeOK {
			t.Errorf("without anybody to ask: %s %q", x.Outcome, x.Result.Text())
		}
	})
}

func TestResourcesAndPrompts(t *testing.T) {
	each(t, func(t *testing.T, s mcp.Server) {
		s.Resources, s.Prompts, s.Include = true, true, []string{"echo"}
		c := open(t, s, nil)
		for _, test := range []struct{ tool, args, want string }{
			{"test_list_resources", `{}`, "test://one: one text/plain\n"},
			{"test_read_resource", `{"uri":"test://one"}`, "[resource test://one, text/plain]\nthe first"},
			{"test_list_prompts", `{}`, "greet: Greets.\n  who (required): \n"},
			{"test_read_prompt", `{"name":"greet","arguments":{"who":"you"}}`, "user:\nHello you\n"},
		} {
			if x := call(t, c, test.tool, test.args); x.Result.Text() != test.want {
				t.Errorf("%s: %s %q, want %q", test.tool, x.Outcome, x.Result.Text(), test.want)
			}
		}
		if x := call(t, c, "test_read_resource", `{"uri":"test://none"}`); x.Outcome != pawl.OutcomeError {
			t.Errorf("a resource that is not there: %s %q", x.Outcome, x.Result.Text())
		}
	})
}

func TestStart(t *testing.T) {
	t.Parallel()
	t.Run("slow", func(t *testing.T) {
		s := stdio("slow")
		s.StartSeconds = 1
		_, err := open(t, s, nil).Tools(t.Context())
		if want := "mcp server test: it did not answer within 1s; its last words: still loading the model[31m"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
	t.Run("deaf to what it does not know", func(t *testing.T) {
		s := stdio("deaf")
		s.StartSeconds = 10
		c := open(t, s, nil)
		if x := call(t, c, "test_echo", `{"text":"hello"}`); x.Outcome != pawl.OutcomeOK || x.Result.Text() != "hello" {
			t.Errorf("%s %q", x.Outcome, x.Result.Text())
		}
	})
	t.Run("broken", func(t *testing.T) {
		c := open(t, stdio("broken"), nil)
		_, err := c.Tools(t.Context())
		if err == nil || !strings.Contains(err.Error(), "its last words: config.json: no such file") {
			t.Errorf("got %v", err)
		}
		if _, again := c.Tools(t.Context()); again == nil {
			t.Error("it works at once")
		}
	})
	t.Run("broken and optional", func(t *testing.T) {
		s := stdio("broken")
		s.Optional = true
		var told []mcp.Notice
		tools, err := open(t, s, &mcp.Options{Notice: func(n mcp.Notice) { told = append(told, n) }}).Tools(t.Context())
		if len(tools) != 0 || err != nil || len(told) != 1 || told[0].Verdict != mcp.Ignored {
			t.Errorf("got %v, %v, %v", tools, err, told)
		}
	})
	t.Run("no such program", func(t *testing.T) {
		_, err := open(t, mcp.Server{Name: "x", Command: "no-such-program-anywhere"}, nil).Tools(t.Context())
		if err == nil || !strings.Contains(err.Error(), "no-such-program-anywhere") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("noisy", func(t *testing.T) {
		if x := call(t, open(t, stdio("noisy"), nil), "test_echo", `{"text":"x"}`); x.Result.Text() != "x" {
			t.Errorf("%s %q", x.Outcome, x.Result.Text())
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
		if _, err := open(t, stdio("slow"), nil).Tools(ctx); !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("closed", func(t *testing.T) {
		c := open(t, stdio("normal"), nil)
		c.Close()
		if _, err := c.Tools(t.Context()); err == nil {
			t.Error("a closed client works")
		}
	})
}

func TestProcessesEndWithTheirGroup(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	c := open(t, stdio("children", "CHILD_FILE="+file), nil)
	if _, err := c.Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, _ := strconv.Atoi(string(b))
	if !running(pid) {
		t.Fatal("the child does not run") // the test would prove nothing
	}
	c.Close()
	over := time.After(time.Minute)
	for running(pid) {
		select {
		case <-over:
			t.Fatal("the child outlives its server")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// running reports whether the process exists and is not a zombie.
func running(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(b), ") Z ")
}

func TestEnvironment(t *testing.T) {
	t.Setenv("MCP_TEST_SECRET", "s3cret")
	c := open(t, mcp.Server{Name: "env", Command: "sh", Args: []string{"-c", `env >&2; exit 1`}, Env: []string{"MINE=1"}}, nil)
	_, err := c.Tools(t.Context())
	if err == nil {
		t.Fatal("it works")
	}
	if strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a variable that was not named was handed on: %v", err)
	}
}
