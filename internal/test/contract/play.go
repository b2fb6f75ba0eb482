package contract

// play.go: Behaviour, and how it is played at a door.

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// Behaviour is a row of the table.
type Behaviour struct {
	// Group is the subject, and Name the promise in one sentence.
	Group, Name string
	// Turns are the replies of the model.
	Turns []script.Turn
	// Setting is what the agent needs.
	Setting Setting
	// Says are the messages of the client, each after the end of the run before. Nil means one.
	Says []string
	// Answers are the answers to the questions of each stop, in turn.
	Answers [][]Verdict
	// Needs are the abilities that a door needs. Some follow from the other fields.
	Needs []Ability
	// Want is what must come of it.
	Want Want
	// Except are the doors that differ.
	Except map[string]Difference
}

// Verdict is the answer to the question about a tool.
type Verdict struct {
	// Tool is the tool of the question.
	Tool string
	// Approve is a yes.
	Approve bool
	// Reason is the text of a no.
	Reason string
	// Args replace the arguments. "" means no change.
	Args string
	// Result is the result of a call that the client executes.
	Result string
}

// Want is what must come of a behaviour.
type Want struct {
	// Text is the answer at the end. "*" means any.
	Text string
	// End is how the last run stops. "" means that it answered.
	End pawl.StopClass
	// Cause stands in the reason of an end without an answer.
	Cause string
	// Executed are the calls of tools, as name and arguments. With Unordered, in any order.
	Executed  []string
	Unordered bool
	// Requests is the number of requests to the model. 0 means that it is not checked.
	Requests int
	// Read are texts that the model was sent, and Unread texts that it was not.
	Read, Unread []string
	// Output is the answer as JSON. "" means none.
	Output string
	// Asked are the questions that a client sees at the first stop, as tool and arguments.
	Asked []string
	// Calls are the names of calls that the client sees as not executed.
	Calls []string
	// Tokens is the sum that a client sees. 0 means that it is not checked.
	Tokens int
	// Sent checks the requests further, and returns what is wrong. Nil means no check.
	Sent func(reqs []*llm.Request) string
}

// Difference is a cell of a door that differs from the row.
type Difference struct {
	// Why is the reason. A cell with a Why and no Want is absent, and not played.
	Why string
	// Page has Why as a sentence, for the users of the door.
	Page string
	// Want is what comes of the behaviour there.
	Want *Want
}

// needs returns the abilities that a behaviour needs.
func (b *Behaviour) needs() []Ability {
	all := slices.Clone(b.Needs)
	add := func(is bool, a Ability) {
		if is && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	add(len(b.Says) > 1, Talks)
	add(len(b.Want.Asked) > 0, Questions)
	add(b.Want.Output != "", Outputs)
	add(b.Want.Cause != "", Causes)
	add(b.Want.Tokens > 0, Usage)
	add(len(b.Want.Calls) > 0, Unexecuted)
	add(b.Want.End == pawl.ClassFailed || b.Want.End == pawl.ClassLimited, Ends)
	add(b.Setting.Expires > 0, Deadlines)
	for _, stop := range b.Answers {
		for _, v := range stop {
			add(v.Result == "", Decides)
			add(v.Result != "", Results)
			add(v.Reason != "", Reasons)
			add(v.Args != "", Edits)
		}
	}
	for _, name := range b.called() {
		add(name == "submit" || name == "abort", FromTools)
		add(name == "crash" || name == "slow" || name == "flaky", OwnTools)
		add(name == "expert", Nested)
		add(name == "choose", Results)
	}
	return all
}

// called returns the names of the tools that the script calls.
func (b *Behaviour) called() (names []string) {
	for _, turn := range b.Turns {
		for _, p := range turn.Parts {
			if c, ok := p.(llm.ToolCall); ok {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

// Cell returns how a behaviour is at a door: what is wanted, or why the cell is not played.
func (b *Behaviour) Cell(door *Door) (want *Want, absent, differs string) {
	if d, ok := b.Except[door.Name]; ok {
		if d.Want == nil {
			return nil, d.Why, ""
		}
		return d.Want, "", d.Why
	}
	for _, a := range b.needs() {
		if why := door.Lacks[a]; why != "" {
			return nil, why, ""
		}
	}
	as, ok := door.Ends[b.Want.End]
	if !ok {
		return &b.Want, "", ""
	}
	other := b.Want
	other.End = as.End
	if as.Around {
		other.Text = "*"
	}
	return &other, "", as.Why
}

// doorOf returns the door of a name.
func doorOf(t *testing.T, name string) *Door {
	t.Helper()
	for i := range Doors {
		if Doors[i].Name == name {
			return &Doors[i]
		}
	}
	t.Fatalf("there is no door %q", name)
	return nil
}

// Play plays each behaviour at a door. open returns a client of a new agent of the scene.
func Play(t *testing.T, name string, open func(t *testing.T, s *Scene) Visit) {
	t.Helper()
	door := doorOf(t, name)
	for i := range Table {
		b := &Table[i]
		want, _, _ := b.Cell(door)
		if want == nil || door.Slow && testing.Short() && i%6 != 0 {
			continue
		}
		t.Run(b.Group+"/"+b.Name, func(t *testing.T) {
			if diff := b.differs(want, func(s *Scene) Visit { return open(t, s) }); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		})
	}
}

// Found plays the behaviours at a door that is known to be wrong, and returns the name of the first
// that finds it. "" means that none does.
func Found(t *testing.T, name string, open func(t *testing.T, s *Scene) Visit) string {
	t.Helper()
	door := doorOf(t, name)
	for i := range Table {
		b := &Table[i]
		want, _, _ := b.Cell(door)
		if want == nil {
			continue
		}
		if b.differs(want, func(s *Scene) Visit { return open(t, s) }) != "" {
			return b.Name
		}
	}
	return ""
}

// differs plays a behaviour, and returns what is not as wanted. "" means nothing.
func (b *Behaviour) differs(want *Want, open func(*Scene) Visit) string {
	s := b.newScene()
	visit := open(s)
	var first, last Shown
	for i, says := range s.says {
		last = visit.Say(says)
		if i == 0 {
			first = last
		}
		for _, stop := range s.answers {
			if last.End != pawl.ClassWaiting {
				break
			}
			answers, err := answersTo(last.Questions, stop)
			if err != "" {
				return err
			}
			last = visit.Reply(answers)
		}
	}

	var faults []string
	for _, fault := range []string{
		want.shown(first, last), want.worked(s), want.sent(s.Model.Requests()),
	} {
		if fault != "" {
			faults = append(faults, fault)
		}
	}
	return strings.Join(faults, "; ")
}

// answersTo returns the answers to questions. The second value says what is wrong.
func answersTo(open []Question, verdicts []Verdict) (answers []Answer, fault string) {
	for _, v := range verdicts {
		i := slices.IndexFunc(open, func(q Question) bool { return q.Tool == v.Tool })
		if i < 0 {
			return nil, fmt.Sprintf("no question is about %s: %+v", v.Tool, open)
		}
		answers = append(answers, Answer{
			Question: open[i],
			Approve:  v.Approve,
			Reason:   v.Reason,
			Args:     v.Args,
			Result:   v.Result,
		})
	}
	return answers, ""
}

// shown returns what a client sees that it must not see, or does not see.
func (w *Want) shown(first, last Shown) string {
	end := w.End
	if end == "" {
		end = pawl.ClassAnswered
	}
	var faults []string
	add := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	add(last.End != end && last.End != "", "it ends as %s (%s), want %s", last.End, last.Cause, end)
	checked := w.Text != "*" && (w.Text != "" || end == pawl.ClassAnswered)
	add(checked && last.Text != w.Text, "the answer is %q, want %q", last.Text, w.Text)
	add(!strings.Contains(last.Cause, w.Cause), "the cause is %q, want %q", last.Cause, w.Cause)
	add(w.Output != "" && !equalJSON(w.Output, string(last.Output)), "the output is %s, want %s", last.Output, w.Output)
	add(w.Tokens > 0 && last.Tokens != w.Tokens, "%d tokens are shown, want %d", last.Tokens, w.Tokens)

	var asked []string
	for _, q := range first.Questions {
		asked = append(asked, q.Tool+" "+compact(q.Args))
	}
	add(len(w.Asked) > 0 && !slices.Equal(asked, w.Asked), "it asks %q, want %q", asked, w.Asked)
	for _, call := range w.Calls {
		open := strings.Join(last.Calls, "\n")
		add(!strings.Contains(open, call), "the returned calls are %q, want %q", last.Calls, call)
	}
	return strings.Join(faults, "; ")
}

// worked returns what was executed and must not have been, and the opposite.
func (w *Want) worked(s *Scene) string {
	got := s.Executed()
	want := w.Executed
	if w.Unordered {
		slices.Sort(got)
		want = slices.Sorted(slices.Values(want))
	}
	if !slices.Equal(got, want) {
		return fmt.Sprintf("executed: %q, want %q", got, want)
	}
	return ""
}

// sent returns what is wrong about the requests to the model.
func (w *Want) sent(reqs []*llm.Request) string {
	if w.Requests > 0 && len(reqs) != w.Requests {
		return fmt.Sprintf("the model got %d requests, want %d", len(reqs), w.Requests)
	}
	all, err := json.Marshal(reqs)
	if err != nil {
		return err.Error()
	}
	plain := strings.NewReplacer(`\"`, `"`, `\n`, "\n", `\\`, `\`).Replace(string(all))
	for _, text := range w.Read {
		if !strings.Contains(plain, text) {
			return fmt.Sprintf("the model was not sent %q: %.3000s", text, plain)
		}
	}
	for _, text := range w.Unread {
		if strings.Contains(plain, text) {
			return fmt.Sprintf("the model was sent %q", text)
		}
	}
	if w.Sent != nil {
		return w.Sent(reqs)
	}
	return ""
}

// equalJSON reports whether two texts are the same JSON.
func equalJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// compact returns JSON without space, with sorted members; other text unchanged.
func compact(text string) string {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	b, err := json.Marshal(v)
	if err != nil {
		return text
	}
	return string(b)
}
