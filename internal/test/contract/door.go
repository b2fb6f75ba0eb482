package contract

// door.go: the doors, their abilities, and the visits of clients.

import (
	"encoding/json"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Ability is what a behaviour needs of a door, beyond a task and an answer.
type Ability string

// The abilities.
const (
	Questions  Ability = "questions"         // the client sees which calls wait
	Decides    Ability = "decisions"         // a person answers them, and the run goes on
	Reasons    Ability = "reasons of a no"   // the answer no has a text
	Edits      Ability = "edited arguments"  // the answer yes has other arguments
	Results    Ability = "results"           // the client executes a call
	Talks      Ability = "conversations"     // a second message continues the first
	Outputs    Ability = "structured output" // the answer is JSON
	Ends       Ability = "ends"              // an end without an answer says which kind it is
	Causes     Ability = "causes"            // an end without an answer says why
	FromTools  Ability = "tools that end"    // a tool ends the run from its code
	OwnTools   Ability = "tools in Go"       // a tool panics, or has limits of its own
	Nested     Ability = "agents as tools"   // an agent is a tool of another
	Deadlines  Ability = "deadlines"         // an approval has a time
	Usage      Ability = "usage"             // the client sees the tokens
	Unexecuted Ability = "returned calls"    // calls that are not executed are shown
)

// Door is a way to an agent.
type Door struct {
	// Name is the head of a column.
	Name string
	// Lacks says why the behaviours that need an ability are absent here.
	Lacks map[Ability]string
	// Ends are the ends that the door shows as others.
	Ends map[pawl.StopClass]EndAs
	// Slow means that -short plays every sixth behaviour.
	Slow bool
}

// EndAs is an end that a door shows as another.
type EndAs struct {
	// End is the end that is shown.
	End pawl.StopClass
	// Around means that the door shows the text with words around it.
	Around bool
	// Why is a sentence of Page.
	Why, Page string
}

// byProtocol returns the abilities that a protocol lacks, with one reason for all of them.
func byProtocol(why string, lacks ...Ability) map[Ability]string {
	all := map[Ability]string{}
	for _, a := range lacks {
		all[a] = why
	}
	return all
}

// with returns all with further abilities that a door lacks.
func with(all map[Ability]string, why string, lacks ...Ability) map[Ability]string {
	for _, a := range lacks {
		all[a] = why
	}
	return all
}

// Doors are the columns of the table.
var Doors = []Door{
	{Name: "Go"},
	{Name: "file"},
	{Name: "command", Slow: true, Lacks: with(
		byProtocol("its tools are programs and servers, which cannot end a run from within", FromTools, OwnTools, Nested),
		"the answers come in the terminal or by pawl inbox: TestAnswerTable; the usage is for people", Questions, Decides, Reasons, Edits, Results, Deadlines, Usage)},
	{Name: "chat completions", Lacks: byProtocol("the protocol has no place for it", Reasons, Edits)},
	{Name: "responses", Lacks: byProtocol("the protocol has no place for it", Reasons, Edits)},
	{Name: "messages", Lacks: byProtocol("the protocol has no place for it", Reasons, Edits)},
	{Name: "/v1/runs"},
	{Name: "UI stream", Lacks: byProtocol("the protocol has no place for it", Causes)},
	{Name: "AG-UI"},
	{Name: "A2A", Lacks: byProtocol("the protocol has no place for it", Usage),
		Ends: map[pawl.StopClass]EndAs{pawl.ClassLimited: {End: pawl.ClassFailed,
			Why: "limit, failure; cancelled | `FAILED` with the cause", Page: "docs/a2a.md"}}},
	{Name: "MCP", Ends: map[pawl.StopClass]EndAs{pawl.ClassLimited: {End: pawl.ClassFailed, Around: true,
		Why:  "An agent that stops without a whole answer gives an error result with the cause and its last words",
		Page: "docs/mcp.md"}}, Lacks: byProtocol("a tool of MCP has a yes or a no, and no conversation", Reasons, Edits, Results, Talks, Usage)},
	{Name: "remote Runner"},
	{Name: "durable"},
	{Name: "Temporal", Lacks: byProtocol("a workflow is one run; a Runner continues it by From", Talks)},
	{Name: "schedules", Slow: true, Ends: map[pawl.StopClass]EndAs{pawl.ClassLimited: {End: pawl.ClassFailed, Around: true,
		Why: "An occurrence whose run ends without a whole answer has failed", Page: "docs/yaml.md"}}, Lacks: with(
		byProtocol("a schedule has no person to answer", Questions, Decides, Reasons, Edits, Results, Deadlines, Talks),
		"its tools are programs and servers, which cannot end a run from within", FromTools, OwnTools, Nested, Usage, Unexecuted)},
}

// Visit is a client of an agent. A function that a door lacks is nil.
type Visit struct {
	// Say sends the next message of the conversation, and returns what the client sees at the end.
	Say func(text string) Shown
	// Reply answers the open questions of what was shown last, and returns the end.
	Reply func(answers []Answer) Shown
}

// Shown is what a client sees when a run has stopped.
type Shown struct {
	// Text is the answer.
	Text string
	// End is how the run stopped. "" means that the door does not say.
	End pawl.StopClass
	// Cause is the reason of an end without an answer.
	Cause string
	// Output is the answer as JSON. Nil means none.
	Output json.RawMessage
	// Questions are the calls that wait.
	Questions []Question
	// Calls are calls that were not executed, as name and arguments.
	Calls []string
	// Tokens is the sum of input and output tokens. 0 means that the door does not say.
	Tokens int
}

// Question is a call that waits.
type Question struct {
	// Key and Digest bind the answer. A door may need neither.
	Key, Digest string
	// Tool is the name of the tool.
	Tool string
	// Args are the arguments.
	Args string
}

// Answer is the answer to a question.
type Answer struct {
	// Question is the open call.
	Question Question
	// Approve is a yes.
	Approve bool
	// Reason is the text of a no.
	Reason string
	// Args replace the arguments of a yes. "" means no change.
	Args string
	// Result is the result of a call that the client executes. "" means a decision.
	Result string
}

// Decision returns the answer as a decision of a Go program.
func (a *Answer) Decision() llm.Decision {
	d := llm.Decision{Key: llm.Key(a.Question.Key), Digest: a.Question.Digest, By: "a person"}
	switch {
	case a.Result != "":
		res := llm.TextResult(a.Result)
		d.Result = &res
	case a.Approve && a.Args != "":
		d.Approve = true
		d.Args = json.RawMessage(a.Args)
	case a.Approve:
		d.Approve = true
	default:
		d.Reason = a.Reason
	}
	return d
}

// ShownBy returns what a Go program sees of a result.
func ShownBy(res *pawl.Result, err error) Shown {
	if res == nil {
		return Shown{End: pawl.ClassFailed, Cause: text(err)}
	}
	shown := Shown{
		Text:   res.Text(),
		End:    res.Stop.Class(),
		Cause:  res.Cause + text(err),
		Output: res.Output,
		Tokens: int(res.Spent.Usage.Input + res.Spent.Usage.Output),
	}
	for _, w := range res.Pending {
		shown.Questions = append(shown.Questions, QuestionOf(&w))
	}
	if shown.End == pawl.ClassLimited {
		for _, c := range res.Calls() {
			shown.Calls = append(shown.Calls, c.Name+" "+string(c.Args))
		}
	}
	return shown
}

// text returns the text of an error; "" for nil.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// QuestionOf returns the question of a pending call.
func QuestionOf(w *pawl.PendingCall) Question {
	return Question{Key: string(w.Key), Digest: w.Digest, Tool: w.Call.Name, Args: string(w.Call.Args)}
}

// Decisions returns the answers as a message of a Go program.
func Decisions(answers []Answer) llm.Message {
	all := make([]llm.Decision, len(answers))
	for i := range answers {
		all[i] = answers[i].Decision()
	}
	return llm.DecisionMessage(all...)
}
