// Package shell provides shell_exec, a tool that runs a command line in a sandbox.
//
//	run, err := shell.New("workspace", nil)
//	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{run}}
//
// The command reads and writes the workspace and nothing else of the machine, reaches only the
// named hosts, has a small environment, and has limited time and memory. Options.Level selects how
// strictly that is enforced; the default is strict. If the machine cannot enforce the level, each
// call is refused with the reason; sandbox.Check reports the reason beforehand. The tool does not
// inspect commands: the sandbox limits what a command can do, and an approval decides whether it
// runs at all.
//
// The tool's effect is EffectWrite: its calls need approval under rules that require one, are never
// repeated without notice, and run one after another.
package shell

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/protect"
	"github.com/pawl-go/pawl/sandbox"
	"github.com/pawl-go/pawl/sandbox/proxy"
)

// Options are the options of New. Nil and the zero value run commands in the strict sandbox.
type Options struct {
	Level sandbox.Level // how strictly the limits are enforced
	Read  []string      // folders and files that commands may read in addition to the workspace
	Env   []string      // NAME=value, in addition to PATH, HOME, TMPDIR and LANG
	// Toolchains adds what programs of languages need: sandbox.Go, sandbox.Node, sandbox.Python.
	Toolchains []sandbox.Toolchain
	// Hosts lists the hosts that commands may reach over HTTP and HTTPS ("api.example.com:443",
	// "*.example.org"; see package proxy). Empty means no network. Only the level Strict supports
	// hosts.
	Hosts []string
	// Protect adds to the protected places of the workspace, which commands can only read: a name
	// or path (.git, .github/workflows), or the absolute path of a file or folder. -NAME removes a
	// place, and -* removes all places. docs/security.md lists the default. The level None protects
	// nothing.
	Protect []string
	// Hide lists files and folders that commands neither read nor change, such as the database of
	// the program. Files named .env are hidden by default; -.env in Protect removes that. The level
	// None hides nothing.
	Hide []string
	// Limits limits each command. Time applies to calls that name no timeout. Output applies to
	// each of the two streams; 0 means 32 KiB. The zero value means the limits of Toolchains.
	Limits sandbox.Limits
}

const (
	defaultTime = 30 * time.Second
	mostTime    = 300 * time.Second
)

// New returns the tool shell_exec over the folder dir. Its error reports a wrong path. It does not
// report what the machine cannot enforce; use sandbox.Check for that.
func New(dir string, opts *Options) (*pawl.Tool, error) {
	s := &shell{}
	s.opts = *cmp.Or(opts, new(Options))
	var err error
	s.dir, err = resolved(dir)
	if err != nil {
		return nil, fmt.Errorf("shell tool: %w", err)
	}
	if st, err := os.Stat(s.dir); err != nil || !st.IsDir() {
		return nil, fmt.Errorf("shell tool: %s is not a folder", dir)
	}

	// Before any command: a path that cannot be protected is an error of the configuration.
	s.places, err = protect.New(s.dir, s.opts.Protect, protect.NewOwn(s.opts.Hide...))
	if err != nil {
		return nil, fmt.Errorf("shell tool: %w", err)
	}
	var read []string
	for _, p := range s.opts.Read {
		p, err = resolved(p)
		if err != nil {
			return nil, fmt.Errorf("shell tool: %w", err)
		}
		read = append(read, p)
	}
	hosts, err := s.proxy()
	if err != nil {
		return nil, fmt.Errorf("shell tool: %w", err)
	}
	spec := sandbox.Spec{
		Level:  s.opts.Level,
		Dir:    s.dir,
		Env:    s.opts.Env,
		Read:   read,
		Write:  []string{s.dir},
		Proxy:  hosts,
		Limits: s.opts.Limits,
	}
	s.spec = spec.With(s.opts.Toolchains...)

	// After With, which sets the limits that the toolchains need where the options have none.
	l := &s.spec.Limits
	l.Time = cmp.Or(l.Time, defaultTime)
	if l.Time < 0 || l.Time > mostTime {
		return nil, fmt.Errorf("shell tool: a time of %s: want at most %s", l.Time, mostTime)
	}
	l.Output = cmp.Or(l.Output, 32<<10)
	return s.tool(), nil
}

// proxy returns how the sandbox serves the allowed hosts. nil means no network.
func (s *shell) proxy() (func(*os.File) func() []string, error) {
	if len(s.opts.Hosts) == 0 {
		return nil, nil
	}
	if s.opts.Level != sandbox.Strict {
		return nil, fmt.Errorf("hosts are named, and level %s cannot enforce them; strict can", s.opts.Level)
	}
	hosts, err := proxy.New(proxy.Options{Allow: s.opts.Hosts})
	if err != nil {
		return nil, err
	}
	return hosts.Serve, nil
}

// resolved returns the target of a path. The path is resolved once, so a link that a command
// creates on the way later has no effect.
func resolved(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}
