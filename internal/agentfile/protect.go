package agentfile

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/pawl-go/pawl/internal/protect"
	"github.com/pawl-go/pawl/tools/outside"
)

// Protected returns the places that the file tools and shell commands of a do not change, for
// people. Nil means that a has no such tools, or that its directory does not exist.
func (a *Agent) Protected() []string {
	if !slices.ContainsFunc(a.Tools, func(t Tool) bool { return t.Set == "file" || t.Set == "shell" }) {
		return nil
	}
	places, err := protect.New(a.Directory(), a.protected())
	if err != nil {
		return nil
	}
	list := places.List()
	if places.Git() && slices.ContainsFunc(a.Tools, func(t Tool) bool { return t.Set == "shell" }) {
		list = append(list, "for commands, existing repositories in "+protect.Searched)
	}
	return list
}

// protected returns the entries of Protect, and the files that make a what it is: its own file, the
// files of its leaders and workers, and all files that they name.
func (a *Agent) protected() []string {
	list := slices.Clone(a.Protect)
	seen := map[*Agent]bool{}
	var add func(a *Agent)
	add = func(a *Agent) {
		if a == nil || seen[a] {
			return
		}
		seen[a] = true
		list = a.loaded(list)
		for _, leader := range a.leaders {
			add(leader)
		}
		for _, w := range a.group().Workers {
			add(w.of)
		}
	}
	add(a)
	return list
}

// loaded appends the file of a and the files that it names to list.
func (a *Agent) loaded(list []string) []string {
	add := func(name string) {
		if abs, err := filepath.Abs(name); err == nil && name != "" {
			list = append(list, abs)
		}
	}
	definitions := func(dir string, defs []outside.Definition) {
		for _, d := range defs {
			if d.OpenAPI != nil {
				add(resolve(dir, d.OpenAPI.Spec))
			}
			if c := d.Command; c != nil && len(c.Run) > 0 {
				list = program(program(list, dir, c.Run[:1]), resolve(dir, cmp.Or(c.Dir, ".")), c.Run)
				add(resolve(dir, c.Dir))
			}
		}
	}
	add(a.file)
	add(a.LockFile())
	add(a.relative("catalog", a.Catalog))
	if a.AgentsMD {
		add(filepath.Join(a.Directory(), agentsMD))
	}
	if a.Output != nil {
		add(a.relative("output", a.Output.File))
	}
	for _, name := range a.folders() {
		add(name)
	}
	for _, m := range a.Model {
		if name, ok := strings.CutPrefix(m.Name, scripted); ok {
			add(a.relative("model", name))
		}
	}
	for _, t := range a.Tools {
		definitions(a.dir, []outside.Definition{{Command: t.Command, OpenAPI: t.OpenAPI}})
	}
	for _, name := range a.ToolFiles {
		file := a.relative("tool_files", name)
		add(file)
		if text, err := os.ReadFile(file); err == nil {
			if defs, err := outside.Parse(text); err == nil {
				definitions(filepath.Dir(file), defs)
			}
		}
	}
	for _, s := range a.MCP() {
		if s.Command != "" {
			list = program(list, s.Dir, append([]string{s.Command}, s.Args...))
			add(s.Dir)
		}
	}
	return list
}

// scripts are the endings of programs that need no right to execute.
var scripts = []string{"", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua", ".sh", ".jar"}

// program appends the files that a command line names in dir. They are started outside of the
// sandbox, or with the rights of a tool. The paths in a word, such as a line for sh -c or
// --config=FILE, count, and so do modules (-m).
func program(list []string, dir string, words []string) []string {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return list
	}
	line := strings.Join(words, " ")
	python := strings.Contains(line, "py") || strings.Contains(line, "uv")
	from := []string{dir}
	before := ""
	for _, word := range words {
		parts := strings.FieldsFunc(word, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\"'`;&|()<>=", r) })
		for _, part := range append([]string{word}, parts...) {
			if before == "-m" && python {
				first, _, _ := strings.Cut(part, ".")
				list = append(list, "+"+filepath.Join(dir, first+".py"), filepath.Join(dir, first))
			}
			before = part
			for _, d := range from {
				at := resolve(d, part)
				info, err := os.Stat(at)
				switch {
				case err != nil:
				case info.IsDir() && part != word: // cd
					from = append(from, at)
				case !info.Mode().IsRegular():
				case info.Mode()&0o111 != 0 || slices.Contains(scripts, filepath.Ext(at)):
					list = append(list, "+"+at)
				default:
					list = append(list, at)
				}
			}
		}
	}
	return list
}

func resolve(dir, name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// protection returns what protected returns, and the finding for a wrong entry of protect.
func (a *Agent) protection() ([]string, error) {
	list, dir := a.protected(), a.Directory()
	if _, err := os.Stat(dir); err != nil {
		return list, nil // reported as the wrong root
	}
	if _, err := protect.New(dir, list); err != nil {
		return nil, finding(CodeBadValue, "protect", "", "%s", strings.TrimPrefix(err.Error(), "protect: "))
	}
	return list, nil
}
