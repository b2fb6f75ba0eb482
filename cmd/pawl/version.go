package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCmd struct{}

// Run prints the version, the commit where it is known, and what built it.
func (versionCmd) Run(sys *system) error {
	_, err := fmt.Fprintln(sys.out, version(debug.ReadBuildInfo()))
	return err
}

// version says in a line what a build knows of itself.
func version(info *debug.BuildInfo, ok bool) string {
	v, commit, changed := "(unknown)", "", false
	if ok {
		if v = info.Main.Version; v == "" {
			v = "(devel)"
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				commit = s.Value[:min(len(s.Value), 12)]
			case "vcs.modified":
				changed = s.Value == "true"
			}
		}
	}
	line := "pawl " + v
	if commit != "" {
		line += " commit " + commit
	}
	if changed {
		line += " (changed since)"
	}
	return fmt.Sprintf("%s %s %s/%s", line, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
