package tui

import (
	"cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
)

// outcomeMark is the mark before a call, in its colour.
type outcomeMark struct {
	mark   string
	colour term.Style
}

// outcomeMarks holds the mark of each outcome of a call. Both displays use it.
var outcomeMarks = map[pawl.Outcome]outcomeMark{
	pawl.OutcomeOK:          {"✓", term.Green},
	pawl.OutcomePending:     {"?", term.Yellow},
	pawl.OutcomeUnknown:     {"?", term.Yellow},
	pawl.OutcomeSkipped:     {"–", term.Yellow},
	pawl.OutcomeCancelled:   {"–", term.Yellow},
	pawl.OutcomeDenied:      {"–", term.Yellow},
	pawl.OutcomeBlocked:     {"–", term.Yellow},
	pawl.OutcomeError:       {"✗", term.Red},
	pawl.OutcomeInvalid:     {"✗", term.Red},
	pawl.OutcomeUnknownTool: {"✗", term.Red},
	pawl.OutcomeTimeout:     {"✗", term.Red},
	pawl.OutcomePanicked:    {"✗", term.Red},
}

// markOf returns the mark of an outcome. An outcome of a later version is marked as an error.
func markOf(o pawl.Outcome) outcomeMark {
	return cmp.Or(outcomeMarks[o], outcomeMark{"✗", term.Red})
}

// painted returns text in a colour, if style is on.
func painted(style cli.Style, colour term.Style, text string) string {
	return term.Text(colour, text).Render(style.On)
}
