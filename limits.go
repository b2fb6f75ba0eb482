package pawl

// limits.go: Limits, their checks and their names.

import (
	"strings"
	"time"
)

// Limits bound a run with its nested calls and runs. Resume continues with the usage of the earlier
// run. Reaching a limit is never reported as success: the run stops with StopLimit and a
// *StopError, and Result.Limit names the limit. An answer that came with the request that passed
// Tokens or Cost is in the Result.
//
// A model repeats itself if it makes the same call with the same result LoopThreshold times among
// twice as many calls, or if calls of one tool fail in LoopThreshold steps without a successful
// call between them. The result then contains a warning. As many equal calls again, or failures in
// three times as many steps, end the run with StopStalled.
type Limits struct {
	// Steps whose calls are executed. 0 means 20, and 1 for Agent.Once. NoRounds means none. A run
	// of N rounds makes at most N+1 requests.
	Rounds int
	// Calls that are started. Further calls get a result that says so. 0 means no limit.
	Calls int
	// Calls of one reply that are executed. Further calls get a result that says so. 0 means no
	// limit.
	CallsPerStep int
	// Input and output tokens of all requests. The run stops after a reply without usage. 0 means
	// no limit.
	Tokens int
	// US dollars. The run fails at once if the price of the model is unknown, and stops after a
	// reply without usage if the price is not zero. 0 means no limit.
	Cost float64
	// Time from the start of Run, Stream or Resume. 0 means no limit.
	Time time.Duration
	// Replies that are sent back to the model, each with one more request: answers that do not fit
	// Agent.Output, and calls that the provider could not read. 0 means 2, a negative number means
	// none.
	Corrections int
	// Repetitions until the model gets a warning. 0 means 3, the maximum is 50, a negative number
	// means no limit.
	LoopThreshold int `json:"Repeats"`
	// Content of the last request when a limit is reached.
	AtLimit AtLimit
}

// NoRounds as Limits.Rounds means that no call is executed.
const NoRounds = -1

const defaultRounds = 20

// AtLimit selects the form of the last request: when the rounds are used up, when a call was
// rejected for Limits.Calls, and when another request like the last would reach Limits.Tokens or
// Limits.Cost.
type AtLimit int

// Forms of the last request. The zero value means AtLimitReturn for Agent.Once, and AtLimitAnswer
// for all other runs.
const (
	// Tool choice none, so that the model answers.
	AtLimitAnswer AtLimit = iota + 1
	// As usual. The calls of the reply are left to the caller.
	AtLimitReturn
)

// LimitName names a limit: rounds, calls, tokens, cost or time, as in Limits, output for the length
// of a reply, or window for the context window. "" means none.
type LimitName string

// setting returns the field that sets the limit. The name may come from a stored Result.
func (n LimitName) setting() string {
	switch n {
	case "":
		return "the limit"
	case "output":
		return "Settings.MaxTokens"
	case "window":
		return "the context window"
	}
	return "Limits." + strings.ToUpper(string(n[:1])) + string(n[1:])
}

// reached is a limit that was reached, with the sentence for Result.Cause. Zero means none.
type reached struct {
	limit LimitName
	cause string
}

// check adds the limits that have no meaning.
func (l *Limits) check(f *faults) {
	f.addIf(l.Rounds < NoRounds, "Limits.Rounds", "it is negative; NoRounds means none, and 0 means 20")
	const negative = "it is negative; 0 means no limit"
	f.addIf(l.Calls < 0, "Limits.Calls", negative)
	f.addIf(l.CallsPerStep < 0, "Limits.CallsPerStep", negative)
	f.addIf(l.Tokens < 0, "Limits.Tokens", negative)
	f.addIf(!(l.Cost >= 0), "Limits.Cost", "it is negative or no number; 0 means no limit")
	f.addIf(l.Time < 0, "Limits.Time", negative)
	f.addIf(l.LoopThreshold > stallMost, "Limits.LoopThreshold",
		"it is more than 50, the maximum; a negative number means no limit")
	f.addIf(l.AtLimit < 0 || l.AtLimit > AtLimitReturn, "Limits.AtLimit", "want AtLimitAnswer, AtLimitReturn or 0")
}
