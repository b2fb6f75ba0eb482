package pawl

// limits.go: Limits, and the table of what each limit is.

import (
	"slices"
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
	// Steps whose calls are executed. 0 means 20, and 1 for Agent.Once. NoRounds means none: tools
	// are offered, and the calls of the first reply are returned (AtLimitReturn, unless AtLimit
	// says otherwise). A run of N rounds makes at most N+1 requests.
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

// NoRounds as Limits.Rounds means that no call is executed, as rounds: 0 in an agent's file and
// max_tool_rounds of 0 in other clients: the calls are in Result.Calls.
const NoRounds = -1

// atLimit returns the form of the last request.
func (l *Limits) atLimit() AtLimit {
	switch {
	case l.AtLimit != 0:
		return l.AtLimit
	case l.Rounds == NoRounds:
		return AtLimitReturn
	}
	return AtLimitAnswer
}

const defaultRounds = 20

// AtLimit selects the form of the last request: when the rounds are used up, when a call was
// rejected for Limits.Calls, and when another request like the last would reach Limits.Tokens or
// Limits.Cost.
type AtLimit int

// Forms of the last request. The zero value means AtLimitReturn for Agent.Once and with NoRounds,
// and AtLimitAnswer for all other runs.
const (
	// Tool choice none, so that the model answers.
	AtLimitAnswer AtLimit = iota + 1
	// As usual. The calls of the reply are left to the caller.
	AtLimitReturn
)

// LimitName names a limit, as in the keys of a file and in Result.Limit: see LimitInfos. "" means
// none.
type LimitName string

// LimitInfo describes a limit of a run. Checks, keys of files, flags, hints and pages are made from
// it.
type LimitInfo struct {
	// Name is the key below limits in a file, and Result.Limit of a run that reached the limit. No
	// run ends with corrections, repeats or calls_per_step as its Limit.
	Name LimitName
	// Setting sets the limit in Go, such as "Limits.Rounds".
	Setting string
	// Help says what the limit bounds. "" means that no key in a file sets it.
	Help string
	// Flag sets the limit on the command line, such as "--max-rounds". "" means that no flag does.
	Flag string
	// Unit stands for the value of the flag: N, USD or TIME.
	Unit string
	// Example is a value of the flag that allows much.
	Example string
	// None is the value of the field in Limits that means none at all, which a file writes as 0. 0
	// means that the limit has no such value.
	None int
	// Raise says what allows more, for a limit without a flag.
	Raise string
	// Nested reports whether nested calls and runs count towards the limits of the runs around
	// them.
	Nested bool
}

// LimitInfos returns the limits of a run, in the order of Limits. The last two are not in Limits:
// the length of a reply and the context window.
func LimitInfos() []LimitInfo {
	infos := make([]LimitInfo, len(limitTable))
	for i := range limitTable {
		infos[i] = limitTable[i].LimitInfo
	}
	return infos
}

// limitRow is a limit in limitTable.
type limitRow struct {
	LimitInfo

	// fault returns what is wrong with the limit. "" means nothing. nil means that every value is
	// right.
	fault func(*Limits) string
}

const negative = "it is negative; 0 means no limit"

// limitTable has a row for each limit. Where a limit is counted is in budget.go and loop.go.
var limitTable = []limitRow{
	{LimitInfo{
		Name:    "rounds",
		Setting: "Limits.Rounds",
		Help:    "Maximum number of rounds of calls; 0 executes no call and returns the calls. Default: 20.",
		Flag:    "--max-rounds",
		Unit:    "N",
		Example: "40",
		None:    NoRounds,
	}, func(l *Limits) string {
		return faultIf(l.Rounds < NoRounds, "it is negative; NoRounds means none, and 0 means 20")
	}},
	{LimitInfo{
		Name:    "calls",
		Setting: "Limits.Calls",
		Help: "Maximum number of executed calls; later calls are rejected, and the model is asked for an " +
			"answer.",
		Flag:    "--max-calls",
		Unit:    "N",
		Example: "100",
		Nested:  true,
	}, func(l *Limits) string { return faultIf(l.Calls < 0, negative) }},
	{LimitInfo{
		Name:    "calls_per_step",
		Setting: "Limits.CallsPerStep",
		Help: "Maximum number of executed calls in one reply; later calls are rejected with a result that " +
			"says so.",
	}, func(l *Limits) string { return faultIf(l.CallsPerStep < 0, negative) }},
	{LimitInfo{
		Name:    "tokens",
		Setting: "Limits.Tokens",
		Help: "Maximum number of tokens of all requests and replies, approximately: a request that could " +
			"exceed it is the last.",
		Flag:    "--max-tokens",
		Unit:    "N",
		Example: "100000",
		Nested:  true,
	}, func(l *Limits) string { return faultIf(l.Tokens < 0, negative) }},
	{LimitInfo{
		Name:    "cost",
		Setting: "Limits.Cost",
		Help: "Maximum cost of the run in US dollars, approximately: a request that could exceed it is the " +
			"last. Only for models with a price in the catalogue.",
		Flag:    "--max-cost",
		Unit:    "USD",
		Example: "1.00",
		Nested:  true,
	}, func(l *Limits) string {
		number := l.Cost >= 0 // false for NaN
		return faultIf(!number, "it is negative or no number; 0 means no limit")
	}},
	{LimitInfo{
		Name:    "time",
		Setting: "Limits.Time",
		Help:    "Maximum time of the run, such as 90s or 10m. It cancels requests and calls in progress.",
		Flag:    "--max-time",
		Unit:    "TIME",
		Example: "10m",
		Nested:  true,
	}, func(l *Limits) string { return faultIf(l.Time < 0, negative) }},
	{LimitInfo{
		Name:    "corrections",
		Setting: "Limits.Corrections",
		Help: "Maximum number of replies that are sent back: answers that do not fit the output, and calls " +
			"that the provider could not read. Default: 2.",
		None: -1,
	}, nil},
	{LimitInfo{
		Name:    "repeats",
		Setting: "Limits.LoopThreshold",
		Help:    "The number of identical calls with identical results before the model is warned. Default: 3.",
	}, func(l *Limits) string {
		return faultIf(l.LoopThreshold > stallMost, "it is more than 50, the maximum; a negative number means no limit")
	}},
	{LimitInfo{
		Name:    "output",
		Setting: "Settings.MaxTokens",
		Raise:   "a shorter answer may fit; ask for one, or choose a model that writes more",
	}, nil},
	{LimitInfo{
		Name:    "window",
		Setting: "the context window",
		Raise:   "a model with a larger context window may do it",
	}, nil},
}

// faultIf returns the text if the condition holds, else "".
func faultIf(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}

// setting returns the field that sets the limit. The name may come from a stored Result.
func (n LimitName) setting() string {
	i := slices.IndexFunc(limitTable, func(row limitRow) bool { return row.Name == n })
	if i < 0 {
		return "the limit"
	}
	return limitTable[i].Setting
}

// reached is a limit that was reached, with the sentence for Result.Cause. Zero means none.
type reached struct {
	limit LimitName
	cause string
}

// check adds the limits that have no meaning.
func (l *Limits) check(f *faults) {
	for i := range limitTable {
		row := &limitTable[i]
		if row.fault == nil {
			continue
		}
		text := row.fault(l)
		f.addIf(text != "", row.Setting, text)
	}
	known := l.AtLimit >= 0 && l.AtLimit <= AtLimitReturn
	f.addIf(!known, "Limits.AtLimit", "want AtLimitAnswer, AtLimitReturn or 0")
}
