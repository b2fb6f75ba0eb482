package turns

// thoughts.go: the reasoning of a reply, for chat programs in front of the endpoints.

import (
	"strings"

	"github.com/pawl-go/pawl"
)

// mostShown is the number of characters that are shown of a call.
const mostShown = 300

// thoughts is the reasoning of a turn as it arrives, with a line for each call if calls are shown.
type thoughts struct {
	all  strings.Builder
	step int
	say  func(text string) // nil means that nothing is sent
}

// add adds text of a step. Each step begins a line.
func (t *thoughts) add(step int, text string) {
	if step != t.step && !t.atLineStart() {
		text = "\n" + text
	}
	t.step = step
	t.all.WriteString(text)
	if t.say != nil && text != "" {
		t.say(text)
	}
}

func (t *thoughts) atLineStart() bool {
	return t.all.Len() == 0 || strings.HasSuffix(t.all.String(), "\n")
}

// addEvent adds the reasoning or the call of an event of the run.
func (t *thoughts) addEvent(o *Options, e *pawl.Event) {
	switch {
	case e.Kind == pawl.EventReasoning && !o.HideReasoning:
		t.add(e.Step, e.Text)

	case e.Kind == pawl.EventCallStarted && o.ShowCalls && e.Call != nil:
		line := shortened(e.Call.Name + " " + string(e.Call.Args))
		if !t.atLineStart() {
			t.add(e.Step, "\n")
		}
		t.add(e.Step, "→ "+line+"\n")
	}
}

// shortened returns the beginning of a text.
func shortened(text string) string {
	line := []rune(text)
	if len(line) <= mostShown {
		return text
	}
	return string(line[:mostShown]) + "…"
}
