package pawl

// stall.go: detects a model that repeats itself.

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

const (
	stallCount = 3  // default of Limits.LoopThreshold
	stallMost  = 50 // maximum of Limits.LoopThreshold
)

// stall detects a model that repeats itself. The warning is part of the result of the call.
//
//   - The same call with the same canonical arguments and the same result, three times in six
//     calls, or two such calls in turn: the third gets a warning, three more end the run. Polling
//     with changing results is no repetition, and equal calls of one reply count as one.
//   - Calls of one tool that fail in three steps, with any arguments and no successful call between
//     them, get a warning; after nine steps the run ends. Most models correct a call in one or two.
//
// Limits.LoopThreshold replaces the three.
type stall struct {
	limit   int    // Limits.LoopThreshold
	recent  []seen // ring buffer of twice the threshold
	count   int    // of the calls so far
	strikes []seen // calls that got a warning
	failing map[string]failing
	cause   string // for the end of the run; "" means that it continues
}

type seen struct {
	name   string
	args   []byte
	canon  []byte // canonical args; nil until first needed
	result string
	failed bool
	step   int // of the call
	again  int // number of repetitions since the warning
}

// failing counts the steps in which a tool failed since the last successful call of any tool.
type failing struct{ steps, last int }

func (a *seen) equal(b *seen) bool {
	return a.name == b.name && a.failed == b.failed && a.result == b.result &&
		(bytes.Equal(a.args, b.args) || bytes.Equal(a.canonical(), b.canonical()))
}

func (a *seen) canonical() []byte {
	if a.canon == nil {
		a.canon = jsonform.Canonical(a.args)
	}
	return a.canon
}

// observe records a completed call. It returns true if it adds a warning to the result.
func (s *stall) observe(x *Execution, step int) (warned bool) {
	if s.limit < 0 || x.Outcome == OutcomeSkipped || x.Outcome == OutcomeCancelled {
		return false
	}
	limit := s.limit
	if limit == 0 {
		limit = stallCount
	}
	limit = min(limit, stallMost)

	// Both rules record the call, also if the first one warns.
	fails := s.fails(x, step)
	if s.repeated(x, step, limit) {
		return true
	}
	if fails < limit {
		return false
	}
	if fails >= 3*limit && s.cause == "" {
		s.cause = fmt.Sprintf("calls of %s failed in %d steps, and nothing worked between them", x.Call.Name, fails)
	}
	x.Result.Parts = append(x.Result.Parts[:len(x.Result.Parts):len(x.Result.Parts)], llm.Text{Text: fmt.Sprintf(
		"\n%s has failed %d times now, and nothing worked in between. Do not try another variation: do it in "+
			"another way, or answer and say what is missing.", x.Call.Name, fails)})
	return true
}

// fails returns the number of steps in which the tool of x has failed since the last successful
// call, including this one. 0 means that x did not fail.
func (s *stall) fails(x *Execution, step int) int {
	switch {
	case x.Outcome == OutcomeOK:
		clear(s.failing)
		return 0
	case !x.Outcome.Failed():
		return 0
	case s.failing == nil:
		s.failing = map[string]failing{}
	}
	f := s.failing[x.Call.Name]
	if f.steps == 0 || f.last < step { // calls of one reply count once
		f = failing{f.steps + 1, step}
		s.failing[x.Call.Name] = f
	}
	return f.steps
}

// repeated records the call. If it is a repetition, repeated replaces its result by a warning and
// returns true.
func (s *stall) repeated(x *Execution, step, limit int) bool {
	c := seen{name: x.Call.Name, args: x.Call.Args, result: x.Result.Text(), failed: x.Result.IsError, step: step}
	for i := range s.recent {
		if s.recent[i].step == step && s.recent[i].equal(&c) {
			return false // calls of one reply count once
		}
	}
	if s.remember(&c, limit) < limit {
		return false
	}
	other := s.turnsWith(&c)
	s.strike(&c, other, limit)

	// The warning replaces the result, because the model has seen the result before and went on.
	why := "This call was made before with the same arguments, and its result does not change: "
	if other != nil {
		why = "You go back and forth between this call and one of " + other.name + ", with the same arguments, and neither result changes. This one is: "
	}
	x.Result.IsError = true
	x.Result.Data = nil
	x.Result.Parts = []llm.Part{llm.Text{Text: why + text.Clip(c.result, 500) + "\nDo something else, or answer with what you have."}}
	return true
}

// remember records c among the last calls, and returns how many of them equal it, c included.
func (s *stall) remember(c *seen, limit int) (count int) {
	if len(s.recent) < 2*limit {
		s.recent = append(s.recent, *c)
	} else {
		s.recent[s.count%len(s.recent)] = *c
	}
	s.count++
	for i := range s.recent {
		if s.recent[i].equal(c) {
			count++
		}
	}
	return count
}

// strike records that c gets a warning. It ends the run if c has been repeated too often since its
// first one. other is the call that alternates with c; nil means none.
func (s *stall) strike(c, other *seen, limit int) {
	i := slices.IndexFunc(s.strikes, func(k seen) bool { return k.equal(c) })
	if i < 0 {
		s.strikes = append(s.strikes, *c)
		return
	}

	k := &s.strikes[i]
	if k.step < c.step { // calls of one reply count once
		k.again++
	}
	if k.again < limit || s.cause != "" {
		return
	}
	s.cause = "the model repeats the call of " + c.name + " although its result does not change"
	if other != nil {
		s.cause = "the model goes back and forth between calls of " + other.name + " and " + c.name + " although their results do not change"
	}
}

// turnsWith returns the call that alternates with c, the last call. nil means none.
func (s *stall) turnsWith(c *seen) *seen {
	size := len(s.recent)
	if s.count < 4 || size < 4 {
		return nil
	}
	back := func(n int) *seen { return &s.recent[(s.count-1-n)%size] }
	if other := back(1); !other.equal(c) && back(2).equal(c) && back(3).equal(other) {
		return other
	}
	return nil
}
