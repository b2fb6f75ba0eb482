package assemble

import (
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/config"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/outside"
)

// limitFlags bound a run; in a chat each turn is a run.
type limitFlags struct {
	MaxRounds *cli.Whole     `name:"max-rounds" placeholder:"N" help:"@limit_maxrounds"`
	MaxCalls  *cli.Whole     `name:"max-calls" placeholder:"N" help:"@limit_maxcalls"`
	MaxTokens *cli.Whole     `name:"max-tokens" placeholder:"N" help:"@limit_maxtokens"`
	MaxCost   *float64       `name:"max-cost" placeholder:"USD" help:"@limit_maxcost"`
	MaxTime   *time.Duration `name:"max-time" placeholder:"TIME" help:"@limit_maxtime"`
}

// over writes the limits that the flags set over those of the agent.
func (f *limitFlags) over(a *config.Agent) {
	l := &a.Limits
	Set(a, "limits.rounds", &l.Rounds, (*int)(f.MaxRounds))
	Set(a, "limits.calls", &l.Calls, (*int)(f.MaxCalls))
	Set(a, "limits.tokens", &l.Tokens, (*int)(f.MaxTokens))
	Set(a, "limits.cost", &l.Cost, f.MaxCost)
	Set(a, "limits.time", &l.Time, (*outside.Duration)(f.MaxTime))
}

// raise says which flag allows more, where a run came to a limit.
func (f *limitFlags) raise(res *pawl.Result) string {
	if n := len(res.Steps); n > 0 && res.Steps[n-1].Response != nil &&
		res.Steps[n-1].Response.Finish == llm.FinishReasonLength {
		return "a shorter answer may fit; ask for one, or choose a model that writes more: pawl models list"
	}
	switch has := strings.Contains; {
	case has(res.Cause, "$"):
		return "--max-cost USD allows more, such as: pawl run --max-cost 1.00 TASK"
	case has(res.Cause, "tokens of"):
		return "--max-tokens N allows more, such as: pawl run --max-tokens 100000 TASK"
	case has(res.Cause, "calls was reached"):
		return "--max-calls N allows more, such as: pawl run --max-calls 100 TASK"
	case has(res.Cause, "time of"):
		return "--max-time TIME allows more, such as: pawl run --max-time 10m TASK"
	}
	return "--max-rounds N allows more rounds, such as: pawl run --max-rounds 40 TASK"
}
