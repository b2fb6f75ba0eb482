package sandbox

import (
	"fmt"
	"strings"
)

// Report says what a machine can enforce.
type Report struct {
	System string   `json:"system"` // the operating system, its version, and who asks
	Facts  []Fact   `json:"facts"`
	Levels []Probed `json:"levels"`
}

// Fact is a thing that the walls are made of.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Probed is a level that was tried.
type Probed struct {
	Level  Level  `json:"level"`
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"` // why not
	Gives  string `json:"gives"`            // what is enforced when it is
}

// Probe tries every level: it builds the walls as Run does, and lets nothing run behind them. It takes some tens of milliseconds.
func Probe() *Report { return probe() }

// Check says whether this machine can enforce a level, and why not. The error is ErrUnenforced. It takes as long as Probe.
func Check(level Level) error {
	if p := Probe().Level(level); !p.OK {
		return fmt.Errorf("%w: %s", ErrUnenforced, p.Reason)
	}
	return nil
}

// Level returns what was found of a level.
func (r *Report) Level(l Level) Probed {
	for _, p := range r.Levels {
		if p.Level == l {
			return p
		}
	}
	return Probed{Level: l, Reason: "unknown level"}
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
