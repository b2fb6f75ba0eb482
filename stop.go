package pawl

// stop.go: StopReason, and the table of what each reason means.

// StopReason is the reason why a run ended, from a closed list.
type StopReason string

// The stop reasons. Only StopAnswer and StopFinished are success.
const (
	// The model answered.
	StopAnswer StopReason = "answer"
	// A tool ended the run as successful (FinishError).
	StopFinished StopReason = "finished"
	// Calls wait for a person or for the caller.
	StopPending StopReason = "pending"
	// A limit was reached, with or without an answer. Result.Limit names it.
	StopLimit StopReason = "limit"
	// The model repeats itself: equal calls with equal results, or failures of one tool.
	StopStalled StopReason = "stalled"
	// The context was cancelled.
	StopCancelled StopReason = "cancelled"
	// The run failed with an error.
	StopFailed StopReason = "failed"
)

// StopClass groups the stop reasons by what a caller does next. Exit status, states of journals and
// protocols, and displays switch over it, so that a new reason is one row of a table.
type StopClass string

// The classes of stop reasons.
const (
	// The run answered. This alone is success.
	ClassAnswered StopClass = "answered"
	// The run waits for answers to its open calls.
	ClassWaiting StopClass = "waiting"
	// A limit was reached. Resume continues when it is raised.
	ClassLimited StopClass = "limited"
	// The caller ended the run.
	ClassCancelled StopClass = "cancelled"
	// The run cannot continue without a change.
	ClassFailed StopClass = "failed"
)

// stopTable has a row for each stop reason.
var stopTable = []struct {
	reason StopReason
	class  StopClass
	next   string // what a caller may do, for the text of StopError; "" means nothing
}{
	{StopAnswer, ClassAnswered, ""},
	{StopFinished, ClassAnswered, ""},
	{StopPending, ClassWaiting, "Resume with a Decision for each"},
	{StopLimit, ClassLimited, ""}, // names the limit: see StopError.Error
	{StopStalled, ClassFailed, "change the instructions, the tools or the model"},
	{StopCancelled, ClassCancelled, "the conversation can be continued with Resume"},
	{StopFailed, ClassFailed, "Resume tries again"},
}

// Class returns the class of the reason. A reason that is not on the list, such as a reason of a
// later version, has ClassFailed: it must not count as success.
func (s StopReason) Class() StopClass {
	for i := range stopTable {
		if stopTable[i].reason == s {
			return stopTable[i].class
		}
	}
	return ClassFailed
}

// next returns what a caller may do after the reason.
func (s StopReason) next() string {
	for i := range stopTable {
		if stopTable[i].reason == s {
			return stopTable[i].next
		}
	}
	return "this version does not know the reason"
}
