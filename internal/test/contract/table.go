package contract

// table.go: the table, and the words of its scripts.

import (
	"slices"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// Table has all behaviours.
var Table = slices.Concat(
	answers, outputs, calls, badCalls, choices, results, limits, approvals, failures, conversations, hostile, inside,
)

// The subjects.
const (
	subjectAnswers       = "Answers"
	subjectOutputs       = "Structured output"
	subjectCalls         = "Calls"
	subjectBadCalls      = "Wrong calls"
	subjectChoices       = "Tool choice"
	subjectResults       = "Results"
	subjectLimits        = "Limits"
	subjectApprovals     = "Approvals"
	subjectErrors        = "Errors"
	subjectConversations = "Conversations"
	subjectHostile       = "Hostile replies"
	subjectNested        = "Agents in agents"
)

// say is a reply with text.
func say(text string) script.Turn { return script.Say(text) }

// call is a reply with a call.
func call(name, args string) script.Turn { return script.Call(name, args) }

// both is a reply with several parts.
func both(turns ...script.Turn) script.Turn { return script.Together(turns...) }

// turns is the script of a model.
func turns(all ...script.Turn) []script.Turn { return all }

// finish returns the turn with a finish reason.
func finish(t script.Turn, reason llm.FinishReason) script.Turn {
	t.Finish = reason
	return t
}

// used returns the turn with a usage.
func used(t script.Turn, input, output int) script.Turn {
	t.Usage = &llm.Usage{Input: input, Output: output}
	return t
}

const done = "Done."

// paid5 is the call that the approvals are about.
const paid5 = `pay {"amount":5}`
