package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

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
	return places.List()
}

// protected returns the entries of Protect, and the files that make a what it is: its own file, the
// files of its leaders, and all files that it names.
func (a *Agent) protected() []string {
	list := slices.Clone(a.Protect)
	add := func(name string) {
		if abs, err := filepath.Abs(name); err == nil && name != "" {
			list = append(list, abs)
		}
	}
	// programs are started outside of the sandbox, or with the rights of a tool
	program := func(dir string, args []string) {
		for _, arg := range args {
			arg = resolve(dir, arg)
			if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() {
				add(arg)
			}
		}
	}
	definitions := func(dir string, defs []outside.Definition) {
		for _, d := range defs {
			if d.OpenAPI != nil {
				add(resolve(dir, d.OpenAPI.Spec))
			}
			if d.Command != nil {
				program(dir, d.Command.Run)
			}
		}
	}
	for _, f := range append(slices.Clone(a.leaders), a.file) {
		add(f)
	}
	add(a.LockFile())
	add(a.relative("catalog", a.Catalog))
	if a.Output != nil {
		add(a.relative("output", a.Output.File))
	}
	for _, name := range a.Skills {
		add(a.relative("skills", name))
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
			program(s.Dir, append([]string{s.Command}, s.Args...))
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

// unprotected returns the finding for a wrong entry of protect; nil if all are right.
func (a *Agent) unprotected() *Finding {
	_, err := protect.New(".", a.Protect)
	if err == nil {
		return nil
	}
	return finding(CodeBadValue, "protect", "", "%s", strings.TrimPrefix(err.Error(), "protect: "))
}
