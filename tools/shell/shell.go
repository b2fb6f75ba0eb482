// Package shell gives a model shell_exec: a command line, run in a sandbox.
//
//	run, err := shell.New("workspace", nil)
//	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{run}}
//
// The command reads and writes the workspace and nothing else of the machine, reaches no network beyond the hosts that are named, has a small environment, and bounded time and memory. How hard that is
// enforced is Options.Level, strict unless it says otherwise. Where the machine cannot enforce the level, each call is refused with the reason; sandbox.Check says it
// beforehand. Which commands a model tries is not looked at: what a command may do is bounded by the sandbox, and whether it runs at all by whoever approves calls.
//
// The tool's effect is Write: its calls ask for approval where there are rules that ask, are never repeated in silence, and run one after another.
package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/sandbox"
	"github.com/pawl-go/pawl/sandbox/proxy"
)

// Options are what New can be told. Nil and the zero value run commands in the strict sandbox.
type Options struct {
	Level  sandbox.Level  // how hard the bounds are enforced
	Read   []string       // folders and files that commands may read beside the workspace
	Env    []string       // NAME=value, beside PATH, HOME, TMPDIR and LANG
	Hosts  []string       // what commands may reach over HTTP and HTTPS ("api.example.com:443", "*.example.org"; see package proxy); none: no network. Only Strict has it
	Limits sandbox.Limits // Time is that of a call that names no timeout; Output, of each of the two streams, is 32 KiB where it is 0
}

const (
	defaultTime = 30 * time.Second
	mostTime    = 300 * time.Second
)

// New returns the tool shell_exec over the folder dir. The error says what is wrong with a path; what the machine cannot enforce is sandbox.Check's to say.
func New(dir string, opts *Options) (*pawl.Tool, error) {
	s := &shell{}
	if opts != nil {
		s.opts = *opts
	}
	var err error
	if s.dir, err = resolved(dir); err != nil {
		return nil, fmt.Errorf("shell tool: %w", err)
	}
	if st, err := os.Stat(s.dir); err != nil || !st.IsDir() {
		return nil, fmt.Errorf("shell tool: %s is no folder", dir)
	}
	for _, p := range s.opts.Read {
		if p, err = resolved(p); err != nil {
			return nil, fmt.Errorf("shell tool: %w", err)
		}
		s.read = append(s.read, p)
	}
	if len(s.opts.Hosts) > 0 {
		if s.opts.Level != sandbox.Strict {
			return nil, fmt.Errorf("shell tool: hosts are named, and level %s cannot hold a command to them; strict can", s.opts.Level)
		}
		hosts, err := proxy.New(proxy.Options{Allow: s.opts.Hosts})
		if err != nil {
			return nil, fmt.Errorf("shell tool: %w", err)
		}
		s.proxy = hosts.Serve
	}
	if s.opts.Limits.Time == 0 {
		s.opts.Limits.Time = defaultTime
	}
	if s.opts.Limits.Time < 0 || s.opts.Limits.Time > mostTime {
		return nil, fmt.Errorf("shell tool: a time of %s: want at most %s", s.opts.Limits.Time, mostTime)
	}
	if s.opts.Limits.Output == 0 {
		s.opts.Limits.Output = 32 << 10
	}
	return s.tool(), nil
}

// resolved is the place that a path leads to. It is looked up once: a link that a command puts on the way later leads nowhere.
func resolved(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}
