package agentfile

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/internal/protect"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/sandbox"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/code"
	"github.com/pawl-go/pawl/tools/data"
	"github.com/pawl-go/pawl/tools/file"
	"github.com/pawl-go/pawl/tools/http"
	"github.com/pawl-go/pawl/tools/knowledge"
	"github.com/pawl-go/pawl/tools/plan"
	"github.com/pawl-go/pawl/tools/remember"
	"github.com/pawl-go/pawl/tools/schedule"
	"github.com/pawl-go/pawl/tools/search"
	"github.com/pawl-go/pawl/tools/shell"
	"github.com/pawl-go/pawl/tools/skill"
	"github.com/pawl-go/pawl/tools/todo"
)

// Set is a set of tools under the name by which it was asked for.
type Set struct {
	// Name is the name of a family, mcp:NAME, the name of a file of definitions, or the path of a
	// definition in the agent's file. Empty means the tools of Options.
	Name string

	Tools pawl.Toolset
}

// families make the sets of built-in tools, in the order of lists. Sets that write into the
// database create it if it does not exist.
var families = []struct {
	name   string
	writes bool
	open   func(*builtin) (pawl.Toolset, error)
}{
	{"file", false, (*builtin).file},
	{"data", false, (*builtin).data},
	{"http", false, (*builtin).http},
	{"search", false, (*builtin).search},
	{"knowledge", false, (*builtin).knowledge},
	{"remember", true, (*builtin).remember},
	{"skill", true, (*builtin).skill},
	{"schedule", true, (*builtin).schedule},
	{"shell", false, (*builtin).shell},
	{"code", false, (*builtin).code},
	{"plan", false, (*builtin).plan},
	{"todo", false, (*builtin).todo},
}

// SetNames returns the names of the sets of built-in tools, in the order in which they are listed.
func SetNames() []string {
	var names []string
	for _, f := range families {
		names = append(names, f.name)
	}
	return names
}

// builtin opens sets for an agent. Their resources are opened at the first call or, with now, at
// once; a resource that is not set up on this machine is then an error.
type builtin struct {
	agent *Agent
	env   func(string) string
	own   protect.Own // what no tool reaches
	now   bool
	scope *store.Scope // the user of the tools; nil means the scope of each call's context

	sets     []Set
	kept     []pawl.Middleware
	pinned   func([]llm.Message) string // stays in sight; nil means nothing
	db       *Database
	callable *pawl.Registry // what a schedule may call
	closers  []io.Closer
}

// builtins opens the sets that the agent names, each once, in the order of families, for one user
// or for all. Close it. Errors are *Finding.
func builtins(a *Agent, env func(string) string, own protect.Own, now, forAll bool) (_ *builtin, err error) {
	b := &builtin{
		agent:    a,
		env:      env,
		own:      own,
		now:      now,
		db:       NewDatabase(a.store(), env, false),
		callable: new(pawl.Registry),
	}
	b.closers = append(b.closers, b.db)
	if !forAll {
		scope := a.Store.Scope()
		b.scope = &scope
	}
	defer func() {
		if err != nil {
			b.close()
		}
	}()

	chosen, err := a.chosen()
	if err != nil {
		return nil, err
	}
	for _, f := range families {
		if now && f.writes && chosen[f.name] != "" {
			b.db.create = true
		}
	}
	for _, f := range families {
		if chosen[f.name] == "" {
			continue
		}
		set, err := f.open(b)
		if err != nil {
			if fault := new(Finding); errors.As(err, &fault) && fault.Path == "" {
				fault.Path = chosen[f.name]
			}
			return nil, err
		}
		b.sets = append(b.sets, Set{f.name, set})
	}
	return b, nil
}

// chosen returns the names of the built-in sets that a has, each with the path that names it first.
// The key memory brings the set remember.
func (a *Agent) chosen() (map[string]string, error) {
	chosen := map[string]string{}
	for i, t := range a.Tools {
		name := strings.TrimSpace(t.Set)
		if name == "" || chosen[name] != "" {
			continue
		}
		if !slices.Contains(SetNames(), name) {
			return nil, unknownSet(name, index("tools", i))
		}
		chosen[name] = index("tools", i)
	}
	if a.Memory != nil && chosen["remember"] == "" {
		chosen["remember"] = "memory"
	}
	return chosen, nil
}

func (b *builtin) plan() (pawl.Toolset, error) {
	return plan.New(&plan.Options{DataFlow: b.agent.DataFlow}), nil
}

func (b *builtin) todo() (pawl.Toolset, error) {
	b.kept = append(b.kept, todo.Middleware())
	b.pinned = todo.Pinned
	return todo.New(), nil
}

func unknownSet(name, path string) *Finding {
	return finding(CodeUnknownTool, path, nearest.Hint(name, SetNames()), "no set of tools is named %q", name)
}

// mayCall adds the tools that a schedule may call: all except passive tools and tools that make
// schedules.
func (b *builtin) mayCall(ctx context.Context, sets []Set) error {
	for _, set := range sets {
		if set.Name == "schedule" {
			continue
		}
		tools, err := set.Tools.Tools(ctx)
		if err != nil {
			return err
		}
		for _, t := range tools {
			if t.Passive {
				continue
			}
			if err := b.callable.Add(t); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *builtin) close() {
	for _, c := range b.closers {
		c.Close()
	}
}

func (b *builtin) file() (pawl.Toolset, error) {
	places, err := b.agent.protection()
	if err != nil {
		return nil, err
	}
	o := &file.Options{Protect: places, Hide: b.own.Paths()}
	if b.agent.Checkpoints && b.now {
		o.Undo, err = b.agent.place(b.env, "undo")
		if err == nil {
			err = os.MkdirAll(o.Undo, 0o700) // a sandbox hides it only if it is there
		}
		if err != nil {
			return nil, err
		}
	}
	set, err := file.New(b.agent.Directory(), o)
	if err != nil {
		return nil, b.agent.noRoot(err)
	}
	b.closers = append(b.closers, set)
	return set, nil
}

// data opens the data tools: over the files, where the agent has the file tools too.
func (b *builtin) data() (pawl.Toolset, error) {
	if files := filesOf(b.sets); files != nil {
		return data.New(&data.Options{Open: files.Open, Create: files.Create}), nil
	}
	return data.New(nil), nil
}

// filesOf returns the file tools among sets. Nil means that there are none.
func filesOf(sets []Set) *file.Set {
	for _, s := range sets {
		if files, ok := s.Tools.(*file.Set); ok {
			return files
		}
	}
	return nil
}

func (a *Agent) noRoot(err error) error {
	return finding(CodeBadFile, "root", "want a directory that is there", "%s: %s", a.Directory(), cause(err))
}

// cause returns an error about a directory without the system call and the path.
func cause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

func (b *builtin) http() (pawl.Toolset, error) {
	fetch, err := http.New(&http.Options{Allow: b.agent.HTTPAllow})
	if err != nil {
		return nil, badAllow("http_allow", err, "http tools: allow: ")
	}
	return fetch, nil
}

// badAllow returns the finding for a list of addresses that a package refused. prefix is how the
// package begins its error.
func badAllow(path string, err error, prefix string) error {
	return finding(CodeBadValue, path, "", "%s", strings.TrimPrefix(err.Error(), prefix))
}

func (b *builtin) search() (pawl.Toolset, error) {
	// without an engine, each call returns an error that says what is missing
	engine, err := search.Open(b.env)
	if err != nil && b.now {
		return nil, finding(CodeUnavailable, "", "set one of "+searchVariables, "search: no search service is set up")
	}
	ranks, err := b.agent.Embed.Open()
	if err != nil {
		return nil, err
	}
	find, err := search.New(engine, &search.Options{Allow: b.agent.HTTPAllow, Embedder: ranks})
	if err != nil {
		return nil, badAllow("http_allow", err, "search tools: allow: ")
	}
	return find, nil
}

func (b *builtin) shell() (pawl.Toolset, error) {
	level, err := b.agent.level()
	if err != nil {
		return nil, err
	}
	if _, err := b.agent.hosts(level); err != nil {
		return nil, err
	}
	places, err := b.agent.protection()
	if err != nil {
		return nil, err
	}
	tools, limits, err := b.commands()
	if err != nil {
		return nil, err
	}

	run, err := shell.New(b.agent.Directory(), &shell.Options{
		Level:      level,
		Hosts:      b.agent.SandboxHosts,
		Read:       b.agent.all("sandbox_read", b.agent.SandboxRead),
		Env:        b.agent.SandboxEnv,
		Toolchains: tools,
		Limits:     limits,
		Protect:    places,
		Hide:       b.own.Paths(),
	})
	if err != nil {
		return nil, b.agent.noRoot(err)
	}

	if b.now { // a run whose every command would be refused is refused beforehand
		if err := sandbox.Check(level); err != nil {
			return nil, finding(CodeUnavailable, "",
				"pawl doctor lists the levels that can be enforced; docs/security.md compares them", "shell: %v", err)
		}
	}
	return run, nil
}

// code is execute_code in the interpreter that was asked for. None takes the place of the other.
func (b *builtin) code() (pawl.Toolset, error) {
	var in code.Interpreter = code.Embedded(nil)
	if b.agent.Code != "embedded" {
		level, err := b.agent.level()
		if err != nil {
			return nil, err
		}
		py := code.Python(&code.PythonOptions{Level: level})
		b.closers = append(b.closers, py)
		in = py
	}

	if b.now {
		if err := in.Check(); err != nil {
			return nil, finding(CodeUnavailable, "",
				"pawl doctor says what can be enforced; "+
					"the embedded interpreter needs nothing (code: embedded, --code embedded)",
				"code: %v", err)
		}
	}
	return code.New(in, nil)
}

func (b *builtin) knowledge() (pawl.Toolset, error) {
	e, err := b.agent.Embed.Open()
	if err != nil {
		return nil, err
	}
	if b.now {
		if _, err := b.db.Open(); err != nil {
			return nil, err
		}
	}
	return b.db.toolset(false, func(db store.Store) (pawl.Toolset, error) {
		o := &knowledge.Options{Scope: b.scope, Threads: db, Embedder: e, Shared: b.agent.Store.Shared}
		return knowledge.New(db, o), nil
	})
}

func (b *builtin) remember() (pawl.Toolset, error) {
	e, err := b.agent.Embed.Open()
	if err != nil {
		return nil, err
	}
	var trusted []string
	for name, labels := range b.agent.FlowLabels {
		if slices.Contains(strings.Fields(labels), "trusted") {
			trusted = append(trusted, name)
		}
	}

	m := cmp.Or(b.agent.Memory, &Memory{})
	o := &remember.Options{
		Scope:    b.scope,
		Embedder: e,
		Trusted:  trusted,
		NoRecall: m.Recall == "off",
		Write:    m.Write,
		Open:     func() (store.Memories, error) { return b.db.Create() },
	}
	if m.Scope == "agent" {
		o.Agent = cmp.Or(b.agent.Name, "pawl")
	}
	set := remember.New(nil, o)
	if b.agent.Memory != nil && b.now {
		b.kept = append(b.kept, set.Middleware())
	}
	return set, nil
}

const skillsHint = "want a folder that has a folder with a SKILL.md for each skill"

// folders returns the folders of skills.
func (a *Agent) folders() []string { return a.all("skills", a.Skills) }

func (b *builtin) skill() (pawl.Toolset, error) {
	set, err := b.db.toolset(true, func(db store.Store) (pawl.Toolset, error) {
		return skill.New(db, &skill.Options{Dirs: b.agent.folders(), Scope: b.scope})
	})
	if err != nil {
		return nil, finding(CodeBadFile, "skills", skillsHint, "%s", strings.TrimPrefix(plain(err), "skill tools: "))
	}
	return set, nil
}

func (b *builtin) schedule() (pawl.Toolset, error) {
	zone, err := zoneOf(b.agent.Zone, b.env)
	if err != nil {
		return nil, err
	}
	return b.db.toolset(true, func(db store.Store) (pawl.Toolset, error) {
		return schedule.New(db, &schedule.Options{Scope: b.scope, Zone: zone, Tools: b.callable}), nil
	})
}

// zoneOf returns the IANA zone of times without one: the agent's, then that in TZ, then the
// machine's, then UTC.
func zoneOf(stated string, env func(string) string) (string, error) {
	if stated != "" {
		if !isZone(stated) {
			return "", finding(CodeBadValue, "zone", zoneHint, "there is no zone %q", stated)
		}
		return stated, nil
	}

	names := []string{strings.TrimPrefix(env("TZ"), ":")}
	if path, err := filepath.EvalSymlinks("/etc/localtime"); err == nil {
		_, name, _ := strings.Cut(filepath.ToSlash(path), "zoneinfo/")
		names = append(names, name)
	}
	for _, name := range names {
		if name != "" && isZone(name) {
			return name, nil
		}
	}
	return "UTC", nil
}

const zoneHint = "an IANA zone, such as Europe/Oslo or UTC"

// isZone reports whether time knows a zone of this name. Local is none, because it differs from
// machine to machine.
func isZone(name string) bool {
	_, err := time.LoadLocation(name)
	return err == nil && name != "Local"
}

// Directory returns the root directory of the file tools: Root, relative to the agent's file, or
// "." if Root is empty.
func (a *Agent) Directory() string {
	if a.Root == "" {
		return "."
	}
	return a.relative("root", a.Root)
}

// store returns Store with the path of its file.
func (a *Agent) store() Store {
	s := a.Store
	if !s.isServer() {
		s.DB = a.relative("store.db", s.DB)
	}
	return s
}
