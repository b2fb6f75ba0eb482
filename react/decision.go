package react

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

// Type says what a Decision is.
type Type string

// The types of decisions.
const (
	CallTool    Type = "call_tool"    // Tool is called with Args
	FinalAnswer Type = "final_answer" // Answer is the answer; nothing more is called
)

// Decision is a model's decision about the next step, in any format.
type Decision struct {
	Thought string // why; empty means that the model gave no reason
	Type    Type   // what the decision is
	Tool    string // with CallTool: the tool to call

	// Args are the arguments with CallTool as the model wrote them, JSON or not. Empty means none.
	Args json.RawMessage

	Answer string   // with FinalAnswer: the answer
	More   []Call   // with CallTool: further calls of the same decision
	Notes  []string // repairs and cuts that were needed to read it, for the record
}

// Call is one call of a Decision.
type Call struct {
	// Tool is the name of the tool to call.
	Tool string
	// Args are the arguments as the model wrote them, JSON or not. Empty means none.
	Args json.RawMessage
}

// calls returns all calls of d.
func (d *Decision) calls() []Call {
	if d.Type != CallTool {
		return nil
	}
	return append([]Call{{d.Tool, d.Args}}, d.More...)
}

// Form is a form of decisions of your own, in JSON.
type Form struct {
	Schema json.RawMessage // JSON Schema of a decision, shown to the model

	// Read returns the decision in a value of that form. The model receives an error, and may try
	// again.
	Read func(json.RawMessage) (Decision, error)
}

// The stages at which a decision can fail, which are also the names that it has on record.
const (
	Extraction = "decision_extraction" // the reply holds nothing that can be read as a decision
	Validation = "decision_validation" // the decision cannot be executed
)

// DecisionError reports that a model made no executable decision in all its attempts. The run fails
// with it, and the failed step has an execution named after the stage.
type DecisionError struct {
	Stage    string    // of the last attempt: Extraction or Validation
	Attempts int       // how often the model was asked
	Faults   []string  // the faults of the last attempt
	Reply    string    // what the model wrote last
	Usage    llm.Usage // of all attempts
	Key      llm.Key   // of the request

	started, ended time.Time
}

var _ pawl.ExecutionError = (*DecisionError)(nil)

// Error names the stage, the attempts and the last faults.
func (e *DecisionError) Error() string {
	return fmt.Sprintf("%s failed after %d %s: %s", e.Stage, e.Attempts,
		text.Plural(e.Attempts, "attempt", "attempts"), strings.Join(e.Faults, "; "))
}

// FailedExecution returns the execution of the decision in the failed step. There was no call, so
// its name is the stage and its arguments are empty.
func (e *DecisionError) FailedExecution() pawl.Execution {
	call := llm.ToolCall{ID: e.Stage, Name: e.Stage, Args: json.RawMessage("{}")}
	outcome := pawl.OutcomeError
	if e.Stage == Validation {
		outcome = pawl.OutcomeInvalid
	}
	res := llm.ErrorResult(strings.Join(e.Faults, "; "))
	res.CallID = call.ID
	res.Key = e.Key
	return pawl.Execution{
		Key:      e.Key,
		Call:     call,
		Outcome:  outcome,
		Result:   res,
		Error:    e.Error(),
		Attempts: e.Attempts,
		Spent:    pawl.Spent{Requests: e.Attempts, Usage: e.Usage},
		Started:  e.started,
		Ended:    e.ended,
	}
}
