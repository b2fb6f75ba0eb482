package history

// options.go: the options of Window, and the codes of its notices.

import (
	"cmp"
	"fmt"

	"github.com/pawl-go/pawl/llm"
)

// The codes of the notices of Window.
const (
	// Results were put away. Data has the sizes.
	NoticeWindowEdited = "window_edited"
	// The provider refused a request as too long. A shorter one follows.
	NoticeWindowRefused = "window_refused"
	// The window is filled again and again by results that were read before. It is emitted at 3
	// edits in turn that did not help, and at 6, when the model is warned. Data has their number
	// (edits), the number at which the run ends (ends), and warned.
	NoticeWindowThrash = "window_thrash"
	// New results repeat what equal calls have read before. A line takes their place if the earlier
	// result is in sight. Data has the number of repeats in all (repeats) and of new ones (new).
	NoticeWindowRepeated = "window_repeated"
	// The state in the transcript does not fit it and is ignored.
	NoticeWindowMark = "window_mark"
)

// WindowOptions tune Window. Nil, and every zero field, stands for the default. A share is a part
// of the room between 0 and 1.
type WindowOptions struct {
	// Tokens is the context window in tokens. 0 means what the model says, by the method
	// Window(*llm.Request) (window, output int), which llm.As finds; the models of package provider
	// have it from the catalogue. If it is unknown, only a refusal of the provider teaches it.
	Tokens int
	// Reserve is for the reply, in tokens. 0 means Settings.MaxTokens, or else the longest reply of
	// the model, at most a quarter of the window. The window without it is the room.
	Reserve int
	// High is the share of the room above which requests are made shorter. 0 means 0.80. Until the
	// provider has reported a usage, it is at most 0.65.
	High float64
	// HighTokens is an absolute bound in tokens in place of High, if it is less. 0 means none.
	HighTokens int
	// Low is the share of the room down to which requests are made shorter. 0 means 0.40.
	Low float64
	// Keep is the number of rounds at the end that stay whole if they fit. 0 means 3.
	Keep int
	// Stub is the size in bytes up to which a result is never put away. 0 means 400.
	Stub int
	// Round is the share of the room that the results of three rounds in turn may have together
	// when the window is filling. A round after long ones has at least a third of it. Longer
	// results are cut, the largest first, before they are sent for the first time. Results of a
	// round stay whole below Low, and if none has more than 0.08 of the room and they fit, or take
	// at most 0.35 of the room. 0 means 0.25.
	Round float64

	// Pinned returns text that is repeated when steps are folded, such as a to-do list. It must
	// depend on the messages alone. Nil means none.
	Pinned func([]llm.Message) string

	// Notes writes notes of steps before they are folded. Its requests count with the reply they
	// follow, and it needs a price under pawl.Limits.Cost. If it fails, the record has no new
	// notes. Nil means no notes.
	Notes llm.Model
	// HideReader leaves result_read out of requests until something is put away.
	HideReader bool
	// Native lets the provider shorten the conversation at High, if the model can: OpenAI's
	// Responses and Claude from 4.6 on summarize, Claude 4.5 clears old results. A summary stays
	// in the transcript, and what the user said and what is pinned follow it in each request.
	// With another model, the record takes its place, and its text if it has one. The own edits
	// begin at 0.95 then. A summary costs about what its request costs, which counts.
	//
	// Claude's summary is a request of its own before the reply. It replaces all but the last
	// exchange. If it fails, a notice with the code summary_failed says so, and the reply is asked
	// for without it.
	Native bool

	// Tests switch off a stage, to show what the others do.
	noStubs bool
	noFold  bool
	noCut   bool
}

const (
	defaultHigh  = 0.80
	defaultLow   = 0.40
	defaultKeep  = 3
	defaultStub  = 400
	defaultRound = 0.25
)

// withDefaults returns a copy of o with the defaults in place of zeros.
func (o *WindowOptions) withDefaults() WindowOptions {
	if o == nil {
		o = new(WindowOptions)
	}
	with := *o
	with.High = cmp.Or(o.High, defaultHigh)
	with.Low = cmp.Or(o.Low, defaultLow)
	with.Keep = max(1, cmp.Or(o.Keep, defaultKeep))
	with.Stub = cmp.Or(o.Stub, defaultStub)
	with.Round = cmp.Or(o.Round, defaultRound)
	return with
}

// check reports the first option that no request can meet.
func (o *WindowOptions) check() error {
	for _, number := range []struct {
		name  string
		value int
	}{
		{"Tokens", o.Tokens},
		{"Reserve", o.Reserve},
		{"HighTokens", o.HighTokens},
		{"Stub", o.Stub},
	} {
		if number.value < 0 {
			return fmt.Errorf("window: %s is %d, want 0 or more", number.name, number.value)
		}
	}

	ordered := 0 < o.Low && o.Low < o.High && o.High <= 1
	if !ordered {
		return fmt.Errorf("window: Low is %v and High is %v, want 0 < Low < High <= 1", o.Low, o.High)
	}

	// Results have a share below nothing, or more room than there is.
	share := 0 < o.Round && o.Round <= 1
	if !share {
		return fmt.Errorf("window: Round is %v, want more than 0 and at most 1", o.Round)
	}

	// A window without room counts as unknown: nothing would be put away.
	if o.Tokens > 0 && o.Reserve >= o.Tokens {
		return fmt.Errorf("window: Reserve is %d, want less than Tokens, which is %d", o.Reserve, o.Tokens)
	}
	return nil
}
