package release

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/test/parts"
	"github.com/pawl-go/pawl/internal/test/soak"
)

const (
	root    = "../../.."
	module  = "github.com/pawl-go/pawl"
	version = "v0.99.0"
)

// The tags of a version.
var tags = []string{version, "durable/temporal/" + version, "cmd/pawl/" + version}

// project is a copy of the project: a git repository of its own.
type project struct {
	t   *testing.T
	dir string
}

// newProject commits files, by path. Scripts are executable.
func newProject(t *testing.T, files map[string]string) *project {
	t.Helper()
	parts.Program(t, "bash", "bash")
	parts.Program(t, "git", "git")
	p := &project{t, t.TempDir()}
	for name, text := range files {
		p.write(name, text)
	}
	p.git("init", "-q")
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "first")
	return p
}

// small has what a release reads and writes, and nothing else of the project. Its try-install is
// the shell text install.
func small(t *testing.T, install string) *project {
	t.Helper()
	files := map[string]string{
		"scripts/try-install":      "#!/usr/bin/env bash\n" + install + "\n",
		"CHANGELOG.md":             "# Changelog\n\n## 0.99.0 (not yet released)\n\nNews.\n\n## 0.1.0 (2026-01-01)\n",
		"doc.go":                   "package pawl\n",
		"durable/temporal/temp.go": "package temporal\n",
		"cmd/pawl/main.go":         "package main\n\nfunc main() {}\n",
	}
	for _, name := range []string{"scripts/release", "LICENSE", "go.work", "go.mod", "go.sum", "durable/temporal/go.mod",
		"durable/temporal/go.sum", "cmd/pawl/go.mod", "cmd/pawl/go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
	}
	return newProject(t, files)
}

func (p *project) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		p.t.Fatal(err)
	}
}

func (p *project) read(name string) string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// run executes a program in the repository and returns what it prints.
func (p *project) run(name string, args ...string) (string, error) {
	c := exec.CommandContext(p.t.Context(), name, args...)
	c.Dir = p.dir
	c.Env = append(os.Environ(),
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		"GIT_CONFIG_GLOBAL=/dev/null", "GOPROXY=off", "GOSUMDB=off")
	out, err := c.CombinedOutput()
	return string(out), err
}

func (p *project) git(args ...string) string {
	p.t.Helper()
	out, err := p.run("git", args...)
	if err != nil {
		p.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(out)
}

// state is what a trial may not change: the commit, the tags, and the files.
func (p *project) state() string {
	p.t.Helper()
	return p.git("rev-parse", "HEAD") + p.git("tag") + p.git("status", "--porcelain")
}

// A trial prints the tags and changes nothing.
func TestTrial(t *testing.T) {
	t.Parallel()
	p := small(t, `echo "installs $1"`)
	before := p.state()
	out, err := p.run("scripts/release", version)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"installs " + version, "tags: " + strings.Join(tags, " "), "This was a trial"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	if p.state() != before {
		t.Errorf("a trial changes %q into %q", before, p.state())
	}
}

// With -tag, one commit has the tags of all modules, which require each other at that version.
func TestTag(t *testing.T) {
	t.Parallel()
	p := small(t, "")
	before := p.git("rev-parse", "HEAD")
	if out, err := p.run("scripts/release", "-tag", version); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	head := p.git("rev-parse", "HEAD")
	if p.git("rev-parse", "HEAD^") != before || p.git("status", "--porcelain") != "" {
		t.Errorf("HEAD is %s, with changes %q; want one commit after %s", head, p.git("status", "--porcelain"), before)
	}
	for _, tag := range tags {
		if got := p.git("rev-parse", tag+"^{commit}"); got != head {
			t.Errorf("the tag %s names %s, want %s", tag, got, head)
		}
	}
	heading := "\n## 0.99.0 (" + time.Now().UTC().Format(time.DateOnly) + ")\n"
	if changelog := p.read("CHANGELOG.md"); !strings.Contains(changelog, heading) {
		t.Errorf("CHANGELOG.md lacks %q:\n%s", heading, changelog)
	}

	for name, want := range map[string][]string{
		"go.work":                 {module + " " + version + " => ./", module + "/durable/temporal " + version + " => ./durable/temporal"},
		"durable/temporal/go.mod": {module + " " + version},
		"cmd/pawl/go.mod":         {module + " " + version, module + "/durable/temporal " + version},
		"go.sum":                  nil,
		"durable/temporal/go.sum": {module + " " + version + " h1:", module + " " + version + "/go.mod h1:"},
		"cmd/pawl/go.sum": {module + " " + version + " h1:", module + " " + version + "/go.mod h1:",
			module + "/durable/temporal " + version + " h1:", module + "/durable/temporal " + version + "/go.mod h1:"},
	} {
		lines := regexp.MustCompile(`(?m)^(?:require )?\s*(`+module+`\S* v.*)$`).FindAllStringSubmatch(p.read(name), -1)
		if len(lines) != len(want) {
			t.Errorf("%s has the lines %q, want %q", name, lines, want)
			continue
		}
		for i, line := range lines {
			if !strings.HasPrefix(line[1], want[i]) {
				t.Errorf("%s has the line %q, want %q", name, line[1], want[i])
			}
		}
	}

	// The next version starts from what this one wrote.
	p.write("CHANGELOG.md", "## 0.100.0 (not yet released)\n")
	p.git("commit", "-q", "-a", "-m", "news")
	if out, err := p.run("scripts/release", "v0.100.0"); err != nil {
		t.Errorf("the next version: %v\n%s", err, out)
	}
}

// What is not ready for a release is refused, and nothing changes.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args    []string
		install string
		prepare func(*project)
		want    string
	}{
		"no version":     {nil, "", nil, "hint: scripts/release [-tag] vX.Y.Z"},
		"another form":   {[]string{"0.99.0"}, "", nil, "'0.99.0' is no version"},
		"a major":        {[]string{"v2.0.0"}, "", nil, "'v2.0.0' is no version"},
		"two versions":   {[]string{version, version}, "", nil, "is no version"},
		"no section":     {[]string{"v0.98.0"}, "", nil, "CHANGELOG.md has no section of 0.98.0"},
		"released":       {[]string{"v0.1.0"}, "", nil, "CHANGELOG.md has no section of 0.1.0"},
		"a change":       {[]string{version}, "", func(p *project) { p.write("new.go", "package pawl\n") }, "without a commit"},
		"a tag":          {[]string{version}, "", func(p *project) { p.git("tag", tags[2]) }, "the tag " + tags[2] + " exists"},
		"does not build": {[]string{version}, "echo does not build; exit 1", nil, "does not build"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := small(t, tt.install)
			if tt.prepare != nil {
				tt.prepare(p)
			}
			before := p.state()
			out, err := p.run("scripts/release", append([]string{"-tag"}, tt.args...)...)
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || !strings.Contains(out, tt.want) {
				t.Errorf("%v, want an exit status and %q:\n%s", err, tt.want, out)
			}
			if p.state() != before {
				t.Errorf("it changes %q into %q", before, p.state())
			}
		})
	}
}

// The command is installed from a module proxy, and a program that requires durable/temporal runs,
// at the tags that a release of this checkout makes.
func TestInstall(t *testing.T) {
	soak.Only(t, "the command and all packages are compiled at a new version")
	soak.Sequential(t)
	p := newProject(t, checkout(t))
	out, err := p.run("scripts/release", version)
	if strings.Contains(out, "module lookup disabled") {
		t.Skip("the module cache has not all modules of cmd/pawl and durable/temporal")
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Log(out)
}

// checkout returns the files of this checkout, with a section of the changelog for the version.
func checkout(t *testing.T) map[string]string {
	t.Helper()
	parts.Program(t, "git", "git")
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}

	files := map[string]string{}
	for _, name := range strings.FieldsFunc(string(names), func(r rune) bool { return r == 0 }) {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err == nil {
			files[name] = string(text)
		}
	}
	if len(files) < 1000 {
		t.Fatalf("found only %q", slices.Sorted(maps.Keys(files)))
	}
	files["CHANGELOG.md"] = fmt.Sprintf("## %s (not yet released)\n\n%s", strings.TrimPrefix(version, "v"), files["CHANGELOG.md"])
	return files
}
