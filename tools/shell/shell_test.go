package shell_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/internal/test/parts"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/sandbox"
	"github.com/pawl-go/pawl/tools/shell"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// strict returns the tool over a new workspace in the strict sandbox. If the sandbox cannot be
// enforced, the test is skipped with a message.
func strict(t *testing.T, opts *shell.Options) (*pawl.Tool, string) {
	t.Helper()
	if err := sandbox.Check(sandbox.Strict); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	tool, err := shell.New(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return tool, dir
}

func call(tool *pawl.Tool, args any) pawl.Execution {
	b, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return pawl.Toolsets{tool}.Execute(context.Background(), llm.ToolCall{Name: "shell_exec", Args: b})
}

type data struct {
	Exit        int    `json:"exit_code"`
	End         string `json:"end"`
	Stdout      string `json:"stdout"`
	Stderr      string `json:"stderr"`
	StdoutBytes int64  `json:"stdout_bytes"`
	Truncated   bool   `json:"truncated"`
	Millis      int64  `json:"milliseconds"`
}

func read(t *testing.T, x pawl.Execution) (d data) {
	t.Helper()
	if err := json.Unmarshal(x.Result.Data, &d); err != nil {
		t.Fatalf("%v: %s", err, x.Result.Text())
	}
	return d
}

func TestExec(t *testing.T) {
	tool, dir := strict(t, &shell.Options{Env: []string{"GREETING=hello"}})
	for _, tt := range []struct {
		command, text string
		failed        bool
	}{
		{`echo $GREETING`, "hello", false},
		{`true`, "(no output)", false},
		{`echo out; echo err >&2`, "out\n--- stderr ---\nerr", false},
		{`echo out; echo err >&2; exit 3`, "exit status 3\nout\n--- stderr ---\nerr", true},
		{`false`, "exit status 1\n(no output)", true},
		{`cat`, "(no output)", false}, // stdin is empty, and the command does not wait for it
		{`echo a > made; cat made`, "a", false},
		{`printf 'a\377b'`, "a\uFFFDb", false},
		{`rm -rf /tmp/x; echo 2>/dev/null ok`, "ok", false}, // no command is forbidden by its name
		// a process in the background does not block the call
		{`sleep 600 & echo begun`, "begun", false},
	} {
		x := call(tool, map[string]any{"command": tt.command})
		if got := x.Result.Text(); got != tt.text || x.Result.IsError != tt.failed {
			t.Errorf("%s: got %q, error %t", tt.command, got, x.Result.IsError)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "made")); err != nil || string(b) != "a\n" {
		t.Errorf("the workspace has %q, %v", b, err)
	}
	d := read(t, call(tool, map[string]any{"command": "echo out; echo err >&2; exit 3"}))
	if d.Exit != 3 || d.Stdout != "out\n" || d.Stderr != "err\n" || d.End != "exited" {
		t.Errorf("got %+v", d)
	}
}

func TestTimeout(t *testing.T) {
	tool, _ := strict(t, nil)
	for timeout := 1; ; timeout *= 2 {
		begun := time.Now()
		x := call(tool, map[string]any{"command": "echo begun; sleep 600 & sleep 600", "timeout": timeout})
		d := read(t, x)
		if d.Stdout == "" && timeout < 60 {
			continue // on a busy machine it may not have started yet
		}
		if !x.Result.IsError || d.End != "timed out" || d.Exit != -1 || d.Stdout != "begun\n" {
			t.Errorf("got %+v", d)
		}
		if !strings.Contains(x.Result.Text(), "timed out after "+(time.Duration(timeout)*time.Second).String()) {
			t.Errorf("got %q", x.Result.Text())
		}
		if took := time.Since(begun); took > time.Duration(timeout+30)*time.Second {
			t.Errorf("took %s", took)
		}
		break
	}
	for _, timeout := range []any{0, 301, -1, "soon"} {
		if x := call(tool, map[string]any{"command": "true", "timeout": timeout}); x.Outcome != pawl.OutcomeInvalid {
			t.Errorf("timeout %v: got %s", timeout, x.Outcome)
		}
	}
}

func TestLongOutput(t *testing.T) {
	tool, _ := strict(t, &shell.Options{Limits: sandbox.Limits{Output: 1000}})
	x := call(tool, map[string]any{"command": "echo first; yes | head -100000; echo last"})
	d := read(t, x)
	if !d.Truncated || d.StdoutBytes != 200011 || len(d.Stdout) > 1100 {
		t.Errorf("got %d bytes of %d, truncated %t", len(d.Stdout), d.StdoutBytes, d.Truncated)
	}
	if text := x.Result.Text(); !strings.HasPrefix(text, "first\ny\n") || !strings.HasSuffix(text, "\ny\nlast") || !strings.Contains(text, "bytes left out") {
		t.Errorf("got %q", text)
	}
}

// A workspace that a command replaces by a link leads nowhere.
func TestNothingElse(t *testing.T) {
	t.Setenv("PAWL_CANARY", "canary")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	tool, _ := strict(t, nil)
	for _, command := range []string{"cat " + secret, "ln -s " + secret + " l; cat l", "env | grep CANARY", "cat /etc/shadow"} {
		x := call(tool, map[string]any{"command": command})
		if text := x.Result.Text(); !x.Result.IsError || strings.HasPrefix(text, "secret") || strings.Contains(text, "canary") {
			t.Errorf("%s: got %q", command, text)
		}
	}
}

func TestCancel(t *testing.T) {
	tool, _ := strict(t, nil)
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := errors.New("stop")
	go cancel(stop)
	begun := time.Now()
	_, err := tool.Run(ctx, llm.ToolCall{Name: "shell_exec", Args: json.RawMessage(`{"command":"sleep 600"}`)})
	if !errors.Is(err, stop) || time.Since(begun) > 30*time.Second {
		t.Errorf("got %v after %s", err, time.Since(begun))
	}
}

// The requested level is enforced, or the call is refused.
func TestRefused(t *testing.T) {
	if os.Geteuid() != 0 || sandbox.Check(sandbox.Standard) != nil {
		t.Skip("needs root, and Landlock of version 6: then standard cannot write a folder of root's")
	}
	dir := t.TempDir()
	tool, err := shell.New(dir, &shell.Options{Level: sandbox.Standard})
	if err != nil {
		t.Fatal(err)
	}
	x := call(tool, map[string]any{"command": "touch made"})
	if text := x.Result.Text(); !x.Result.IsError || !strings.Contains(text, "The command was not run") || !strings.Contains(text, "nobody") {
		t.Errorf("got %q", text)
	}
	if x.Certainty != delivery.NotSent {
		t.Errorf("a command that was not run has the certainty %q", x.Certainty)
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
		t.Error("the command ran")
	}
}

func TestNew(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		dir  string
		opts *shell.Options
	}{
		{filepath.Join(t.TempDir(), "absent"), nil},
		{file, nil},
		{t.TempDir(), &shell.Options{Limits: sandbox.Limits{Time: time.Hour}}},
		{t.TempDir(), &shell.Options{Read: []string{"/no/such/file"}}},
	} {
		if _, err := shell.New(tt.dir, tt.opts); err == nil {
			t.Errorf("%s, %+v: no error", tt.dir, tt.opts)
		}
	}
}

// Commands reach the named hosts, and the model learns which hosts they could not reach. Hosts
// require the level Strict.
func TestHosts(t *testing.T) {
	parts.Program(t, "/usr/bin/python3", "python3")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
	defer srv.Close()
	host := srv.Listener.Addr().String()
	fetch := `/usr/bin/python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())' `
	named, _ := strict(t, &shell.Options{Hosts: []string{host}})
	if !strings.Contains(named.Description, "nothing but "+host) {
		t.Errorf("the model got: %s", named.Description)
	}
	if got := call(named, map[string]any{"command": fetch + srv.URL}).Result.Text(); got != "hello" {
		t.Errorf("a host that is named: %s", got)
	}
	if got := call(named, map[string]any{"command": fetch + "http://example.com/ 2>/dev/null"}).Result.Text(); !strings.HasPrefix(got, "exit status 1\n(no output)\n[example.com is refused: ") {
		t.Errorf("another: %s", got)
	}
	none, _ := strict(t, nil)
	if got := call(none, map[string]any{"command": fetch + srv.URL +
		" 2>/dev/null"}).Result.Text(); got != "exit status 1\n(no output)" || !strings.Contains(none.Description, "has no network") {
		t.Errorf("where none is named: %s", got)
	}
	for _, o := range []shell.Options{{Hosts: []string{host}, Level: sandbox.None}, {Hosts: []string{"a b"}}} {
		if _, err := shell.New(t.TempDir(), &o); err == nil {
			t.Errorf("%+v is no error", o)
		}
	}
}
