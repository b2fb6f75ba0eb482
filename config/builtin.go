package config

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/sandbox"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/data"
	"github.com/pawl-go/pawl/tools/file"
	"github.com/pawl-go/pawl/tools/http"
	"github.com/pawl-go/pawl/tools/knowledge"
	"github.com/pawl-go/pawl/tools/search"
	"github.com/pawl-go/pawl/tools/shell"
)

// SetNames returns the names of the sets of built-in tools.
func SetNames() []string { return []string{"file", "data", "http", "search", "knowledge", "shell"} }

// Set is a set of tools under the name by which it was asked for.
type Set struct {
	Name  string
	Tools pawl.Toolset
}

// Builtin returns the sets of built-in tools that a names in Tools, each once, as a sets them up (Root, HTTPAllow, Sandbox, Store, Embed). Call closeSets when no
// call runs any more. What some of them are over is opened at the first call; with now at once, and what is not set up on this machine is then an
// error. getenv nil is os.Getenv. Errors are *Finding.
func (a *Agent) Builtin(getenv func(string) string, now bool) (sets []Set, closeSets func(), err error) {
	b := &builtin{agent: a, env: getenv, now: now}
	if b.env == nil {
		b.env = os.Getenv
	}
	for i, t := range a.Tools {
		name := strings.TrimSpace(t.Set)
		if name == "" || slices.ContainsFunc(sets, func(s Set) bool { return s.Name == name }) {
			continue
		}
		set, err := b.open(name)
		if err != nil {
			b.close()
			if f := new(Finding); errors.As(err, &f) && f.Path == "" {
				f.Path = index("tools", i)
			}
			return nil, nil, err
		}
		sets = append(sets, Set{name, set})
	}
	return sets, b.close, nil
}

// builtin opens sets for an agent.
type builtin struct {
	agent   *Agent
	env     func(string) string
	now     bool
	closers []io.Closer
}

func (b *builtin) close() {
	for _, c := range b.closers {
		c.Close()
	}
}

// open opens one set. An error without a path is about the name.
func (b *builtin) open(name string) (pawl.Toolset, error) {
	switch name {
	case "file":
		set, err := file.New(b.agent.root(), nil)
		if err != nil {
			return nil, b.noRoot(err)
		}
		b.closers = append(b.closers, set)
		return set, nil
	case "data":
		return data.New(), nil
	case "http":
		fetch, err := http.New(&http.Options{Allow: b.agent.HTTPAllow})
		if err != nil {
			return nil, finding(CodeBadValue, "http_allow", "", "%s", strings.TrimPrefix(err.Error(), "http tools: allow: "))
		}
		return fetch, nil
	case "search":
		return b.search()
	case "shell":
		return b.shell()
	case "knowledge":
		return b.knowledge()
	}
	return nil, unknownSet(name)
}

func unknownSet(name string) *Finding {
	hint := "there are: " + strings.Join(SetNames(), ", ")
	if near := nearest.Word(name, SetNames()); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return finding(CodeUnknownTool, "", hint, "no set of tools is named %q", name)
}

func (b *builtin) noRoot(err error) error {
	return finding(CodeBadFile, "root", "want a directory that is there", "%s: %s", b.agent.root(), cause(err))
}

// cause words an error about a directory by what is wrong with it.
func cause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

func (b *builtin) search() (pawl.Toolset, error) {
	engine, err := search.Open(b.env) // without one each call says what is missing
	if err != nil && b.now {
		return nil, finding(CodeUnavailable, "", "set one of BRAVE_API_KEY, TAVILY_API_KEY and SEARXNG_URL", "search: no search service is set up")
	}
	ranks, err := b.agent.Embed.Open()
	if err != nil {
		return nil, err
	}
	find, err := search.New(engine, &search.Options{Allow: b.agent.HTTPAllow, Embedder: ranks})
	if err != nil {
		return nil, finding(CodeBadValue, "http_allow", "", "%s", strings.TrimPrefix(err.Error(), "search tools: allow: "))
	}
	return find, nil
}

func (b *builtin) shell() (pawl.Toolset, error) {
	level, err := b.agent.level()
	if err != nil {
		return nil, err
	}
	run, err := shell.New(b.agent.root(), &shell.Options{Level: level})
	if err != nil {
		return nil, b.noRoot(err)
	}
	if b.now { // a run whose every command would be refused is refused beforehand
		if err := shell.Check(level); err != nil {
			return nil, finding(CodeUnavailable, "", "pawl doctor says what can be enforced; another sandbox level takes it, and docs/security.md says what is lost", "shell: %v", err)
		}
	}
	return run, nil
}

func (b *builtin) knowledge() (pawl.Toolset, error) {
	d := NewDatabase(b.agent.store(), b.env, false)
	b.closers = append(b.closers, d)
	e, err := b.agent.Embed.Open()
	if err != nil {
		return nil, err
	}
	if b.now {
		if _, err := d.Open(); err != nil {
			return nil, err
		}
	}
	scope := b.agent.Store.Scope()
	return d.tool(func(db store.Store) *pawl.Tool {
		return knowledge.New(db, &knowledge.Options{Scope: &scope, Threads: db, Embedder: e}).Search
	}), nil
}

// root is the directory that the tools see.
func (a *Agent) root() string {
	if a.Root == "" {
		return "."
	}
	return a.relative("root", a.Root)
}

// store is Store with its file where it is.
func (a *Agent) store() Store {
	s := a.Store
	if s.DB != "" {
		s.DB = a.relative("store.db", s.DB)
	}
	return s
}

// level is how hard programs are held.
func (a *Agent) level() (l sandbox.Level, err error) {
	if a.Sandbox == "" {
		return sandbox.Strict, nil
	}
	if err = l.UnmarshalText([]byte(a.Sandbox)); err != nil {
		return l, finding(CodeBadValue, "sandbox", "strict, standard or none", "%v", err)
	}
	return l, nil
}
