package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/term"
)

// Console is a terminal that a command holds.
type Console interface {
	Close()
}

// System is the environment of a command: streams, variables, terminal. Tests use their own.
type System struct {
	In       io.Reader
	Out, Err io.Writer
	Env      func(string) string
	InTerm   bool             // whether In is a terminal
	OutTerm  bool             // whether Out is a terminal
	ErrTerm  bool             // whether Err is a terminal
	Raw      bool             // answers are written unchanged where Out is no terminal
	Width    int              // columns for text
	InFile   *os.File         // In, if it is a file
	ErrFile  *os.File         // Err, if it is a file
	Now      func() time.Time // nil means time.Now
	Console  Console          // the terminal behind Err and Out; nil means plain streams
	Under    *System          // the system without the console
	gone     *atomic.Bool     // whether the reader of an output closed it; nil means unknown
	name     string           // the command that started the program; "" means pawl
}

// Self returns the command that started the program, for hints.
func (s *System) Self() string { return cmp.Or(s.name, "pawl") }

// Gone reports whether the reader of an output closed it during Attended, as head does.
func (s *System) Gone() bool {
	if s.Under != nil && s.Under.Gone() {
		return true
	}
	return s.gone != nil && s.gone.Load()
}

// Here returns the System of this process.
func Here() *System {
	s := &System{
		In:      os.Stdin,
		Out:     os.Stdout,
		Err:     os.Stderr,
		InFile:  os.Stdin,
		ErrFile: os.Stderr,
		InTerm:  term.IsTerminal(int(os.Stdin.Fd())),
		OutTerm: term.IsTerminal(int(os.Stdout.Fd())),
		ErrTerm: term.IsTerminal(int(os.Stderr.Fd())),
		Env:     os.Getenv,
		Width:   80,
	}

	// Longer lines than 120 columns are hard to read.
	for _, f := range []*os.File{os.Stdout, os.Stderr} {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			s.Width = max(24, min(w, 120))
			break
		}
	}
	if strings.Contains(filepath.ToSlash(os.Args[0]), "/go-build") { // started by go run
		s.name = "go run ./cmd/pawl"
	}
	return s
}

// Colours returns the style for a stream; terminal reports whether the stream is a terminal.
// NO_COLOR and a dumb terminal turn colours off.
func (s *System) Colours(terminal bool) Style {
	if !terminal || s.Console != nil { // the console styles what is written to it
		return Style{}
	}
	return Style{s.Env("NO_COLOR") == "" && s.Env("TERM") != "dumb"}
}

// Interactive reports whether the terminal supports more than plain lines.
func (s *System) Interactive() bool {
	if s.ErrFile == nil || !s.ErrTerm {
		return false
	}
	term := s.Env("TERM")
	return term != "" && term != "dumb" && s.Env("CI") == ""
}

// Plain closes the console and returns the system without it, for output after a run.
func (s *System) Plain() *System {
	if s.Console == nil {
		return s
	}
	s.Console.Close()
	return s.Under
}

// Notice writes a notice to the standard error.
func (s *System) Notice(text string) { fmt.Fprintf(s.Err, "pawl: %s\n", Visible(text)) }

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

// Release returns the version of the module, for protocols that have room for no more.
func Release() string { return release(debug.ReadBuildInfo()) }

func release(info *debug.BuildInfo, ok bool) string {
	if !ok {
		return "(unknown)"
	}
	return cmp.Or(info.Main.Version, "(devel)")
}

// Version describes a build in one line. ok reports whether info is known.
func Version(info *debug.BuildInfo, ok bool) string {
	commit := ""
	changed := false
	if ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				commit = s.Value[:min(len(s.Value), 12)]
			case "vcs.modified":
				changed = s.Value == "true"
			}
		}
	}

	line := "pawl " + release(info, ok)
	if commit != "" {
		line += " commit " + commit
	}
	if changed {
		line += " (changed since)"
	}
	return fmt.Sprintf("%s %s %s/%s", line, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
