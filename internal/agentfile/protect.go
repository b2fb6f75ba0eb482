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
	places, err := protect.New(a.Directory(), a.protected(), protect.Own{})
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
	for _, member := range a.family() {
		list = member.loaded(list)
	}
	return list
}

// loaded appends the file of a and the files that it names to list.
func (a *Agent) loaded(list []string) []string {
	own := files{list}
	own.add(a.file)
	own.add(a.LockFile())
	own.add(a.relative("catalog", a.Catalog))
	if a.AgentsMD {
		own.add(filepath.Join(a.Directory(), agentsMD))
	}
	if a.Output != nil {
		own.add(a.relative("output", a.Output.File))
	}
	for _, name := range a.folders() {
		own.add(name)
	}
	for _, m := range a.Model {
		if name, ok := strings.CutPrefix(m.Name, scripted); ok {
			own.add(a.relative("model", name))
		}
	}

	for _, t := range a.Tools {
		own.definition(a.dir, outside.Definition{Command: t.Command, OpenAPI: t.OpenAPI})
	}
	for _, name := range a.ToolFiles {
		own.definitions(a.relative("tool_files", name))
	}
	for _, s := range a.MCP() {
		if s.Command != "" {
			own.program(s.Dir, append([]string{s.Command}, s.Args...))
			own.add(s.Dir)
		}
	}
	return own.list
}

// files collects files that an agent must not change, as entries of package protect: a path, or +
// and the path of a program.
type files struct{ list []string }

// add adds a file or folder. An empty name means none.
func (f *files) add(name string) {
	if abs, err := filepath.Abs(name); err == nil && name != "" {
		f.list = append(f.list, abs)
	}
}

// definitions adds a file of tool definitions, and the files that it names.
func (f *files) definitions(file string) {
	f.add(file)
	text, err := os.ReadFile(file)
	if err != nil {
		return // Build reports it
	}
	defs, err := outside.Parse(text)
	if err != nil {
		return // Build reports it
	}
	for _, d := range defs {
		f.definition(filepath.Dir(file), d)
	}
}

// definition adds the files that a definition in dir names.
func (f *files) definition(dir string, d outside.Definition) {
	if d.OpenAPI != nil {
		f.add(resolve(dir, d.OpenAPI.Spec))
	}
	if c := d.Command; c != nil && len(c.Run) > 0 {
		f.program(dir, c.Run[:1])
		f.program(resolve(dir, cmp.Or(c.Dir, ".")), c.Run)
		f.add(resolve(dir, c.Dir))
	}
}

// scripts are the endings of programs that need no right to execute.
var scripts = []string{"", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua", ".sh", ".jar"}

// program adds the files that a command line names in dir. They are started outside of the sandbox,
// or with the rights of a tool. The paths in a word, such as a line for sh -c or --config=FILE,
// count, and so do modules (-m).
func (f *files) program(dir string, words []string) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return
	}

	line := strings.Join(words, " ")
	isPython := strings.Contains(line, "py") || strings.Contains(line, "uv")
	dirs := []string{dir} // where a command may run: dir, and folders that the line names (cd)
	before := ""
	for _, word := range words {
		for _, part := range append([]string{word}, strings.FieldsFunc(word, separates)...) {
			if before == "-m" && isPython {
				first, _, _ := strings.Cut(part, ".")
				f.list = append(f.list, "+"+filepath.Join(dir, first+".py"), filepath.Join(dir, first))
			}
			before = part

			for _, d := range dirs {
				at := resolve(d, part)
				info, err := os.Stat(at)
				switch {
				case err != nil:
				case info.IsDir() && part != word:
					dirs = append(dirs, at)
				case info.Mode().IsRegular() && runs(at, info.Mode()):
					f.list = append(f.list, "+"+at)
				case info.Mode().IsRegular():
					f.list = append(f.list, at)
				}
			}
		}
	}
}

// separates reports whether a shell may end a path at c.
func separates(c rune) bool {
	return unicode.IsSpace(c) || strings.ContainsRune("\"'`;&|()<>=", c)
}

// runs reports whether a file of this mode can be started as a program.
func runs(path string, mode os.FileMode) bool {
	return mode&0o111 != 0 || slices.Contains(scripts, filepath.Ext(path))
}

func resolve(dir, name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// protection returns what protected returns, and the finding for a wrong entry of protect.
func (a *Agent) protection() ([]string, error) {
	list := a.protected()
	dir := a.Directory()
	if _, err := os.Stat(dir); err != nil {
		return list, nil // reported as the wrong root
	}
	if _, err := protect.New(dir, list, protect.Own{}); err != nil {
		return nil, finding(CodeBadValue, "protect", "", "%s", strings.TrimPrefix(err.Error(), "protect: "))
	}
	return list, nil
}
