package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/internal/test/docgen"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/sandbox"
	"github.com/pawl-go/pawl/tools/outside"
	"go.yaml.in/yaml/v3"
)

// TestSnippets checks every block of code in README.md, docs, docs/guide and docs/from by its
// class, the first word after its fence:
//
//	go       follows a line <!-- code: FILE --> and is a copy of compiled code, see
//	         internal/test/docgen
//	yaml     is an agent's file without findings of pawl check; with the word tools (or
//	         tools.yaml) it defines tools, with part it is a part of an agent's file, with other
//	         it is any YAML
//	json     is JSON; jsonl has a JSON value a line
//	sh       is for a shell: its pawl commands parse, and the programs and files it names exist;
//	         commands that need no key and no network are run, unless the word shown follows sh
//	console  is a session: the commands after "$ " are run, and print the lines below them. "…"
//	         matches any text, and any lines if it has a line of its own; times may differ
//	python   is a program, and so is js
//	text     is none of these, such as pictures and output that other tests compare
//
// A word with a dot after the class is a file name: the block is stored as that file in the folder
// of the page, in which its commands run. The folder has README.md and the examples, too.
func TestSnippets(t *testing.T) {
	soak.Sequential(t)
	names := []string{"README.md"}
	for _, dir := range []string{"docs", "docs/guide", "docs/from"} {
		found, err := filepath.Glob(filepath.Join("..", "..", dir, "*.md"))
		if err != nil || len(found) == 0 {
			t.Fatalf("found no pages in %s: %v", dir, err)
		}
		for _, name := range found {
			names = append(names, dir+"/"+filepath.Base(name))
		}
	}
	for _, name := range names {
		t.Run(strings.TrimPrefix(name, "docs/"), func(t *testing.T) {
			t.Parallel() // the commands of a page run in a folder of its own
			if err := sandbox.Check(sandbox.Strict); err != nil && needSandbox[name] {
				t.Skip(err)
			}
			b, err := os.ReadFile(filepath.Join("..", "..", name))
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range newPage(t, name).check(string(b)) {
				t.Error(w)
			}
		})
	}
}

// needSandbox are the pages whose agents have programs of the sandbox: `pawl check` looks for it.
var needSandbox = map[string]bool{"docs/guide/tools.md": true, "docs/guide/coding.md": true}

// page is a page under check, with the folder in which its commands run.
type page struct {
	name string
	dir  string
	env  []string
}

func newPage(t *testing.T, name string) *page {
	t.Helper()
	p := &page{name: name, dir: t.TempDir()}
	home := t.TempDir()
	p.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "XDG_DATA_HOME=" +
		filepath.Join(home, "data"), "TERM=dumb", "TZ=UTC", "LANG=C.UTF-8", "GORACE=atexit_sleep_ms=0"}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(p.dir, "examples"), os.DirFS(filepath.Join(root, "examples"))); err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "README.md"), readme, 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

// check returns the faults of the page's blocks, each with its line.
func (p *page) check(text string) []string {
	blocks, err := docgen.Blocks(text)
	if err != nil {
		return []string{p.name + ": " + err.Error()}
	}
	var wrong []string
	// the first version of a file exists first; later versions replace it in their order
	for _, b := range slices.Backward(blocks) {
		if err := p.keep(b); err != nil {
			return []string{p.name + ": " + err.Error()}
		}
	}
	for _, b := range blocks {
		err := p.keep(b)
		if err == nil {
			err = p.block(b)
		}
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s:%d: %v", p.name, b.Line, err))
		}
	}
	return wrong
}

// keep writes a block that has the name of a file.
func (p *page) keep(b docgen.Block) error {
	if !strings.Contains(b.Name, ".") {
		return nil
	}
	name := filepath.Join(p.dir, filepath.FromSlash(b.Name))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(b.Text), 0o644)
}

// block returns the faults of one block.
func (p *page) block(b docgen.Block) error {
	switch b.Class {
	case "text", "csv":
		return nil
	case "go":
		if !b.Marked {
			return errors.New("Go code without a line <!-- code: FILE --> above it: nothing checks that it compiles")
		}
		return nil // internal/test/docgen compares it
	case "yaml":
		return p.yaml(b)
	case "json":
		return validJSON(b.Text)
	case "jsonl":
		for l := range strings.Lines(b.Text) {
			if err := validJSON(l); err != nil {
				return err
			}
		}
		return nil
	case "sh":
		return p.shell(b)
	case "console":
		return p.console(b.Text)
	case "python":
		return compiles("/usr/bin/python3", b.Text, "-c", "import ast,sys; ast.parse(sys.stdin.read())")
	case "js":
		return compiles("node", b.Text, "--check", "--input-type=module", "-")
	case "":
		return errors.New("a block of code without a class, or code that is only indented: write ```go, yaml, json, jsonl, sh, console, python, js or, for what nothing can check, text")
	}
	return fmt.Errorf("nobody knows how to check the class %s: there are go, yaml, json, jsonl, sh, console, python, js, csv and text", b.Class)
}

func validJSON(text string) error {
	var v any
	return json.Unmarshal([]byte(text), &v)
}

// compiles asks another program whether the text is right; where there is none, it is.
func compiles(program, text string, args ...string) error {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil
	}
	c := exec.Command(path, args...)
	c.Stdin = strings.NewReader(text)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, out)
	}
	return nil
}

// yaml checks YAML as pawl check does, with keys set to anything.
func (p *page) yaml(b docgen.Block) error {
	text, name := b.Text, b.Name
	// The page itself checks a suite, with pawl eval.
	if strings.HasSuffix(name, ".eval.yaml") {
		name = "other"
	}
	switch strings.TrimSuffix(name, ".yaml") {
	case "tools":
		_, err := outside.Parse([]byte(text))
		return err
	case "other":
		var v any
		return yaml.Unmarshal([]byte(text), &v)
	case "part":
		for _, l := range []string{"agent: it\n", "model: openai:gpt-6.1-terra\n"} {
			if key, _, _ := strings.Cut(l, " "); !strings.Contains("\n"+text, "\n"+key) {
				text = l + text
			}
		}
		name = ""
	}
	if name == "" {
		name = "block.yaml"
	}
	getenv := func(name string) string {
		if strings.HasSuffix(name, "_KEY") || strings.HasSuffix(name, "_TOKEN") {
			return "test-key"
		}
		return ""
	}
	file, err := agentfile.Parse(filepath.Join(p.dir, name), []byte(text), &agentfile.LoadOptions{Getenv: getenv})
	if err != nil {
		return err
	}
	for _, a := range file.Agents {
		if wrong := a.Check(context.Background(), &agentfile.Options{Getenv: getenv}); len(wrong) > 0 {
			return wrong
		}
	}
	return nil
}

// shell checks what stands in the block, and runs what can be run.
func (p *page) shell(b docgen.Block) error {
	if err := compiles("bash", b.Text, "-n"); err != nil {
		return err
	}
	for _, c := range shellCommands(b.Text) {
		if err := p.command(c, b.Name != "shown"); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(c, " "), err)
		}
	}
	return nil
}

// programs are what commands of the pages may name besides pawl and what is in the project.
var programs = strings.Fields("apt-get bash cat cd cp curl docker echo eval export fish git grep head hyperfine jq kill ls man mkdir mv node npm npx openssl pg_dump pg_restore podman psql rm sleep source sqlite3 sudo tail temporal tmux zsh your-agent")

// command checks a command line.
func (p *page) command(words []string, run bool) error {
	if slices.Equal(words[:min(3, len(words))], []string{"go", "run", "./cmd/pawl"}) {
		words = append([]string{"pawl"}, words[3:]...)
	}
	switch name := words[0]; {
	case name == "pawl":
		return p.pawl(words[1:], run)
	case name == "go":
		for _, w := range words[2:] {
			if dir, _, _ := strings.Cut(w, "/..."); strings.HasPrefix(w, "./") && !exists(dir) {
				return fmt.Errorf("there is no folder %s", dir)
			}
		}
		return nil
	case name == "make":
		b, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
		if err != nil {
			return err
		}
		for _, w := range words[1:] {
			if !strings.Contains(w, "=") && !strings.Contains(string(b), "\n"+w+":") {
				return fmt.Errorf("the Makefile has no target %s", w)
			}
		}
		return nil
	case strings.HasPrefix(name, "scripts/"):
		if !exists(name) {
			return errors.New("there is no such script")
		}
		return nil
	case slices.Contains(programs, name) || strings.HasPrefix(name, ".bin/"):
		return nil
	}
	return fmt.Errorf("nobody knows the program %s: if it is one, add it to programs in cmd/pawl/snippets_test.go",
		words[0])
}

// exists reports whether the project has a file or folder.
func exists(name string) bool {
	_, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(name)))
	return err == nil
}

// anywhere are the commands that need no key, no network and nothing but the files of the page; so
// do runs of models whose turns are written.
var anywhere = []string{"check", "init", "tools list", "tools show", "tools call", "tools lint", "models list",
	"models show", "version", "demo"}

// pawl checks a command line of pawl's, and runs it where that can be done anywhere.
func (p *page) pawl(args []string, run bool) error {
	k, err := parser(&cli.System{Out: io.Discard, Err: io.Discard, Env: func(string) string { return "" }}, args...)
	if err != nil {
		return err
	}
	path := ""
	if !slices.Contains(args, "--help") {
		ctx, err := k.Parse(args)
		if err != nil {
			return misused(err)
		}
		path = strings.TrimPrefix(ctx.Selected().FullPath(), "pawl ")
	}
	all := strings.Join(args, " ")
	written := path == "run" && (strings.Contains(all, "script:") || strings.Contains(all, "examples/") &&
		!strings.Contains(all, "--model"))
	if !run || !written && !slices.Contains(anywhere, path) || strings.ContainsAny(all, "…") ||
		strings.Contains(all, "--mcp") || strings.Contains(all, "--connect") {
		return nil
	}
	out, err := p.run(exec.Command("pawl", args...))
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// run runs a command in the folder of the page, and returns all that it says.
func (p *page) run(c *exec.Cmd) (string, error) {
	var out bytes.Buffer
	c.Dir, c.Env, c.Stdout, c.Stderr = p.dir, p.env, &out, &out
	c.WaitDelay = 10 * time.Second
	timer := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
	defer timer.Stop()
	err := c.Run()
	return out.String(), err
}

// console runs a session, and compares what it says. How a command ended shows in what it said.
func (p *page) console(text string) error {
	if !strings.HasPrefix(text, "$ ") {
		return errors.New(`a session begins with a command, behind "$ "`)
	}
	for _, part := range strings.Split("\n"+text, "\n$ ")[1:] {
		command, want, _ := strings.Cut(part, "\n")
		for strings.HasSuffix(command, `\`) {
			more, rest, _ := strings.Cut(want, "\n")
			command, want = command+"\n"+more, rest
		}
		command = regexp.MustCompile(`^go run \./cmd/pawl\b`).ReplaceAllString(command, "pawl")
		got, err := p.run(exec.Command("bash", "-c", command))
		var status *exec.ExitError
		if err != nil && !errors.As(err, &status) {
			return fmt.Errorf("%s: %w", command, err)
		}
		if !says(got, want) {
			return fmt.Errorf("%s: this is not what it says. It says\n%s\nand the page says\n%s", command, got, want)
		}
	}
	return nil
}

var (
	anyTime = regexp.MustCompile(`[0-9]+(\\\.[0-9]+)? ?(ms|µs|ns|s)\b`)
	space   = regexp.MustCompile(`[ \t]+\n`)
)

// says reports whether got is what a page says, where … stands for any text, and alone in a line
// for any lines.
func says(got, want string) bool {
	var b strings.Builder
	b.WriteString(`\A`)
	for l := range strings.Lines(strings.TrimRight(want, "\n") + "\n") {
		l = strings.TrimRight(l, " \t\n")
		if strings.TrimSpace(l) == "…" {
			b.WriteString(`(?:[^\n]*\n)*?`)
			continue
		}
		l = anyTime.ReplaceAllString(regexp.QuoteMeta(l), `[0-9.]+ ?(?:ms|µs|ns|s)`)
		b.WriteString(strings.ReplaceAll(l, "…", `[^\n]*`) + `\n`)
	}
	b.WriteString(`\z`)
	got = space.ReplaceAllString(strings.TrimRight(got, "\n")+"\n", "\n")
	if strings.TrimSpace(want) == "" {
		return strings.TrimSpace(got) == ""
	}
	return regexp.MustCompile(b.String()).MatchString(got)
}

// The negative control: each of these blocks is wrong, and is said to be.
func TestWrongSnippets(t *testing.T) {
	soak.Sequential(t)
	for text, want := range map[string]string{
		"```\nx\n```\n":                                                       "without a class",
		"text\n\n    pawl demo\n":                                             "without a class",
		"```ini\nx=1\n```\n":                                                  "class ini",
		"```go\nx := 1\n```\n":                                                "Go code without",
		"```json\n{\"a\": …}\n```\n":                                          "invalid character",
		"```jsonl\n{}\n{\n```\n":                                              "unexpected end",
		"```yaml\nagent: a\nmodl: openai:x\n```\n":                            "modl",
		"```yaml\nagent: a\nmodel: nobody:x\n```\n":                           "nobody",
		"```yaml part\nlimits: {round: 3}\n```\n":                             "round",
		"```yaml tools\ntools: [{commnd: {}}]\n```\n":                         "commnd",
		"```yaml other\na: [\n```\n":                                          "yaml",
		"```sh\npawl rn x\n```\n":                                             "rn",
		"```sh\nX=1 pawl run --modl x y | head\n```\n":                        "--modl",
		"```sh\necho $(pawl runs forkk)\n```\n":                               "forkk",
		"```sh\necho 'a\n```\n":                                               "bash",
		"```sh\nmake nothing\n```\n":                                          "no target nothing",
		"```sh\ngo run ./cmd/powl\n```\n":                                     "no folder ./cmd/powl",
		"```sh\nscripts/gone\n```\n":                                          "no such script",
		"```sh\nfrobnicate\n```\n":                                            "frobnicate",
		"```sh\npawl run examples/team.yaml --agent nobody \"Hello.\"\n```\n": "nobody",
		"```sh\npawl tools show gone_tool\n```\n":                             "gone_tool",
		"```console\n$ pawl version --help\nnothing\n```\n":                   "not what it says",
		"```console\npawl version\n```\n":                                     "begins with a command",
		"```python\nx = (\n```\n":                                             "SyntaxError",
		"```js\nlet = (\n```\n":                                               "SyntaxError",
		"```sh\nls\n":                                                         "not closed",
	} {
		if strings.Contains(text, "```python") && !exists("/usr/bin/python3") && compiles("/usr/bin/python3", "(",
			"-") == nil || strings.Contains(text, "```js") && compiles("node", "(", "-") == nil {
			t.Logf("cannot be tried here: %q", text)
			continue
		}
		got := strings.Join(newPage(t, "page.md").check(text), "\n")
		if !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want something with %q", text, got, want)
		}
	}
	// And these are right.
	for _, text := range []string{
		"```yaml agent.yaml\nagent: a\nmodel: script:turns.json\n```\n```json turns.json\n{\"turns\": []}\n```\n",
		"```sh\n# a comment\npawl run --model openai:x --tools file \"It's here\" > out.txt 2>&1 # ran\nOPENAI_API_KEY=x pawl \\\n  version && echo done\n```\n",
		"```console\n$ pawl tools call file_read '{\"path\":\"note.txt\"}'\n…rains…\n$ echo 12 ms\n9.5 ms\n$ printf 'a\\nb\\nc\\n'\na\n…\n```\n```text note.txt\nIt rains.\n```\n",
	} {
		if got := newPage(t, "page.md").check(text); got != nil {
			t.Errorf("%s\ngot %q, want nothing", text, got)
		}
	}
}
