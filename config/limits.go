package config

// limits.go: Limits of an agent, as pawl.Limits.

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// limits returns the limits of the agent. The runtime takes 0 as no limit; in a file 0 is an error,
// except for rounds and corrections.
func (b *builder) limits(model llm.Model) (l pawl.Limits, err error) {
	from := &b.agent.Limits
	for _, n := range []struct {
		path string
		from *int
		into *int
	}{{"calls", from.Calls, &l.Calls}, {"calls_per_step", from.CallsPerStep, &l.CallsPerStep},
		{"tokens", from.Tokens, &l.Tokens}, {"repeats", from.Repeats, &l.LoopThreshold},
		{"parallel", from.Parallel, new(int)}} {
		if n.from == nil {
			continue
		}
		if *n.from <= 0 {
			return l, finding(CodeBadValue, "limits."+n.path, "without it there is no such limit; 0 rounds execute no call", "%d is not more than 0", *n.from)
		}
		*n.into = *n.from
	}
	if from.Time != nil {
		if l.Time = time.Duration(*from.Time); l.Time <= 0 {
			return l, finding(CodeBadValue, "limits.time", "a time such as 90s or 10m; without it there is no limit", "%v is not more than 0", l.Time)
		}
	}
	if n := from.Rounds; n != nil {
		switch {
		case *n < 0:
			return l, finding(CodeBadValue, "limits.rounds", "0 runs no call; left out, there are 20 rounds", "%d is less than 0", *n)
		case *n == 0:
			l.Rounds, l.AtLimit = pawl.NoRounds, pawl.AtLimitReturn
		default:
			l.Rounds = *n
		}
	}
	if n := from.Corrections; n != nil {
		if l.Corrections = *n; *n == 0 {
			l.Corrections = -1
		}
	}
	switch from.AtLimit {
	case "answer":
		l.AtLimit = pawl.AtLimitAnswer
	case "return":
		l.AtLimit = pawl.AtLimitReturn
	}
	l.Cost, err = b.cost(model)
	return l, err
}

// cost returns the limit on cost; 0 means no limit. A limit without a known price is an error here,
// before anything is sent.
func (b *builder) cost(model llm.Model) (float64, error) {
	if b.agent.Limits.Cost == nil {
		return 0, nil
	}
	limit := *b.agent.Limits.Cost
	if !(limit > 0) || math.IsInf(limit, 0) {
		return 0, finding(CodeBadValue, "limits.cost", "a number of US dollars, such as 0.50; without it there is no limit", "%v is not more than 0", limit)
	}
	if p, ok := llm.As[llm.Pricer](model); ok {
		if _, known := p.MaxCost(new(llm.Request)); known {
			return limit, nil
		}
	}
	named := b.agent.Model[0].Name
	name, id, _ := strings.Cut(named, ":")
	return 0, finding(CodeUnavailable, "limits.cost", fmt.Sprintf(`give it one in a catalogue of your own: [{"provider":%q,"id":%q,"price":{"input":1.5,"output":6}}], dollars for a million tokens`,
		name, id), "it cannot be enforced: the price of %s is not known", named)
}
