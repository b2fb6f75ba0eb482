package pawl

// output.go: answers that must fit a JSON Schema: Agent.Output and its corrections, OutputError.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/schema"
	"github.com/pawl-go/pawl/internal/schema/gotype"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

// answerTool is the name of the tool that takes the answer if the provider does not support a
// schema for text together with tools.
const answerTool = "final_answer"

const answerToolText = "Gives the final answer: the arguments are the answer. Call it once, when nothing is left to do, and in place of an answer as text."

const defaultCorrections = 2

// output is the format of the answer of a run. nil means free text; its methods accept nil.
type output struct {
	schema *schema.Schema
	check  func(json.RawMessage) error // Agent.OutputCheck; nil means none
	tool   *Tool                       // takes the answer; nil means an answer as text
	asked  bool                        // the last request offered the tool and allowed calls
	text   string                      // the last answer that did not fit
	faults []string
}

// output compiles the schema of the answer and selects its way: text, or a call of answerTool. m is
// the model in its middleware, and tools are the tools of the agent.
func (a *Agent) output(m llm.Model, tools []*Tool) (*output, error) {
	if find(tools, answerTool) != nil {
		return nil, fmt.Errorf("tool %s: an agent with an Output needs the name for its answer; rename the tool", answerTool)
	}
	o := &output{check: a.OutputCheck}
	var object bool
	var err error
	o.schema, object, err = schema.CompileOutput(a.Output)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if object && len(tools) > 0 {
		h, ok := llm.As[llm.OutputHolder](m)
		if !ok && m != nil { // a middleware without Unwrap
			h, ok = llm.As[llm.OutputHolder](a.Model)
		}
		req := &llm.Request{Tools: specs(tools), Choice: a.Choice, Output: a.Output, Settings: a.Settings}
		if !ok || !h.HoldsOutput(req) {
			// Pure and without a time limit, so that the call needs no goroutine; see isShort.
			o.tool = &Tool{Name: answerTool, Description: answerToolText, Input: a.Output,
				Effect: EffectPure, Timeout: -1,
				Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
					return llm.ToolResult{}, FinishError(llm.TextResult("This is the answer."))
				},
				fits: o.refusal}
		}
	}
	return o, nil
}

// refusal returns the error of the check for an answer that fits the schema. A panic is an error.
func (o *output) refusal(answer json.RawMessage) (err error) {
	if o.check == nil {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the check of the answer panicked: %v", v)
		}
	}()
	return o.check(answer)
}

// rejected reports whether the last answer does not fit.
func (o *output) rejected() bool { return o != nil && len(o.faults) > 0 }

// answers reports whether c contains the answer.
func (r *run) answers(c llm.ToolCall) bool { return r.scope.answer != nil && c.Name == answerTool }

// onlyAnswers reports whether all tasks contain the answer. They need no round.
func (r *run) onlyAnswers(tasks []Task) bool {
	for i := range tasks {
		if !r.answers(tasks[i].Call) {
			return false
		}
	}
	return true
}

// fitting reports whether the run continues after execs. It does not if a call contained an answer
// that does not fit, and no correction is left.
func (r *run) fitting(execs []Execution) bool {
	for i := range execs {
		if x := &execs[i]; r.answers(x.Call) && x.Outcome == OutcomeInvalid {
			return r.sentBack(string(x.Call.Args), faultLines(x.Result.Text()))
		}
	}
	return true
}

// askAgain reads the answer of a reply without calls. It reports whether the answer does not fit
// and the model is asked for a correction.
func (r *run) askAgain(ctx context.Context, resp *llm.Response) (again bool) {
	// Recorded last, so that the usage in its event counts the correction.
	defer r.record(Step{Response: resp})
	if resp.Finish == llm.FinishReasonError {
		return r.badCall(resp)
	}
	o := r.output
	switch {
	case resp.Finish.Cut(): // a cut reply is not an answer, even if it fits
		return false
	case o == nil:
		return saysNothing(resp) && r.emptyAnswer()
	}
	text := resp.Message.Text()
	value, repairs, faults, err := o.schema.Read(ctx, json.RawMessage(text), true)
	var refused error
	if err == nil && len(faults) == 0 {
		refused = o.refusal(value)
		if refused == nil {
			r.acceptAnswer(value, repairs)
			return false
		}
	}

	words := o.wording(text, faults, err)

	// The answer fits the schema, so that the check alone has something to say.
	if refused != nil {
		words = "The answer cannot be used:" + gotype.FaultText(refused) + o.again()
	}
	lines := []string{"it is no JSON"}
	switch {
	case strings.TrimSpace(text) == "":
		lines[0] = "it is empty"
	case err != nil:
		lines[0] += ": " + schema.SyntaxText(err)
	default:
		lines = faultLines(words)
	}
	again = r.sentBack(text, lines)
	if again {
		r.res.Messages = append(r.res.Messages, r.correction(words))
	}
	return again
}

// acceptAnswer makes value the answer.
func (r *run) acceptAnswer(value json.RawMessage, repairs []string) {
	r.res.Output = bytes.TrimSpace(value)
	r.res.Repairs = repairs
	r.output.faults = nil
	if len(repairs) > 0 {
		r.emit(Event{Kind: EventNotice, Code: "output_mended", Text: strings.Join(repairs, "; ")})
	}
}

// sentBack records an answer that does not fit. It reports whether a correction is left.
func (r *run) sentBack(text string, faults []string) bool {
	o := r.output
	o.text, o.faults = text, faults
	again := r.correct()
	if r.out.sink != nil {
		data, _ := json.Marshal(struct { // strings and numbers
			Faults      []string `json:"faults"`
			Corrections int      `json:"corrections"`
			Again       bool     `json:"again"`
		}{faults, r.res.Spent.Corrections, again})
		r.emit(Event{Kind: EventNotice, Code: "output_unfit", Text: "the answer does not fit: " + strings.Join(faults, "; "), Data: data})
	}
	return again
}

// correct counts a correction. It reports whether one was left.
func (r *run) correct() bool {
	most := r.agent.Limits.Corrections
	if most == 0 {
		most = defaultCorrections
	}
	if r.res.Spent.Corrections >= most {
		return false
	}
	r.res.Spent.Corrections++
	return true
}

// correction returns a message of the runtime about the last reply. It repeats words of the reply,
// so that it has its label.
func (r *run) correction(text string) llm.Message { return llm.User(text).WithLabel(r.label()) }

// badCall sends a reply back that the provider ended with an error, such as a call that it cannot
// read, or a call that its rules reject. The text of the reply describes it. The reply after a
// correction is not sent back.
func (r *run) badCall(resp *llm.Response) bool {
	if n := len(r.res.Steps); n > 0 {
		if last := r.res.Steps[n-1].Response; last != nil && last.Finish == llm.FinishReasonError {
			return false
		}
	}
	if !r.correct() {
		return false
	}
	r.res.Messages = append(r.res.Messages, r.correction("Your last reply could not be used: it has a call that is not valid. "+
		"Call one of the offered tools, with arguments that are one JSON object, or answer without a call."))
	r.emit(Event{Kind: EventNotice, Code: "bad_call", Text: "the provider could not read the reply; the model is asked again: " +
		text.Clip(resp.Message.Text(), 200)})
	return true
}

// saysNothing reports whether a reply without calls has no answer in it: neither text nor media. A
// model that sent no request may say nothing.
func saysNothing(resp *llm.Response) bool {
	unsent := resp.Requests < 0
	media := slices.ContainsFunc(resp.Message.Parts, func(p llm.Part) bool { _, ok := p.(llm.Media); return ok })
	return !unsent && !media && strings.TrimSpace(resp.Message.Text()) == ""
}

// emptyAnswer asks again for an answer that is empty, once. Models end their turn so after a
// result, as if it were the answer. See "Handling stop reasons",
// https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons
func (r *run) emptyAnswer() bool {
	if n := len(r.res.Steps); n > 0 {
		last := r.res.Steps[n-1].Response
		isAnswer := last != nil && last.Finish != "" && !last.Message.HasCalls()
		if isAnswer && saysNothing(last) {
			return false
		}
	}
	if r.reply.final.limit != "" || !r.correct() {
		return false
	}
	r.res.Messages = append(r.res.Messages, r.correction("Your last reply was empty. Give your answer, or say what is missing."))
	r.emit(Event{Kind: EventNotice, Code: "empty_answer", Text: "the answer was empty; the model is asked again"})
	return true
}

// unfit stops a run whose answer does not fit after all corrections.
func (r *run) unfit() (StopReason, error) {
	r.res.Unfit = r.output.faults
	return StopFailed, &OutputError{Text: r.output.text, Faults: r.output.faults, Result: r.res}
}

// again returns the last line of a text for the model about an answer that does not fit.
func (o *output) again() string {
	if o.asked {
		return "\nCall " + answerTool + " with the whole answer, corrected."
	}
	return answerAgain
}

const answerAgain = "\nGive the whole answer again, corrected: one JSON value, and nothing before or after it."

// wording returns the text for the model: the faults of its answer, and an example.
func (o *output) wording(answer string, faults []schema.Fault, err error) string {
	again := o.again()
	switch {
	case strings.TrimSpace(answer) == "":
		return "There was no answer. It must be JSON that fits the schema" + o.schema.Example(", for example: %s.", ".") + again
	case err != nil && o.asked:
		return "That is text and no answer yet: call " + answerTool + ". Its arguments are the answer" + o.schema.Example(", for example: %s.", ".")
	case err != nil:
		return fmt.Sprintf("The answer must be JSON that fits the schema, and yours is not valid JSON: %s%s You sent: %s%s",
			schema.SyntaxText(err), o.schema.Example(". An answer of the right form, with your own values: %s.", "."), text.Clip(answer, 200), again)
	}
	return "The answer does not fit its schema:" + schema.Message(faults) + o.schema.Example("\nAn answer of "+
		"the right form, with your own values: %s", "") + again
}

// faultLines returns the faults that are listed in a text for the model.
func faultLines(words string) []string {
	var lines []string
	for l := range strings.Lines(words) {
		if f, ok := strings.CutPrefix(strings.TrimSpace(l), "- "); ok {
			lines = append(lines, f)
		}
	}
	if lines == nil {
		first, _, _ := strings.Cut(words, "\n")
		lines = []string{first}
	}
	return lines
}

// OutputError is the error of a run whose answer does not fit Agent.Output after all corrections,
// and of Into if a tool ended the run with another result (FinishError). The Result can be resumed.
type OutputError struct {
	Text   string   // of the answer
	Faults []string // of the answer; empty if a tool ended the run
	Result *Result  // of the run
}

// Error returns the faults of the answer, or the reason of the end without one.
func (e *OutputError) Error() string {
	if len(e.Faults) > 0 {
		return "the answer does not fit: " + strings.Join(e.Faults, "; ")
	}
	text := "the run ended without a whole answer"
	if e.Result != nil {
		text += " (" + string(e.Result.Stop) + ")"
		if e.Result.Cause != "" {
			text += ": " + e.Result.Cause
		}
	}
	return text
}

var _ error = (*OutputError)(nil)
