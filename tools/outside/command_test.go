package outside_test

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/machine"
	"github.com/pawl-go/pawl/tools/outside"
)

func loopback(context.Context, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

// program writes a shell script and returns the definition of a tool that runs it.
func program(t *testing.T, script, more string) (string, *outside.Options) {
	t.Helper()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("there is no /bin/sh")
	}
	o := options()
	o.Dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(o.Dir, "tool.sh"), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return "[{command: {name: a, description: d, run: [./tool.sh, 'a b', '$HOME', '{x}'], input: {type: object}" + more + "}}]", o
}

func TestCommand(t *testing.T) {
	t.Setenv("PAWL_TEST_SECRET", "not for programs")
	for _, c := range []struct {
		name, script, more string
		outcome            pawl.Outcome
		want               string
	}{
		{"stdin", "cat", "", pawl.OutcomeOK, `{"x":"1; rm -rf y"}`},
		{"arguments", `printf '%s|' "$@"`, "", pawl.OutcomeOK, "a b|$HOME|{x}|"},
		{"environment", "env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= -e ^OLDPWD= | sort", ", env: [GREETING, A=b=c, GONE]", pawl.OutcomeOK, "A=b=c\nGONE=\nGREETING=hello\nPATH=/usr/bin:/bin"},
		{"silent", "cat >/dev/null", "", pawl.OutcomeOK, "(no output)"},
		{"does not read", "exec <&-; echo done", "", pawl.OutcomeOK, "done"},
		{"fails", "echo out; echo why >&2; exit 3", "", pawl.OutcomeError, "the program failed with status 3\nwhy"},
		{"fails without a word", "echo out; exit 1", "", pawl.OutcomeError, "the program failed with status 1\nout"},
		{"signal", "kill -9 $$", "", pawl.OutcomeError, "the program was ended by a signal"},
		{"long error", "i=0; while [ $i -lt 3000 ]; do echo line $i >&2; i=$((i+1)); done; exit 1", "", pawl.OutcomeError, "line 2999"},
		{"long", "head -c 5000 /dev/zero | tr '\\0' x", ", max_output: 10", pawl.OutcomeOK, "xxxxxxxxxx\n[4990 more bytes were left out]"},
		{"folder", "basename $PWD", ", dir: sub", pawl.OutcomeOK, "sub"},
		{"bytes", `printf 'a\377b'`, "", pawl.OutcomeOK, "a\uFFFDb"},
	} {
		def, o := program(t, c.script, c.more)
		if err := os.Mkdir(filepath.Join(o.Dir, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		x := call(t, set(t, o, def), "a", `{"x":"1; rm -rf y"}`)
		text := x.Result.Text()
		if c.name == "long error" {
			if len(text) > 3000 || !strings.HasSuffix(text, c.want) || !strings.Contains(text, "\n…") {
				t.Errorf("%s: %d bytes: %s", c.name, len(text), text)
			}
			continue
		}
		if diff := cmp.Diff(text, c.want); x.Outcome != c.outcome || diff != "" {
			t.Errorf("%s: %s (-got +want):\n%s", c.name, x.Outcome, diff)
		}
	}
	def, o := program(t, `echo '{"n": 1}'`, "")
	if x := call(t, set(t, o, def), "a", ``); strings.TrimSpace(string(x.Result.Data)) != `{"n": 1}` {
		t.Errorf("data %q", x.Result.Data)
	}
}

func TestCommandThatCannotRun(t *testing.T) {
	def := "[{command: {name: a, description: d, run: [./gone.sh]}}]"
	o := options()
	o.Dir = t.TempDir()
	x := call(t, set(t, o, def), "a", `{}`)
	want(t, x, pawl.OutcomeError, "the program of this tool could not be run: no such file or directory")
	if strings.Contains(x.Result.Text(), o.Dir) {
		t.Errorf("it names a path of this machine: %s", x.Result.Text())
	}
	o.Run = nil
	defs, err := outside.Parse([]byte(def))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = outside.New(defs, o); err == nil || !strings.Contains(err.Error(), "command a: programs are not run here: set Options.Run") {
		t.Errorf("without leave: %v", err)
	}
	o.Run = starts(func(context.Context) (outside.Exit, error) {
		return outside.Exit{}, errors.New("/etc/secret: broken")
	})
	want(t, call(t, set(t, o, def), "a", `{}`), pawl.OutcomeError, "could not be run: it did not start. Calling it again will not help")
}

// All child processes of a program end with it: at its timeout, and if they remain after its end
// and hold its output open. The remaining process also holds a FIFO open, and the FIFO ends when no
// process has it open any more.
func TestNothingStays(t *testing.T) {
	for _, c := range []struct {
		name, script, more string
		outcome            pawl.Outcome
	}{
		{"in time", "(echo here >&3; : >said; sleep 60) 3>fifo & until [ -e said ]; do sleep 0.01; done; echo done",
			"", pawl.OutcomeOK},
		{"too late", "(echo here >&3; sleep 60) 3>fifo & sleep 60", ", timeout: 300ms", pawl.OutcomeTimeout},
	} {
		def, o := program(t, c.script, c.more)
		fifo := filepath.Join(o.Dir, "fifo")
		if err := machine.Fifo(fifo); err != nil {
			t.Skip(err)
		}
		f, err := os.OpenFile(fifo, os.O_RDONLY|machine.NonBlocking, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		started := time.Now()
		want(t, call(t, set(t, o, def), "a", `{}`), c.outcome)
		if took := time.Since(started); took > 20*time.Second {
			t.Errorf("%s: it took %v", c.name, took)
		}
		if err := f.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(f); string(b) != "here\n" || err != nil {
			t.Errorf("%s: what it left behind said %q and stays: %v", c.name, b, err)
		}
	}
}
