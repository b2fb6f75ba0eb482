package main

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/data"
	"github.com/pawl-go/pawl/tools/file"
	"github.com/pawl-go/pawl/tools/http"
	"github.com/pawl-go/pawl/tools/knowledge"
	"github.com/pawl-go/pawl/tools/remember"
	"github.com/pawl-go/pawl/tools/schedule"
	"github.com/pawl-go/pawl/tools/search"
	"github.com/pawl-go/pawl/tools/skill"
)

// toolset is a family of built-in tools under the name --tools knows it by.
type toolset struct {
	name  string
	tools pawl.Toolset
}

// toolFlags say what the built-in tools may reach.
type toolFlags struct {
	Root      string   `default:"." placeholder:"DIR" help:"What the file tools see, and what shell commands may write. Default: the current directory."`
	HTTPAllow []string `name:"http-allow" placeholder:"HOST" help:"What the http and search tools may reach beside public addresses: localhost:8080, *.example.com, 10.1.0.0/16."`
	Sandbox   string   `enum:"strict,standard,none" default:"strict" placeholder:"LEVEL" help:"How shell commands are held: strict, standard or none; docs/security.md says what each stops, pawl doctor which can be had here. Default: strict."`
	Skills    []string `sep:"none" placeholder:"DIR" help:"A folder of skills, each in a folder of its own with a SKILL.md. Models read them and cannot change them. May be given again."`
	Zone      string   `placeholder:"ZONE" help:"The zone of schedules that name none, such as Europe/Oslo. Default: this machine's."`
	storeFlags
	embedFlags
	sharedFlag
}

// families make the sets of built-in tools, in the order in which they are listed. Those that write into the database make it where it is not there.
var families = []struct {
	name   string
	writes bool
	open   func(*builtins) (pawl.Toolset, error)
}{
	{"file", false, (*builtins).file},
	{"data", false, func(*builtins) (pawl.Toolset, error) { return data.New(), nil }},
	{"http", false, (*builtins).http},
	{"search", false, (*builtins).search},
	{"knowledge", false, (*builtins).knowledge},
	{"remember", true, (*builtins).remember},
	{"skill", true, (*builtins).skill},
	{"schedule", true, (*builtins).schedule},
	{"shell", false, (*builtins).shell},
}

// familyNames are the names of all families.
func familyNames() []string {
	var names []string
	for _, f := range families {
		names = append(names, f.name)
	}
	return names
}

// builtins are families of built-in tools, and what they are over.
type builtins struct {
	flags toolFlags
	env   func(string) string
	now   bool // they are about to be used: what is missing is told at once, and not at the first call

	sets     []toolset
	db       *database
	callable *pawl.Registry // what a schedule may call
	closers  []io.Closer
}

// builtin makes the named sets, each once. Close them. What some of them are over is opened at the first call; with now, at once.
func builtin(names []string, f toolFlags, env func(string) string, now bool) (_ *builtins, err error) {
	b := &builtins{flags: f, env: env, now: now, db: &database{flags: f.storeFlags, env: env}, callable: new(pawl.Registry)}
	b.closers = append(b.closers, b.db)
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	chosen := map[string]bool{}
	for _, name := range names {
		if name = strings.TrimSpace(name); name != "" {
			if !slices.Contains(familyNames(), name) {
				return nil, usage("there are: "+strings.Join(familyNames(), ", "), "--tools: no set of tools is named %q", name)
			}
			chosen[name] = true
		}
	}
	for _, f := range families {
		b.db.create = b.db.create || now && f.writes && chosen[f.name]
	}
	for _, f := range families {
		if !chosen[f.name] {
			continue
		}
		set, err := f.open(b)
		if err != nil {
			return nil, err
		}
		b.sets = append(b.sets, toolset{f.name, set})
	}
	return b, nil
}

// mayCall says which tools a schedule may call: those of sets, but the ones that make schedules.
func (b *builtins) mayCall(ctx context.Context, sets []toolset) error {
	for _, set := range sets {
		if set.name == "schedule" {
			continue
		}
		tools, err := set.tools.Tools(ctx)
		if err == nil {
			err = b.callable.Add(tools...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *builtins) close() {
	for _, c := range b.closers {
		c.Close()
	}
}

func (b *builtins) file() (pawl.Toolset, error) {
	set, err := file.New(b.flags.Root, nil)
	if err != nil {
		return nil, usage("--root takes a directory that is there", "--root %s: %s", b.flags.Root, cause(err))
	}
	b.closers = append(b.closers, set)
	return set, nil
}

func (b *builtins) http() (pawl.Toolset, error) {
	fetch, err := http.New(&http.Options{Allow: b.flags.HTTPAllow})
	if err != nil {
		return nil, usage("", "--http-allow: %s", strings.TrimPrefix(err.Error(), "http tools: allow: "))
	}
	return fetch, nil
}

func (b *builtins) search() (pawl.Toolset, error) {
	engine, err := search.Open(b.env) // without one each call says what is missing
	if err != nil && b.now {
		return nil, usage("set one of BRAVE_API_KEY, TAVILY_API_KEY and SEARXNG_URL", "--tools search: no search service is set up")
	}
	ranks, err := b.flags.embedder()
	if err != nil {
		return nil, err
	}
	find, err := search.New(engine, &search.Options{Allow: b.flags.HTTPAllow, Embedder: ranks})
	if err != nil {
		return nil, usage("", "--http-allow: %s", strings.TrimPrefix(err.Error(), "search tools: allow: "))
	}
	return find, nil
}

func (b *builtins) shell() (pawl.Toolset, error) {
	run, err := b.flags.shell()
	if err == nil && b.now {
		err = b.flags.enforceable()
	}
	if err != nil {
		return nil, err
	}
	return run, nil
}

func (b *builtins) knowledge() (pawl.Toolset, error) {
	e, err := b.flags.embedder()
	if err != nil {
		return nil, err
	}
	if b.now {
		if _, err := b.db.open(); err != nil {
			return nil, err
		}
	}
	return b.db.toolset(false, func(db store.Store) (pawl.Toolset, error) {
		scope := b.db.flags.scope()
		scope.Thread = b.db.thread
		return knowledge.New(db, &knowledge.Options{Scope: &scope, Threads: db, Embedder: e, Shared: b.flags.Shared}), nil
	})
}

func (b *builtins) remember() (pawl.Toolset, error) {
	scope := b.flags.scope()
	return b.db.toolset(true, func(db store.Store) (pawl.Toolset, error) {
		return remember.New(db, &remember.Options{Scope: &scope}), nil
	})
}

func (b *builtins) skill() (pawl.Toolset, error) {
	scope := b.flags.scope()
	set, err := b.db.toolset(true, func(db store.Store) (pawl.Toolset, error) {
		return skill.New(db, &skill.Options{Dirs: b.flags.Skills, Scope: &scope})
	})
	if err != nil {
		return nil, usage("--skills takes a folder that has a folder with a SKILL.md for each skill", "--skills: %s", strings.TrimPrefix(plain(err), "skill tools: "))
	}
	return set, nil
}

func (b *builtins) schedule() (pawl.Toolset, error) {
	zone, err := zoneOf(b.flags.Zone, b.env)
	if err != nil {
		return nil, err
	}
	scope := b.flags.scope()
	return b.db.toolset(true, func(db store.Store) (pawl.Toolset, error) {
		return schedule.New(db, &schedule.Options{Scope: &scope, Zone: zone, Tools: b.callable}), nil
	})
}

// zoneOf is the IANA zone of times that name none: that of the flag, of TZ, of the machine; UTC when neither says.
func zoneOf(flag string, env func(string) string) (string, error) {
	if flag != "" {
		if _, err := time.LoadLocation(flag); err != nil || flag == "Local" {
			return "", usage("an IANA zone, such as Europe/Oslo or UTC", "--zone: there is no zone %q", flag)
		}
		return flag, nil
	}
	names := []string{strings.TrimPrefix(env("TZ"), ":")}
	if path, err := filepath.EvalSymlinks("/etc/localtime"); err == nil {
		_, name, _ := strings.Cut(filepath.ToSlash(path), "zoneinfo/")
		names = append(names, name)
	}
	for _, name := range names {
		if _, err := time.LoadLocation(name); err == nil && name != "" && name != "Local" {
			return name, nil
		}
	}
	return "UTC", nil
}
