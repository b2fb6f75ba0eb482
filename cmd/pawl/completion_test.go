package main

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	diffs "github.com/google/go-cmp/cmp"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/test/soak"
)

// Each row is a command line, typed up to its last word, and the expected words. The expected words
// are whole.
var completions = []struct {
	line string
	want []string
}{
	{"ver", []string{"version"}},
	{"ru", []string{"run", "runs"}},
	{"runs re", []string{"resume", "replay"}},
	{"run --dri", []string{"--driver"}},
	{"run --driver ", []string{"native", "react", "auto"}},
	{"run --driver=", []string{"--driver=native", "--driver=react", "--driver=auto"}},
	{"run --tools file,da", []string{"file,data"}},
	{"run --yes --model anthropic:claude-opus-4-5", []string{"anthropic:claude-opus-4-5"}},
	{"run agent.yaml --agent ", []string{"first", "second"}},
	{"tools show file_st", []string{"file_stat"}},
	{"run --deny-tool effect:w", []string{"effect:write"}},
	{"run --deny-tool effect:u", []string{"effect:unstated"}},
	{"runs show inv", []string{"invoice-7"}},
	{"runs diff invoice-7 ", []string{"invoice-7", "last"}},
	{"inbox approve invoice-7 ", []string{"run/1/0", "all"}},
	{"check ag", []string{"agent.yaml"}},
	{"run --root su", []string{"sub/"}},
}

// keptFolder creates a folder with the data for the completions, and returns its environment.
func keptFolder(t *testing.T) (dir string, env []string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{
		"agent.yaml": "agent: first\nmodel: openai:x\n---\nagent: second\nmodel: openai:x\n",
		"turns.json": `{"turns":[{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"c","name":"file_write","args":{"path":"a.txt","content":"x"}}]},"finish":"tool_calls"}]}`,
		"sub/x.txt":  "",
	} {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "XDG_DATA_HOME=" + filepath.Join(dir, ".data"),
		"TERM=dumb", "LANG=C.UTF-8", "GORACE=atexit_sleep_ms=0"}
	c := exec.Command("pawl", "run", "--durable", "--run", "invoice-7", "--model", "script:turns.json", "--tools",
		"file", "Pay.")
	c.Dir, c.Env = dir, env
	out, err := c.CombinedOutput()
	if c.ProcessState.ExitCode() != cli.StatusPending {
		t.Fatalf("a run that waits could not be made: %v\n%s", err, out)
	}
	return dir, env
}

// Each shell offers the same words for the same line. Fish prints its candidates. Bash and zsh run
// at a terminal and insert all candidates.
func TestCompletionInShells(t *testing.T) {
	t.Parallel()
	soak.Sequential(t)
	dir, env := keptFolder(t)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			for _, needed := range []string{shell, "script"} {
				// script has other arguments on other systems
				if _, err := exec.LookPath(needed); err != nil || runtime.GOOS != "linux" {
					t.Logf("there is no %s here", needed)
					return
				}
			}
			ask := map[string]func(*testing.T, string, []string) func(string) []string{"bash": inBash, "zsh": inZsh,
				"fish": inFish}[shell](t, dir, env)
			for _, tt := range completions {
				if diff := diffs.Diff(ask(tt.line), tt.want); diff != "" {
					t.Errorf("pawl %s: (-got +want)\n%s", tt.line, diff)
				}
			}
		})
	}
}

func inFish(t *testing.T, dir string, env []string) func(string) []string {
	return func(line string) []string {
		c := exec.Command("fish", "--no-config", "-c", "pawl completion fish | source; complete -C $argv[1]", "pawl "+
			line)
		c.Dir, c.Env = dir, env
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("fish: %v\n%s", err, out)
		}
		var all []string
		for l := range strings.Lines(string(out)) {
			word, _, _ := strings.Cut(strings.TrimSpace(l), "\t")
			all = append(all, word)
		}
		return all
	}
}

// inBash inserts all candidates of bash with readline's insert-completions. Bash offers only the
// part after = and :.
func inBash(t *testing.T, dir string, env []string) func(string) []string {
	press := atTerminal(t, dir, env, "bash --norc --noprofile -i", "\x1b*",
		"PS1=; source <(pawl completion bash); complete -o nosort -F _pawl show")
	return func(line string) []string {
		all := press(line)
		cut := strings.LastIndexAny(line, " =:") + 1
		last := line[strings.LastIndex(line, " ")+1:]
		before := line[cut-len(last[:max(0, len(last)-(len(line)-cut))]) : cut]
		for i := range all {
			if i > 0 {
				all[i] = before + all[i]
			}
			if s, err := os.Stat(filepath.Join(dir, all[i])); err == nil && s.IsDir() {
				all[i] += "/" // bash adds the slash only to a single candidate
			}
		}
		return all
	}
}

func inZsh(t *testing.T, dir string, env []string) func(string) []string {
	press := atTerminal(t, dir, env, "zsh -f -i", "\x18a",
		"PS1=; autoload -U compinit; compinit -u -D; source <(pawl completion zsh); compdef _pawl show; zle -C all-matches complete-word _generic; bindkey '^Xa' all-matches; "+
			"zstyle ':completion:all-matches::::' completer _all_matches _complete; zstyle ':completion:all-matches:*' insert true; unsetopt auto_remove_slash")
	return press
}

// atTerminal starts a shell at a terminal. The returned function types a line, presses the key that
// inserts all candidates, and reads the resulting words.
func atTerminal(t *testing.T, dir string, env []string, shell, key, setUp string) func(string) []string {
	t.Helper()
	c := exec.Command("script", "-qec", shell, os.DevNull)
	c.Dir, c.Env = dir, env
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	stop := time.AfterFunc(2*time.Minute, func() { _ = c.Process.Kill() })
	t.Cleanup(func() {
		stop.Stop()
		_, _ = io.WriteString(in, "exit\n")
		in.Close()
		_, _ = io.Copy(io.Discard, out)
		if err := c.Wait(); err != nil {
			t.Logf("%s: %v", shell, err)
		}
	})
	lines := bufio.NewScanner(out)
	said := ""
	read := func(first string) []string {
		for lines.Scan() {
			said += lines.Text() + "\n"
			if words, found := strings.CutPrefix(strings.TrimSpace(lines.Text()), first); found {
				return strings.Split(strings.TrimSuffix(words, ">"), "><")
			}
		}
		t.Fatalf("%s said no %s:\n%q", shell, first, said)
		return nil
	}
	// The candidates are printed after a mark that does not occur in a command line.
	if _, err := io.WriteString(in, setUp+
		"; show() { printf '%s' '=''='; printf '<%s>' \"$@\"; echo; }; show ready\n"); err != nil {
		t.Fatal(err)
	}
	read("==<")
	return func(line string) []string {
		if _, err := io.WriteString(in, "show "+line+key+"\n"); err != nil {
			t.Fatal(err)
		}
		return read("==<")[strings.Count(line, " "):]
	}
}

// The rows are the queries of the scripts to the program, without a shell.
func TestComplete(t *testing.T) {
	soak.Sequential(t)
	for _, tt := range []struct{ line, want string }{
		{"pawl ", "demo …"},
		{"", "demo …"},
		{"pawl nothing", ""},
		{"pawl run --mod", "--model"},
		{"pawl run --model openai:x --mod", ""},
		{"pawl run --allow-tool file_read --allow-t", "--allow-tool"},
		{"pawl run --nothing x --driver n", "native"},
		{"pawl run -y --driver n", "native"},
		{"pawl run -- --dr", ":files"},
		{"pawl run 'a task' --driver n", "native"},
		{"pawl run a\\ task --driver n", "native"},
		{"pawl version x ", ""},
		{"pawl run --max-rounds ", ""},
		{"pawl run --root ", ":dirs"},
		{"pawl run --mcp-lock=", ":files"},
		{"pawl inbox --j", "--json"},
		{"pawl inbox list --j", "--json"},
		{"pawl models show anthro", "anthropic: …"},
		{"pawl runs show --db postgres://nobody.invalid/x ", ""},
		{"pawl runs show --db gone.db ", ""},
		{"pawl completion ", "bash zsh fish"},
	} {
		var out, errs bytes.Buffer
		sys := &cli.System{Out: &out, Err: &errs, Env: func(name string) string {
			return map[string]string{"HOME": "/nonexistent"}[name]
		}}
		if status := execute([]string{completeWord, "bash", " =:", tt.line}, sys); status != 0 || errs.Len() > 0 {
			t.Errorf("%q: status %d, and it says %q", tt.line, status, errs.String())
		}
		got := strings.Join(strings.Fields(out.String()), " ")
		if first, open := strings.CutSuffix(tt.want, " …"); open && strings.HasPrefix(got, first) {
			continue
		}
		if got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.line, got, tt.want)
		}
	}
}

// TestExamples shows that the help of each command has an example, that each example is a command
// line of that command, and that each text of help.txt is about a command.
func TestExamples(t *testing.T) {
	soak.Sequential(t)
	k, err := parser(&cli.System{Out: io.Discard, Err: io.Discard, Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	titles := map[string]bool{}
	var walk func(*kong.Node)
	walk = func(n *kong.Node) {
		path := strings.TrimPrefix(strings.TrimPrefix(n.FullPath(), "pawl"), " ")
		titles[cmp.Or(path, "pawl")] = true
		_, examples, found := strings.Cut(n.Detail, examplesTitle)
		if !found {
			t.Errorf("pawl %s has no example in its help: add one to help.txt", path)
		}
		for line := range strings.Lines(examples) {
			if w := led(strings.TrimSpace(line), path); w != "" {
				t.Errorf("example of pawl %s: %s: %s", path, line, w)
			}
		}
		for _, child := range n.Children {
			walk(child)
		}
	}
	walk(k.Model.Node)
	for _, title := range regexp.MustCompile(`(?m)^\[(.*)\]$`).FindAllStringSubmatch(helpTexts, -1) {
		if !titles[title[1]] {
			t.Errorf("help.txt has a text of %q, which is no command", title[1])
		}
	}
	// The negative control.
	for line, want := range map[string]string{"pawl runs lst": "lst", "pawl runs list": "is of pawl runs list",
		"ls": "no command of pawl"} {
		if w := led(line, "run"); !strings.Contains(w, want) {
			t.Errorf("%s: got %q, want something with %q", line, w, want)
		}
	}
}

// led returns the fault of an example of a command. Empty means no fault.
func led(line, path string) string {
	for _, words := range shellCommands(line) {
		if words[0] != "pawl" {
			continue
		}
		sys := &cli.System{Out: io.Discard, Err: io.Discard, Env: func(string) string { return "" }}
		k, err := parser(sys, words[1:]...)
		if err != nil {
			return err.Error()
		}
		ctx, err := k.Parse(words[1:])
		if err != nil {
			return err.Error()
		}
		if got := ctx.Selected().FullPath(); !strings.HasPrefix(got+" ", strings.TrimSpace("pawl "+path)+" ") {
			return "it is of " + got
		}
		return ""
	}
	return "there is no command of pawl in it"
}
