package outside_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/parts"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/sandbox"
	"github.com/pawl-go/pawl/sandbox/proxy"
	"github.com/pawl-go/pawl/tools/outside"
)

// A program in the sandbox gets its arguments and its input, reads its own file and its folder, and
// nothing else of the machine.
func TestSandboxed(t *testing.T) {
	if p := sandbox.Probe().Level(sandbox.Strict); !p.OK {
		t.Skip("this machine cannot enforce strict: " + p.Reason)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, script, more, want string
		outcome                  pawl.Outcome
	}{
		{"stdin and arguments", `printf '%s|' "$@"; cat`, "", `a b|$HOME|{x}|{"x":1}`, pawl.OutcomeOK},
		{"its folder", "cat beside", ", dir: .", "beside it", pawl.OutcomeOK},
		{"its folder is not written", "echo new > beside || exit 1", ", dir: .", "status 1", pawl.OutcomeError},
		{"another's file", "cat " + secret, "", "No such file", pawl.OutcomeError},
		{"the network", "bash -c 'exec 3<>/dev/tcp/127.0.0.1/1'", "", "status 1", pawl.OutcomeError},
		{"long", "head -c 50000 /dev/zero | tr '\\0' x", ", max_output: 10", "xxxxxxxxxx\n[49990 more bytes were left out]", pawl.OutcomeOK},
		{"what it may read", "cat " + secret, ", read: [" + secret + "]", "secret", pawl.OutcomeOK},
		{"what it may write", "echo new > sub/made && cat sub/made", ", write: [sub]", "new", pawl.OutcomeOK},
		{"the network is asked for", "true", ", network: true", "the program needs the network, and level strict gives none where no host is named", pawl.OutcomeError},
		{"as long as its tool", "ulimit -t", ", timeout: 90s", "90", pawl.OutcomeOK},
		{"what is not there", "true", ", read: [gone]", "no such file", pawl.OutcomeError},
		{"the environment", "env | cut -d= -f1 | grep -v -e ^PWD$ -e ^_$ -e ^SHLVL$ -e ^OLDPWD$ | sort | tr '\\n' ' '", ", env: [A=b]", "A HOME LANG PATH TMPDIR", pawl.OutcomeOK},
		{"fails", "echo why >&2; exit 3", "", "the program failed with status 3\nwhy", pawl.OutcomeError},
	} {
		def, o := program(t, tt.script, tt.more)
		if err := os.WriteFile(filepath.Join(o.Dir, "beside"), []byte("beside it"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(o.Dir, "sub"), 0o777); err != nil {
			t.Fatal(err)
		}
		o.Run = outside.Sandboxed(sandbox.Spec{})
		defs, err := outside.Parse([]byte(def))
		if err != nil {
			t.Fatal(err)
		}
		set, err := outside.New(defs, o)
		if err != nil {
			t.Fatal(err)
		}
		x := pawl.Toolsets{set}.Execute(context.Background(), llm.ToolCall{Name: "a", Args: json.RawMessage(`{"x":1}`)})
		if got := x.Result.Text(); x.Outcome != tt.outcome || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %s %q, want %s %q", tt.name, x.Outcome, got, tt.outcome, tt.want)
		}
		if b, err := os.ReadFile(filepath.Join(o.Dir, "beside")); err != nil || string(b) != "beside it" {
			t.Errorf("%s: the other file is %q, %v", tt.name, b, err)
		}
	}
}

// A Runner prepares each program that it can start: by its path, by a path relative to its folder,
// and by its name, also without a PATH. Control: what it cannot start is refused beforehand.
func TestPreparedPrograms(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "act"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for runner, prepare := range runners() {
		for _, c := range []struct {
			program, dir string
			starts       bool
		}{
			{filepath.Join(dir, "act"), dir, true},
			{"./act", dir, true},
			{"sh", dir, true},
			{"./gone", dir, false},
			{"gone-program", dir, false},
			{"act", dir, false},
			{"sh", filepath.Join(dir, "act"), false},
		} {
			p := outside.Process{Args: []string{c.program}, Dir: c.dir}
			run, err := prepare(t.Context(), p)
			if err == nil {
				_, err = run(t.Context())
			}
			if prepared := run != nil; prepared != c.starts || (err == nil) != c.starts {
				t.Errorf("%s: %s in %s: prepared %v, %v; want %v", runner, c.program, c.dir, prepared, err, c.starts)
			}
		}
	}
}

// A program that needs the network reaches the named hosts and no other. A program that does not
// need it reaches none.
func TestSandboxedHosts(t *testing.T) {
	if p := sandbox.Probe().Level(sandbox.Strict); !p.OK {
		t.Skip("this machine cannot enforce strict: " + p.Reason)
	}
	parts.Program(t, "/usr/bin/python3", "python3")
	named, other := httptest.NewServer(hello{}), httptest.NewServer(hello{})
	defer named.Close()
	defer other.Close()
	hosts, err := proxy.New(proxy.Options{Allow: []string{named.Listener.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, url, more, want string
		outcome               pawl.Outcome
	}{
		{"named", named.URL, ", network: true", "hello", pawl.OutcomeOK},
		{"not named", other.URL, ", network: true", other.Listener.Addr().String() + " is refused", pawl.OutcomeError},
		{"not needed", named.URL, "", "not permitted", pawl.OutcomeError},
	} {
		def, o := program(t, `/usr/bin/python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())' `+tt.url, tt.more)
		o.Run = outside.Sandboxed(sandbox.Spec{Proxy: hosts.Serve})
		defs, err := outside.Parse([]byte(def))
		if err != nil {
			t.Fatal(err)
		}
		set, err := outside.New(defs, o)
		if err != nil {
			t.Fatal(err)
		}
		x := pawl.Toolsets{set}.Execute(context.Background(), llm.ToolCall{Name: "a", Args: json.RawMessage(`{}`)})
		if got := x.Result.Text(); x.Outcome != tt.outcome || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %s %q, want %s %q", tt.name, x.Outcome, got, tt.outcome, tt.want)
		}
	}
}

type hello struct{}

func (hello) ServeHTTP(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }
