package docgen

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// workflow is the part of a workflow of GitHub that the tests read.
type workflow struct {
	Name string `yaml:"name"`
	On   any    `yaml:"on"`
	Jobs map[string]struct {
		RunsOn   string `yaml:"runs-on"`
		Timeout  int    `yaml:"timeout-minutes"`
		Strategy struct {
			Matrix map[string][]string `yaml:"matrix"`
		} `yaml:"strategy"`
		Steps []struct {
			Uses string `yaml:"uses"`
			Run  string `yaml:"run"`
		} `yaml:"steps"`
	} `yaml:"jobs"`
}

var (
	matrixValue = regexp.MustCompile(`\$\{\{ matrix\.(\w+) \}\}`)
	makeTarget  = regexp.MustCompile(`\bmake ([a-z][a-z-]*)`)
	scriptName  = regexp.MustCompile(`(?:^|\s)(scripts/[a-z-]+)`)
)

// commands returns what the steps of a workflow run, with the values of their matrix, and the
// faults of its form.
func (w *workflow) commands() (all, wrong []string) {
	if w.Name == "" || w.On == nil || len(w.Jobs) == 0 {
		wrong = append(wrong, "a workflow has a name, on and jobs")
	}
	for name, job := range w.Jobs {
		if job.RunsOn == "" || job.Timeout == 0 || len(job.Steps) == 0 {
			wrong = append(wrong, fmt.Sprintf("job %s: a job has runs-on, timeout-minutes and steps", name))
		}
		for _, step := range job.Steps {
			if (step.Uses == "") == (step.Run == "") {
				wrong = append(wrong, fmt.Sprintf("job %s: a step has either uses or run", name))
			}
			all = append(all, expanded(step.Run, job.Strategy.Matrix)...)
		}
	}
	return all, wrong
}

// expanded returns a command with each value of the matrix.
func expanded(command string, matrix map[string][]string) []string {
	m := matrixValue.FindStringSubmatch(command)
	if m == nil {
		return []string{command}
	}
	var all []string
	for _, value := range matrix[m[1]] {
		all = append(all, expanded(strings.ReplaceAll(command, m[0], value), matrix)...)
	}
	return all
}

// unknown returns the make targets and scripts that a text names and the project does not have.
func unknown(text, makefile string, is func(string) bool) []string {
	var wrong []string
	for _, m := range makeTarget.FindAllStringSubmatch(text, -1) {
		if !strings.Contains("\n"+makefile, "\n"+m[1]+":") {
			wrong = append(wrong, "the Makefile has no target "+m[1])
		}
	}
	for _, m := range scriptName.FindAllStringSubmatch(text, -1) {
		if !is(m[1]) {
			wrong = append(wrong, "there is no "+m[1])
		}
	}
	return wrong
}

func executable(name string) bool {
	info, err := os.Stat(filepath.Join(root, name))
	return err == nil && info.Mode()&0o111 != 0
}

// The workflows parse, and the targets and scripts that they run exist.
func TestWorkflows(t *testing.T) {
	makefile, err := read("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("found %q, want check, nightly and release: %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var w workflow
		if err := yaml.Unmarshal(text, &w); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		commands, wrong := w.commands()
		for _, c := range commands {
			wrong = append(wrong, unknown(c, makefile, executable)...)
		}
		for _, fault := range wrong {
			t.Errorf("%s: %s", filepath.Base(file), fault)
		}
	}
}

// The pages for contributors name targets that exist.
func TestTargetsOfPages(t *testing.T) {
	makefile, err := read("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"README.md", "CONTRIBUTING.md"} {
		text, err := read(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, span := range regexp.MustCompile("`[^`\n]*`|(?s)```sh.*?```").FindAllString(text, -1) {
			for _, fault := range unknown(span, makefile, executable) {
				t.Errorf("%s: %s", page, fault)
			}
		}
	}
}

// The forms for issues parse, and their fields have names and labels.
func TestIssueForms(t *testing.T) {
	for _, name := range []string{"bug.yml", "idea.yml"} {
		text, err := read(".github/ISSUE_TEMPLATE/" + name)
		if err != nil {
			t.Fatal(err)
		}
		var form struct {
			Name        string `yaml:"name"`
			Description string `yaml:"description"`
			Body        []struct {
				Type       string            `yaml:"type"`
				ID         string            `yaml:"id"`
				Attributes map[string]string `yaml:"attributes"`
			} `yaml:"body"`
		}
		if err := yaml.Unmarshal([]byte(text), &form); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if form.Name == "" || form.Description == "" || len(form.Body) == 0 {
			t.Errorf("%s: a form has a name, a description and a body", name)
		}
		for _, field := range form.Body {
			if field.Type != "markdown" && (field.ID == "" || field.Attributes["label"] == "") {
				t.Errorf("%s: a field %s lacks its id or label", name, field.Type)
			}
		}
	}
}

// The negative control of the two tests above.
func TestWorkflowFaults(t *testing.T) {
	const text = `
name: bad
on: push
jobs:
  a:
    runs-on: linux
    strategy: {matrix: {target: [test, rase]}}
    steps:
      - run: make ${{ matrix.target }}
      - run: scripts/realease v1
      - {uses: x, run: y}
`
	var w workflow
	if err := yaml.Unmarshal([]byte(text), &w); err != nil {
		t.Fatal(err)
	}
	commands, wrong := w.commands()
	for _, c := range commands {
		wrong = append(wrong, unknown(c, "test:\n", func(string) bool { return false })...)
	}
	slices.Sort(wrong)
	want := []string{
		"job a: a job has runs-on, timeout-minutes and steps",
		"job a: a step has either uses or run",
		"the Makefile has no target rase",
		"there is no scripts/realease",
	}
	if !slices.Equal(wrong, want) {
		t.Errorf("got %q, want %q", wrong, want)
	}
}
