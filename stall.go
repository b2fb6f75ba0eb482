package pawl

import "bytes"

const (
	stallWindow = 6 // calls looked back at, the one just made included
	stallCount  = 3 // equal ones among them are a repetition, unless Limits.Repeats says otherwise
)

// stall finds a model that turns in circles: the same call with the same canonical arguments and the same result, three
// times in six. The third is answered with an error that says so; three more end the run. Polling whose result changes is not stalled.
type stall struct {
	limit   int // Limits.Repeats
	recent  [stallWindow]seen
	n       int
	strikes []seen // repetitions that were told, with how often
	over    bool
	name    string // of the call that is repeated
}

type seen struct {
	name   string
	args   []byte
	canon  []byte // canonical args; nil until somebody asked
	result string
	failed bool
	step   int // in which it was told
	told   int // how often it was made again since
}

func (a *seen) equal(b *seen) bool {
	return a.name == b.name && a.failed == b.failed && a.result == b.result &&
		(bytes.Equal(a.args, b.args) || bytes.Equal(a.canonical(), b.canonical()))
}

func (a *seen) canonical() []byte {
	if a.canon == nil {
		a.canon = canonical(a.args)
	}
	return a.canon
}

// see notes a settled call, and words its result anew when it is a repetition.
func (s *stall) see(x *Execution, step int) {
	if s.limit < 0 || x.Outcome == OutcomeSkipped || x.Outcome == OutcomeCancelled {
		return
	}
	limit := s.limit
	if limit == 0 {
		limit = stallCount
	}
	c := seen{name: x.Call.Name, args: x.Call.Args, result: x.Result.Text(), failed: x.Result.IsError}
	s.recent[s.n%stallWindow] = c
	s.n++
	count := 0
	for i := range min(s.n, stallWindow) {
		if s.recent[i].equal(&c) {
			count++
		}
	}
	if count < min(limit, stallWindow) {
		return
	}
	known := false
	for i := range s.strikes {
		k := &s.strikes[i]
		if !k.equal(&c) {
			continue
		}
		known = true
		if k.step < step { // calls of one reply cannot know of each other
			k.told++
		}
		if k.told >= limit {
			s.over, s.name = true, c.name
		}
	}
	if !known {
		c.step = step
		s.strikes = append(s.strikes, c)
	}
	x.Result.IsError = true
	x.Result.Data = nil
	x.Result.Parts = []Part{Text{Text: "This call was made before with the same arguments, and its result does not change: " +
		clip(c.result, 500) + "\nDo something else, or answer with what you have."}}
}
