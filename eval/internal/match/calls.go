package match

import (
	"cmp"
	"encoding/json"
	"path"
)

// Made is a call of a run.
type Made struct {
	// Tool is the name of the tool.
	Tool string

	// Args are the arguments that the tool ran with, or that the model asked for.
	Args json.RawMessage

	// Result is the text of the result.
	Result string

	// Outcome is how the call ended, such as ok.
	Outcome string

	// Reads is true for a tool that changes nothing.
	Reads bool
}

// Call is an expected call.
type Call struct {
	// Tool is the name of the tool, or a pattern.
	Tool string

	// Args and Result are what the call had. Nil means any.
	Args, Result *Matcher

	// Outcome is how the call ended. Empty means ok.
	Outcome string

	// ID names the call for After of another one. Empty means no name.
	ID string

	// After is the ID of a call that was made earlier. Empty means none.
	After string
}

// Fits reports whether a call that was made is the expected one.
func (c *Call) Fits(m Made) bool {
	return m.Outcome == cmp.Or(c.Outcome, done) && c.Asks(m)
}

// done is the outcome of a call that succeeded.
const done = "ok"

// Asks is Fits without the outcome: whether the model asked for the call.
func (c *Call) Asks(m Made) bool {
	if !Named(c.Tool, m.Tool) {
		return false
	}
	if c.Args != nil && !c.Args.Fits(m.Args) {
		return false
	}
	if c.Result == nil {
		return true
	}
	text, err := json.Marshal(m.Result)
	return err == nil && c.Result.Fits(text)
}

// Named reports whether a pattern, such as file_*, names the tool.
func Named(pattern, tool string) bool {
	ok, err := path.Match(pattern, tool)
	return err == nil && ok
}

// The orders of expected calls.
const (
	// InAnyOrder pairs each expected call with one of the run, as many as possible.
	InAnyOrder = "any"

	// InOrder finds the expected calls one after another, with others between them.
	InOrder = "in_order"

	// Exactly wants the expected calls and no others, each in its place.
	Exactly = "exact"
)

// What is said of calls that were made and not expected.
const (
	ExtraReads  = "reads"  // they read
	ExtraAllow  = "allow"  // any
	ExtraForbid = "forbid" // none
)

// Plan is what a run is expected to do.
type Plan struct {
	// Expect are the calls.
	Expect []Call

	// Order is one of the orders.
	Order string

	// Extra is one of the words for calls that are not expected.
	Extra string
}

// Comparison is how the calls of a run differ from a Plan.
type Comparison struct {
	// Missing are the numbers of expected calls that were not made.
	Missing []int

	// Extra are the numbers of the calls of the run that were not expected and not allowed.
	Extra []int

	// F1 is the harmonic mean of the shares of pairs in the calls of the run and of the plan.
	F1 float64
}

// Compare compares the calls of a run with the plan.
func (p *Plan) Compare(made []Made) *Comparison {
	pairs := p.pairs(made)
	taken := map[int]bool{}
	out := &Comparison{}
	for i, j := range pairs {
		if j < 0 {
			out.Missing = append(out.Missing, i)
			continue
		}
		taken[j] = true
	}

	for j, m := range made {
		if !taken[j] && !p.allows(m) {
			out.Extra = append(out.Extra, j)
		}
	}
	precision := share(len(taken), len(made))
	recall := share(len(taken), len(p.Expect))
	if sum := precision + recall; sum > 0 {
		out.F1 = 2 * precision * recall / sum
	}
	return out
}

// share is a part of a whole. Nothing of nothing is all of it.
func share(part, whole int) float64 {
	if whole == 0 {
		return 1
	}
	return float64(part) / float64(whole)
}

// allows reports whether a call may be made although it is not expected.
func (p *Plan) allows(m Made) bool {
	switch {
	case m.Outcome != done:
		return true // it did nothing
	case p.Order == Exactly || p.Extra == ExtraForbid:
		return false
	case p.Extra == ExtraAllow:
		return true
	}
	return m.Reads
}

// pairs returns for each expected call the number of the call of the run, or -1.
func (p *Plan) pairs(made []Made) []int {
	switch p.Order {
	case Exactly:
		return p.places(made)
	case InOrder:
		return p.subsequence(made)
	}
	if p.hasAfter() {
		return p.search(made)
	}
	return pair(len(p.Expect), len(made), func(i, j int) bool { return p.Expect[i].Fits(made[j]) })
}

func (p *Plan) hasAfter() bool {
	for _, c := range p.Expect {
		if c.After != "" {
			return true
		}
	}
	return false
}

// places pairs calls that stand in the same place.
func (p *Plan) places(made []Made) []int {
	pairs := none(len(p.Expect))
	for i := range p.Expect {
		if i < len(made) && p.Expect[i].Fits(made[i]) {
			pairs[i] = i
		}
	}
	return pairs
}

// subsequence pairs each call with the earliest one after the previous pair.
func (p *Plan) subsequence(made []Made) []int {
	pairs := none(len(p.Expect))
	next := 0
	for i := range p.Expect {
		for j := next; j < len(made); j++ {
			if p.Expect[i].Fits(made[j]) {
				pairs[i] = j
				next = j + 1
				break
			}
		}
	}
	return pairs
}

func none(n int) []int {
	pairs := make([]int, n)
	for i := range pairs {
		pairs[i] = -1
	}
	return pairs
}

// mostSteps bounds the search, whose time could grow with the factorial of the calls.
const mostSteps = 1_000_000

// search pairs calls of which some are after others. It returns the first complete pairing, or the
// best of what it has seen.
func (p *Plan) search(made []Made) []int {
	s := searching{plan: p, made: made, now: none(len(p.Expect)), best: none(len(p.Expect))}
	s.from(0)
	return s.best
}

// searching is the state of a search.
type searching struct {
	plan  *Plan
	made  []Made
	now   []int
	best  []int
	steps int
}

// from pairs the i-th expected call and all after it, and reports whether all have a partner.
func (s *searching) from(i int) bool {
	s.steps++
	if i == len(s.now) {
		if paired(s.now) > paired(s.best) {
			copy(s.best, s.now)
		}
		return paired(s.now) == len(s.now)
	}
	if s.steps > mostSteps {
		return false
	}

	for j := range s.made {
		if s.isTaken(j) || !s.plan.Expect[i].Fits(s.made[j]) {
			continue
		}
		s.now[i] = j
		if s.isOrdered() && s.from(i+1) {
			return true
		}
	}
	s.now[i] = -1
	return s.from(i + 1)
}

func (s *searching) isTaken(j int) bool {
	for _, other := range s.now {
		if other == j {
			return true
		}
	}
	return false
}

// isOrdered reports whether the pairs so far keep every After.
func (s *searching) isOrdered() bool {
	for i, c := range s.plan.Expect {
		for k, d := range s.plan.Expect {
			isEarlier := c.After != "" && d.ID == c.After
			if isEarlier && s.now[i] >= 0 && s.now[k] >= s.now[i] {
				return false
			}
		}
	}
	return true
}
