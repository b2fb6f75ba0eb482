//go:build linux

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/buildcache"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/sandbox"
)

// repository is a Go repository with a fault, and the agent of pawl init --kind coding in it.
type repository struct {
	*testing.T
	dir, home string
}

const (
	faulty = "package calc\n\n// Add returns the sum.\nfunc Add(a, b int) int { return a - b }\n"
	fixed  = "package calc\n\n// Add returns the sum.\nfunc Add(a, b int) int { return a + b }\n"
)

func newRepository(t *testing.T) *repository {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":       "module calc\n\ngo 1.20\n",
		"calc.go":      faulty,
		"calc_test.go": "package calc\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(2, 3) != 5 {\n\t\tt.Error(\"Add(2, 3) is not 5\")\n\t}\n}\n",
		"AGENTS.md":    "Tests are run with go test -vet=off.\n",
	} {
		writer(t, dir)(name, text)
	}
	return repositoryIn(t, dir)
}

// repositoryIn makes the folder dir a repository with the agent.
func repositoryIn(t *testing.T, dir string) *repository {
	soak.Sequential(t)
	for _, program := range []string{"go", "git", "bash"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	if err := sandbox.Check(sandbox.Strict); err != nil {
		t.Skip(err)
	}
	r := &repository{t, dir, t.TempDir()}
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	workspace := fmt.Sprintf("%x", sha256.Sum256([]byte(root)))[:16]
	buildcache.Share(t, filepath.Join(r.home, ".local", "share", "pawl", "workspaces", workspace, "cache"))
	r.pawl(nil, 0, "init", "--kind", "coding", "agent.yaml")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first"}} {
		c := exec.Command("git", args...)
		c.Dir = r.dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return r
}

// command returns a pawl process whose models play turns. Each turn is the text of an answer, or
// the name and the arguments of a call.
func (r *repository) command(turns map[string][][2]string, args ...string) *exec.Cmd {
	r.Helper()
	c := exec.Command("pawl", args...)
	c.Dir = r.dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.home, "GORACE=atexit_sleep_ms=0"}
	for variable, list := range turns {
		all := []any{}
		for i, turn := range list {
			part, finish := map[string]any{"type": "text", "text": turn[1]}, "stop"
			if turn[0] != "" {
				part, finish = map[string]any{"type": "tool_call", "id": fmt.Sprint("call", i), "name": turn[0], "args": json.RawMessage(turn[1])}, "tool_calls"
			}
			all = append(all, map[string]any{"message": map[string]any{"role": "assistant", "parts": []any{part}}, "finish": finish})
		}
		b, err := json.Marshal(map[string]any{"turns": all})
		if err != nil {
			r.Fatal(err)
		}
		c.Env = append(c.Env, variable+"=script:"+writer(r.T, r.TempDir())("turns.json", string(b)))
	}
	return c
}

// pawl runs pawl and returns its output.
func (r *repository) pawl(turns map[string][][2]string, status int, args ...string) string {
	r.Helper()
	c := r.command(turns, args...)
	out, err := c.CombinedOutput()
	if c.ProcessState == nil || c.ProcessState.ExitCode() != status {
		r.Fatalf("pawl %v: %v, want status %d\n%s", args, err, status, out)
	}
	return string(out)
}

// run runs the agent and returns the results of its calls.
func (r *repository) run(turns map[string][][2]string, args ...string) (results []string) {
	r.Helper()
	save := filepath.Join(r.TempDir(), "run.json")
	r.pawl(turns, 0, append([]string{"run", "agent.yaml", "--save", save, "Make the tests pass."}, args...)...)
	b, err := os.ReadFile(save)
	if err != nil {
		r.Fatal(err)
	}
	var res pawl.Result
	if err := json.Unmarshal(b, &res); err != nil {
		r.Fatal(err)
	}
	for _, step := range res.Steps {
		for _, x := range step.Executions {
			results = append(results, x.Result.Text())
		}
	}
	return results
}

func (r *repository) read(name string) string {
	r.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.Fatal(err)
	}
	return string(b)
}

const edit = `{"path":"calc.go","edits":[{"old":"a - b","new":"a + b"}]}`

// A coding task, from the file alone: the tests fail, the agent searches, edits and tests again,
// and undo returns the bytes. The agent reaches no network, no file outside and no repository.
func TestCodingAgent(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	secret := filepath.Join(t.TempDir(), "secret")
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if err := os.WriteFile(secret, []byte("outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(server.Addr().String())
	reach, _ := json.Marshal(map[string]string{"command": "cat " + secret + " 2>/dev/null || echo no file\n" +
		"bash -c 'echo > /dev/tcp/127.0.0.1/" + port + "' 2>/dev/null && echo net || echo no net\n" +
		"echo evil 2>/dev/null >>AGENTS.md || echo no AGENTS.md; echo evil 2>/dev/null >>.git/config || echo no repository"})

	// Its own author instructs the agent only where the person says so.
	if out := r.pawl(nil, 0, "check", "--explain", "agent.yaml"); strings.Contains(out, "go test -vet=off") {
		t.Errorf("AGENTS.md is in the instructions unasked:\n%s", out)
	}
	agent := filepath.Join(r.dir, "agent.yaml")
	text, err := os.ReadFile(agent)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("# agents_md: true"), []byte("agents_md: true"), 1)
	if err := os.WriteFile(agent, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if out := r.pawl(nil, 0, "check", "--explain", "agent.yaml"); !strings.Contains(out, "go test -vet=off") ||
		!strings.Contains(out, "AGENTS.md of the root, 37 bytes, is part of the instructions") {
		t.Errorf("AGENTS.md is not in the instructions, or without a notice:\n%s", out)
	}
	begun := time.Now()
	test := `{"command":"go test -vet=off ./..."}`
	got := r.run(map[string][][2]string{
		"PAWL_MODEL": {
			{"todo", `{"items":[{"text":"find Add","state":"doing"},{"text":"fix it","state":"open"},{"text":"test","state":"open"}]}`},
			{"finder", `{"task":"Where is Add?"}`},
			{"shell_exec", test},
			{"file_edit", edit},
			{"shell_exec", test},
			{"git_status", `{}`},
			{"git_diff", `{}`},
			{"git_log", `{}`},
			{"file_write", `{"path":"AGENTS.md","content":"Obey."}`},
			{"shell_exec", string(reach)},
			{"", "Add was wrong, and the tests pass."},
		},
		"PAWL_SMALL_MODEL": {{"file_search", `{"pattern":"func Add"}`}, {"", "calc.go:4 has Add."}},
	})
	t.Log(time.Since(begun).Round(time.Millisecond))
	for i, want := range []string{"find Add", "calc.go:4 has Add.", "Add(2, 3) is not 5", "a + b", "ok  \tcalc", " M calc.go",
		"+func Add(a, b int) int { return a + b }", "first", "protected", "no file\nno net\nno AGENTS.md\nno repository"} {
		if i >= len(got) || !strings.Contains(got[i], want) {
			t.Errorf("call %d: want %q in\n%s", i, want, strings.Join(got[min(i, len(got)-1):], "\n---\n"))
			break
		}
	}
	if r.read("calc.go") != fixed {
		t.Errorf("after the run: %s", r.read("calc.go"))
	}
	if out := r.pawl(nil, 0, "undo", "agent.yaml"); r.read("calc.go") != faulty || !strings.HasPrefix(out, "calc.go is as before the last call") {
		t.Errorf("after undo: %s%s", out, r.read("calc.go"))
	}
	if out := r.pawl(nil, 1, "undo", "agent.yaml"); !strings.Contains(out, "there is no change to undo") {
		t.Error(out)
	}
	// in a chat
	chat := r.command(map[string][][2]string{"PAWL_MODEL": {{"file_edit", edit}, {"", "Done."}}}, "chat", "agent.yaml", "--yes")
	chat.Stdin = strings.NewReader("Fix it.\n/undo\n/undo\n")
	if out, err := chat.CombinedOutput(); err != nil || r.read("calc.go") != faulty || !strings.Contains(string(out), "Edited calc.go") ||
		!strings.Contains(string(out), "pawl: calc.go is as before the last call\npawl: there is no change to undo; checkpoints: true") {
		t.Errorf("after /undo: %v, %s%s", err, out, r.read("calc.go"))
	}
	// the control: without the sandbox the same command reaches all of it
	got = r.run(map[string][][2]string{"PAWL_MODEL": {{"shell_exec", string(reach)}, {"", "done"}}}, "--sandbox", "none")
	if len(got) != 1 || got[0] != "outsidenet" {
		t.Errorf("without the sandbox: %q", got)
	}
}

// A coding task in a module of other people, which the module cache has: an edit breaks its tests,
// the agent finds the line, edits it by a diff, the tests pass, and undo returns each state. The
// control is the failure in between, with the names of the module's own tests.
func TestCodingAgentOnAModule(t *testing.T) {
	t.Parallel()
	const module = "github.com/prometheus/otlptranslator"
	found, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(strings.TrimSpace(string(found)))); err != nil {
		t.Fatal(err)
	}
	r := repositoryIn(t, dir)
	whole := r.read("metric_namer.go")
	diff := `{"path":"metric_namer.go","edits":[{"old":"\"min\": \"%s\"","new":"\"min\": \"%s\""}]}`
	test := `{"command":"go test ./..."}`
	begun := time.Now()
	got := r.run(map[string][][2]string{"PAWL_MODEL": {
		{"file_edit", fmt.Sprintf(diff, "minutes", "moments")},
		{"shell_exec", test},
		{"file_search", `{"pattern":"moments"}`},
		{"file_read", `{"path":"metric_namer.go","offset":37,"limit":3}`},
		{"git_diff", `{}`},
		{"file_edit", fmt.Sprintf(diff, "moments", "minutes")},
		{"shell_exec", test},
		{"git_status", `{}`},
		{"", "The tests pass."},
	}})
	t.Log(time.Since(begun).Round(time.Millisecond))
	for i, want := range []string{"moments", "--- FAIL: TestMetricNamer_Build", "metric_namer.go\n38: ", "moments",
		"-\t\"min\": \"minutes\",\n+\t\"min\": \"moments\",", "minutes", "ok  \t" + module, ""} {
		if i >= len(got) || !strings.Contains(got[i], want) {
			t.Fatalf("call %d: want %q in\n%s", i, want, strings.Join(got[min(i, len(got)-1):], "\n---\n"))
		}
	}
	if r.read("metric_namer.go") != whole || strings.Contains(got[7], "metric_namer.go") {
		t.Errorf("after the run the file differs: %s", got[7])
	}
	for _, want := range []string{strings.Replace(whole, `"minutes"`, `"moments"`, 1), whole} {
		if r.pawl(nil, 0, "undo", "agent.yaml"); r.read("metric_namer.go") != want {
			t.Error("undo does not bring the file back")
		}
	}
}

// An edit can be undone after the process was killed.
func TestUndoKilled(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	ready := filepath.Join(r.dir, "ready")
	if err := unix.Mkfifo(ready, 0o666); err != nil {
		t.Fatal(err)
	}
	c := r.command(map[string][][2]string{"PAWL_MODEL": {{"file_edit", edit}, {"shell_exec", `{"command":"echo >ready; sleep 100"}`}}},
		"run", "agent.yaml", "Make the tests pass.")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(ready); err != nil { // until the command runs
		t.Fatal(err)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if r.read("calc.go") != fixed {
		t.Fatalf("before undo: %s", r.read("calc.go"))
	}
	r.pawl(nil, 0, "undo", "agent.yaml")
	if r.read("calc.go") != faulty {
		t.Errorf("after undo: %s", r.read("calc.go"))
	}
}
