package sandbox

import (
	"fmt"
	"strings"
)

// Report describes what a machine can enforce.
type Report struct {
	System string   `json:"system"` // operating system, its version, and the current user
	Facts  []Fact   `json:"facts"`  // what the machine offers
	Levels []Probed `json:"levels"` // from the strictest
}

// Fact is a system feature that the sandbox uses.
type Fact struct {
	Name  string `json:"name"`  // of the feature
	Value string `json:"value"` // its version or state, for people
}

// Probed is the result for one level.
type Probed struct {
	Level  Level  `json:"level"`            // that was tried
	OK     bool   `json:"ok"`               // it can be enforced
	Reason string `json:"reason,omitempty"` // why it cannot be enforced
	Gives  string `json:"gives"`            // what the level enforces
}

// Probe tests every level: it sets up the sandbox as Run does, without running a program in it. It
// takes some tens of milliseconds.
func Probe() *Report { return probe() }

// reason returns what an error of Start says besides that it is ErrUnenforced.
func reason(err error) string {
	return strings.TrimPrefix(err.Error(), "sandbox: "+ErrUnenforced.Error()+": ")
}

// Check returns an error with the reason if this machine cannot enforce a level. The error is
// ErrUnenforced. It tries that level alone, as Probe does.
func Check(level Level) error {
	p := Probed{Level: level, Reason: unknownLevel}
	if level >= Strict && level <= None {
		p, _ = probeLevel(level)
	}
	if !p.OK {
		return fmt.Errorf("sandbox: %w: %s", ErrUnenforced, p.Reason)
	}
	return nil
}

// unknownLevel is the reason for a level that is none of the constants.
const unknownLevel = "unknown level"

// Level returns the result for a level.
func (r *Report) Level(l Level) Probed {
	for _, p := range r.Levels {
		if p.Level == l {
			return p
		}
	}
	return Probed{Level: l, Reason: unknownLevel}
}

// String returns the report as lines of text.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "system: %s\n", r.System)
	for _, f := range r.Facts {
		fmt.Fprintf(&b, "%s: %s\n", f.Name, f.Value)
	}
	for _, p := range r.Levels {
		if p.OK {
			fmt.Fprintf(&b, "%s: can be enforced: %s\n", p.Level, p.Gives)
		} else {
			fmt.Fprintf(&b, "%s: cannot be enforced: %s\n", p.Level, p.Reason)
		}
	}
	return b.String()
}
