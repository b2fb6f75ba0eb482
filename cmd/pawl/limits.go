package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
)

// limitFlags bound a run; in a chat each turn is a run.
type limitFlags struct {
	MaxRounds *whole         `name:"max-rounds" placeholder:"N" help:"Rounds of calls at most; 0 runs no call and hands them back. Default: 20."`
	MaxCalls  *whole         `name:"max-calls" placeholder:"N" help:"Calls that are carried out at most; what comes after them is refused, and the model asked for an answer."`
	MaxTokens *whole         `name:"max-tokens" placeholder:"N" help:"Tokens that all requests and replies may take together, about: once one more request could pass them, it is the last."`
	MaxCost   *float64       `name:"max-cost" placeholder:"USD" help:"US dollars that the run may cost, about: once one more request could pass them, it is the last. For models whose price the catalogue has."`
	MaxTime   *time.Duration `name:"max-time" placeholder:"TIME" help:"How long the run may take, such as 90s or 10m; what is under way then is ended."`
}

// limits are those that the flags set. One of 0 that is not about rounds would be no limit to the runtime, and is none that anybody means.
func (f *limitFlags) limits(model pawl.Model, named string) (l pawl.Limits, err error) {
	for _, n := range []struct {
		flag string
		from *whole
		into *int
	}{{"--max-calls", f.MaxCalls, &l.Calls}, {"--max-tokens", f.MaxTokens, &l.Tokens}} {
		if n.from == nil {
			continue
		}
		if *n.from <= 0 {
			return l, usage("without the flag there is no limit; --max-rounds 0 runs no call", "%s %d is not more than 0", n.flag, *n.from)
		}
		*n.into = int(*n.from)
	}
	if t := f.MaxTime; t != nil {
		if *t <= 0 {
			return l, usage("a time such as 90s or 10m; without the flag there is no limit", "--max-time %v is not more than 0", *t)
		}
		l.Time = *t
	}
	if n := f.MaxRounds; n != nil {
		switch {
		case *n < 0:
			return l, usage("0 runs no call; without the flag there are 20 rounds", "--max-rounds %d is less than 0", *n)
		case *n == 0:
			l.Rounds, l.AtLimit = pawl.NoRounds, pawl.Return
		default:
			l.Rounds = int(*n)
		}
	}
	l.Cost, err = f.maxCost(model, named)
	return l, err
}

// maxCost is the limit on cost; 0: none. One that nobody could keep is found here, before anything is sent.
func (f *limitFlags) maxCost(model pawl.Model, named string) (float64, error) {
	if f.MaxCost == nil {
		return 0, nil
	}
	limit := *f.MaxCost
	if !(limit > 0) || math.IsInf(limit, 0) {
		return 0, usage("a number of US dollars, such as 0.50; without the flag there is no limit", "--max-cost %v is not more than 0", limit)
	}
	if p, ok := model.(pawl.Pricer); ok {
		if _, known := p.MaxCost(new(pawl.Request)); known {
			return limit, nil
		}
	}
	name, id, _ := strings.Cut(named, ":")
	return 0, usage(fmt.Sprintf(`give it one with --catalog FILE: [{"provider":%q,"id":%q,"price":{"input":1.5,"output":6}}], dollars for a million tokens`,
		name, id), "--max-cost cannot be kept: the price of %s is not known", named)
}

// raise says which flag allows more, where a run came to a limit.
func (f *limitFlags) raise(res *pawl.Result) string {
	if n := len(res.Steps); n > 0 && res.Steps[n-1].Response != nil && res.Steps[n-1].Response.Finish == pawl.FinishLength {
		return "a shorter answer may fit; ask for one, or choose a model that writes more"
	}
	switch has := strings.Contains; {
	case f.MaxCost != nil && has(res.Cause, "$"):
		return "--max-cost USD allows more"
	case f.MaxTokens != nil && has(res.Cause, "tokens of"):
		return "--max-tokens N allows more"
	case f.MaxCalls != nil && has(res.Cause, "calls was reached"):
		return "--max-calls N allows more"
	case f.MaxTime != nil && has(res.Cause, "time of"):
		return "--max-time TIME allows more"
	}
	return "--max-rounds N allows more rounds"
}
