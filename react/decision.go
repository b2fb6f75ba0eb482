package react

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Type says what a Decision is.
type Type string

// The types of decisions.
const (
	CallTool    Type = "call_tool"    // Tool is called with Args
	FinalAnswer Type = "final_answer" // Answer is the answer; nothing more is called
)

// Decision is what a model decided to do next, whatever form it was written in.
type Decision struct {
	Thought string          // why; "": it did not say
	Type    Type            // what the decision is
	Tool    string          // with CallTool: the tool to call
	Args    json.RawMessage // with CallTool: what the model wrote for arguments, JSON or not; empty: nothing
	Answer  string          // with FinalAnswer: the answer
	More    []Call          // with CallTool: further calls of the same decision
	Notes   []string        // what was mended, or cut off, to read it; for the record
}

// Call is one call of a Decision.
type Call struct {
	Tool string
	Args json.RawMessage // as Decision.Args
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
	Schema json.RawMessage                         // JSON Schema of a decision; the model is shown it
	Read   func(json.RawMessage) (Decision, error) // what a decision of that form says; an error is told to the model, which may try again
}

// The stages at which a decision can fail, which are also the names that it has on record.
const (
	Extraction = "decision_extraction" // the reply holds nothing that can be read as a decision
	Validation = "decision_validation" // the decision cannot be carried out
)

// DecisionError says that a model did not come to a decision that can be carried out, however often it was asked. The run
// fails with it, and its failed step has an execution named after the stage.
type DecisionError struct {
	Stage    string    // Extraction or Validation: what was wrong with the last attempt
	Attempts int       // how often the model was asked
	Faults   []string  // what was wrong with the last attempt
	Reply    string    // what the model wrote last
	Usage    llm.Usage // of all attempts
	Key      llm.Key   // of the request

	started, ended time.Time
}

var _ pawl.ExecutionError = (*DecisionError)(nil)

// Error names the stage, the attempts and the last faults.
func (e *DecisionError) Error() string {
	times := "attempts"
	if e.Attempts == 1 {
		times = "attempt"
	}
	return fmt.Sprintf("%s failed after %d %s: %s", e.Stage, e.Attempts, times, strings.Join(e.Faults, "; "))
}

// FailedExecution returns the execution that stands for the decision in the failed step: there was no call, so its name
// is that of the stage and its arguments are empty.
func (e *DecisionError) FailedExecution() pawl.Execution {
	call := llm.ToolCall{ID: e.Stage, Name: e.Stage, Args: json.RawMessage("{}")}
	outcome := pawl.OutcomeError
	if e.Stage == Validation {
		outcome = pawl.OutcomeInvalid
	}
	res := llm.ErrorResult(strings.Join(e.Faults, "; "))
	res.CallID, res.Key = call.ID, e.Key
	return pawl.Execution{Key: e.Key, Call: call, Outcome: outcome, Result: res, Error: e.Error(), Attempts: e.Attempts,
		Spent: pawl.Spent{Usage: e.Usage}, Started: e.started, Ended: e.ended}
}
