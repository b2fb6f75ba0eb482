package sandbox

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Toolchain is what the programs of a language need in addition to a Spec. Go, Node and Python
// find the installed ones; a literal describes any other. It permits no network.
type Toolchain struct {
	Path        []string // folders of programs, in front of PATH
	Read, Write []string // as in Spec: the installation, and a private cache
	Env         []string // NAME=value
	Limits      Limits   // for a Spec without Limits
}

// With returns the Spec with the toolchains. Variables of the Spec take precedence, then variables
// of the first toolchain that sets them.
func (s Spec) With(tools ...Toolchain) Spec {
	var path []string
	for _, t := range tools {
		path = append(path, t.Path...)
		s.Read, s.Write = slices.Concat(s.Read, t.Read), slices.Concat(s.Write, t.Write)
		for _, e := range t.Env {
			if name, _, _ := strings.Cut(e, "="); !s.sets(name) {
				s.Env = append(slices.Clip(s.Env), e)
			}
		}
		s.Limits = cmp.Or(s.Limits, t.Limits)
	}
	if path != nil && !s.sets("PATH") {
		s.Env = append(slices.Clip(s.Env), "PATH="+strings.Join(append(path, defaultPath), ":"))
	}
	return s
}

// sets reports whether Env has a variable.
func (s *Spec) sets(name string) bool {
	return slices.ContainsFunc(s.Env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
}

//go:embed toolchain.sh
var toolchainScript string

// Go returns the Go toolchain on the PATH of this process. Programs read GOROOT and the downloaded
// modules, which include private ones; downloads are off. The build cache is below cache, a folder
// that is created. Only sandboxed programs may use that folder, and each workspace needs its own: a
// program can forge the results that a later build takes from it.
func Go(cache string) (Toolchain, error) { return found("go", cache) }

// Node returns the Node.js toolchain on the PATH of this process, with its global packages. npm is
// offline, and its cache is below cache, as with Go.
func Node(cache string) (Toolchain, error) { return found("node", cache) }

// Python returns the toolchain of python3 on the PATH of this process, with its installed packages.
// pip has no index, and its cache is below cache, as with Go.
func Python(cache string) (Toolchain, error) { return found("python3", cache) }

// found returns the toolchain of a program from the lines that the script prints.
func found(program, cache string) (Toolchain, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "/bin/sh", "-c", toolchainScript, program, cache).Output()
	if err != nil {
		return Toolchain{}, fmt.Errorf("sandbox: %s was not found on PATH, or has no cache at %s: %w", program, cache, err)
	}
	// compilers need a process for each thread, and runtimes reserve address space
	t := Toolchain{Limits: Limits{Time: 5 * time.Minute, Memory: 64 << 30, MemoryInAll: 4 << 30, Processes: 1024,
		Disk: 4 << 30, Temp: 1 << 30, OpenFiles: 4096}}
	lists := map[string]*[]string{"path": &t.Path, "read": &t.Read, "write": &t.Write, "env": &t.Env}
	for line := range strings.Lines(string(out)) {
		kind, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if list := lists[kind]; list != nil {
			*list = append(*list, text)
		}
	}
	return t, nil
}
