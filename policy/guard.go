package policy

// guard.go: Guard: its settings, and one check of a text.

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/internal/background"
	"github.com/pawl-go/pawl/llm"
)

// Guard checks what enters and leaves an agent, each in one place: the messages of the user, the
// texts of the model, and the results of tools. It stands first among the middleware, outside of
// policies that change requests. ModelCheck and FlagCheck are ready-made checks.
//
// The check of new input runs in parallel with the model's request. Until it allows the input,
// nothing of the reply is passed on and no tool starts; otherwise the reply is dropped. Output is
// held back until the reply is complete and checked, so it does not stream, and no call starts
// early. Reasoning and the arguments of calls are not checked, except the answer of an agent with
// Output.
//
// A stop of input or output is a reply with FinishReasonContentFilter, whose text names the guard
// and the reason: the run fails with it, and a durable run has it in its journal. A stop of a
// result aborts the run. Stored replies and results are not checked again when a run is resumed.
//
// A notice with the code "guard" reports each stop and replacement, and the progress of the call
// does so for a result.
type Guard struct {
	// Name stands in events and errors. "" means guard.
	Name string
	// Places are where the guard checks. Nil means everywhere.
	Places []GuardPlace
	// Check rules on a text. It must be safe for concurrent use. Rulings on input are remembered.
	Check func(context.Context, Guarded) (Ruling, error)
	// Open passes a text whose check fails, with a notice. Otherwise a request fails with the error
	// and can be resumed, and a result is withheld from the model.
	Open bool
	// Timeout bounds one check. 0 means 30 s.
	Timeout time.Duration
}

// GuardPlace is where a Guard checks.
type GuardPlace string

// The places of a Guard.
const (
	GuardInput  GuardPlace = "input"  // each message of the user
	GuardOutput GuardPlace = "output" // the text of each reply
	GuardResult GuardPlace = "result" // the text of a tool's result, or of its error
)

// Guarded is a text to check.
type Guarded struct {
	// Place is where the text stands.
	Place GuardPlace `json:"place"`
	// Tool is the name of the tool that returned a result. "" means that the text is no result.
	Tool string `json:"tool,omitzero"`
	// Text is what to check. It is never empty.
	Text string `json:"text"`
}

// GuardAction is what happens to a checked text.
type GuardAction string

// The actions. Every other word, also "", is an error of the check.
const (
	GuardAllow   GuardAction = "allow"
	GuardReplace GuardAction = "replace" // by Ruling.Text
	GuardStop    GuardAction = "stop"    // for the reason Ruling.Text
)

// Ruling is the outcome of a check.
type Ruling struct {
	// Action is what happens to the text.
	Action GuardAction
	// Text is the text in place of the checked text, or the reason of a stop.
	Text string
	// Usage is the usage of the check. For input and output it counts in the usage of the run.
	Usage llm.Usage
	// Requests is the number of model requests of the check. 0 means that it asked no model.
	Requests int
}

// checkSettings reports settings that guard nothing.
func (g Guard) checkSettings() error {
	if g.Check == nil {
		return fmt.Errorf("guard %s: Check is nil; set it, for example to ModelCheck", g.Name)
	}
	for _, p := range g.Places {
		switch p {
		case GuardInput, GuardOutput, GuardResult:
		default:
			return fmt.Errorf("guard %s: there is no place %q; there are input, output and result", g.Name, p)
		}
	}
	return nil
}

// guard is a Guard with its rulings on input.
type guard struct {
	Guard
	mu    sync.Mutex
	known map[[sha256.Size]byte]Ruling // by the digest of the text; at most mostRulings
}

const mostRulings = 4096

// guards reports whether g checks at the place p.
func (g *guard) guards(p GuardPlace) bool { return g.Places == nil || slices.Contains(g.Places, p) }

// ruled is the outcome of a check by a guard.
type ruled struct {
	Ruling

	// passed is the error of a check whose text an open guard passes. Nil means that the check did
	// not fail.
	passed error
}

// rule checks a text. An error is returned with the usage of the check.
func (g *guard) rule(ctx context.Context, what Guarded) (r ruled, err error) {
	ctx, cancel := context.WithTimeout(background.Aside(ctx), g.Timeout)
	defer cancel()
	r.Ruling, err = g.check(ctx, what)
	if err == nil {
		return r, nil
	}

	// A run that was cancelled passes nothing.
	err = fmt.Errorf("guard %s: the %s could not be checked: %w", g.Name, what.Place, err)
	if g.Open && ctx.Err() != context.Canceled {
		r.Action = GuardAllow
		r.passed = err
		return r, nil
	}
	return r, err
}

// check returns the ruling of Check. A panic, and an unknown action, are errors.
func (g *guard) check(ctx context.Context, what Guarded) (r Ruling, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	r, err = g.Check(ctx, what)
	if err != nil {
		return r, err
	}
	switch r.Action {
	case GuardAllow, GuardReplace, GuardStop:
		return r, nil
	}
	return r, fmt.Errorf("%q is no action; there are allow, replace and stop", r.Action)
}

// notice describes r for observers. nil means that there is nothing to report.
func (g *guard) notice(p GuardPlace, r ruled) *llm.Notice {
	var text string
	switch {
	// The guard has failed, and its setting lets the text pass. An observer must see that.
	case r.passed != nil:
		text = r.passed.Error()
	case r.Action == GuardReplace:
		text = fmt.Sprintf("guard %s replaced the %s", g.Name, p)
	case r.Action == GuardStop:
		text = fmt.Sprintf("guard %s stopped the %s: %s", g.Name, p, cmp.Or(r.Text, "no reason was given"))
	default:
		return nil
	}
	data, _ := json.Marshal(map[string]string{ // strings: no error is possible
		"guard":  g.Name,
		"place":  string(p),
		"action": string(r.Action),
	})
	return &llm.Notice{Code: "guard", Text: text, Data: data}
}
