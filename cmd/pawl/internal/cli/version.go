package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"
)

// BuiltOn returns the date of the commit that the program was built from, or today if that is
// unknown.
func BuiltOn() time.Time {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if t, err := time.Parse(time.RFC3339, s.Value); s.Key == "vcs.time" && err == nil {
				return t
			}
		}
	}
	return time.Now()
}

// Version describes a build in one line. ok reports whether info is known.
func Version(info *debug.BuildInfo, ok bool) string {
	v, commit, changed := "(unknown)", "", false
	if ok {
		v = cmp.Or(info.Main.Version, "(devel)")
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
