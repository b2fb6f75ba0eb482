package whatif

// summary.go: Summary, what the replays of many runs found.

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonform"
)

// Summary counts what the replays of many runs found. Add fills it; the zero value is empty.
type Summary struct {
	// Runs is the number of runs.
	Runs int `json:"runs"`
	// Same is the number of runs with this verdict.
	Same int `json:"same"`
	// Differ is the number of runs with this verdict.
	Differ int `json:"differ"`
	// Unknown is the number of runs with this verdict.
	Unknown int `json:"unknown"`
	// AnswerOnly is the number of runs that differ in their answer and in nothing else.
	AnswerOnly int `json:"answer_only"`
	// Changed has the number of runs with a change of each kind.
	Changed map[string]int `json:"changed"`
	// Writes has the tools whose calls would have changed the world otherwise, by name.
	Writes []ToolSummary `json:"writes"`
	// Played is the number of requests with a stored reply.
	Played int `json:"played"`
	// Asked is the number of requests to models.
	Asked int `json:"asked"`
	// Cost of the requests to models, in US dollars.
	Cost float64 `json:"cost"`
	// LiveReads is the number of calls that read the present world.
	LiveReads int `json:"live_reads"`
	// Shadowed is the number of calls that were not executed.
	Shadowed int `json:"shadowed"`
	// Questions has the number of questions to people.
	Questions Count `json:"questions"`
}

// ToolSummary counts the runs in which the calls of a tool differ.
type ToolSummary struct {
	// Tool is the name of the tool.
	Tool string `json:"tool"`
	// More is the number of runs with a call that the stored run does not have.
	More int `json:"more"`
	// Fewer is the number of runs without a call that the stored run has.
	Fewer int `json:"fewer"`
	// Other is the number of runs with a call with other arguments.
	Other int `json:"other"`
	// Amounts has the sums of the arguments that are numbers, over the calls that differ.
	Amounts []Amount `json:"amounts"`
}

// Amount is the sum of an argument over the calls that differ.
type Amount struct {
	// Argument is its name. A dot leads into an object.
	Argument string `json:"argument"`
	// Was is the sum in the stored runs.
	Was float64 `json:"was"`
	// Is is the sum in the replays.
	Is float64 `json:"is"`
	// Higher is the number of runs with a higher sum than before.
	Higher int `json:"higher"`
	// Lower is the number of runs with a lower sum than before.
	Lower int `json:"lower"`
	// Changed is the number of runs in which a call has another value. It is 0 for an argument that
	// only comes or goes with its call, such as a number that names an order.
	Changed int `json:"changed"`
}

// Add counts one more run.
func (s *Summary) Add(r *Run) {
	if s.Changed == nil {
		s.Changed = map[string]int{}
		s.Writes = []ToolSummary{}
	}
	s.Runs++
	s.Played += r.Played
	s.Asked += r.Asked
	s.Cost += r.Cost
	s.LiveReads += r.LiveReads
	s.Shadowed += len(r.Shadowed)
	s.Questions.Was += r.Questions.Was
	s.Questions.Is += r.Questions.Is

	switch r.Verdict {
	case Same:
		s.Same++
	case Differ:
		s.Differ++
	default:
		s.Unknown++
	}
	kinds := map[string]bool{}
	for _, c := range r.Changes {
		kinds[c.What] = true
	}
	for what := range kinds {
		s.Changed[what]++
	}
	if kinds[ChangedAnswer] && len(kinds) == 1 {
		s.AnswerOnly++
	}
	s.addWrites(r)
}

// addWrites counts the changed writes of a run by tool.
func (s *Summary) addWrites(r *Run) {
	byTool := map[string][]ChangeOfRun{}
	for _, c := range r.Changes {
		if c.What == ChangedWrite {
			byTool[c.Tool] = append(byTool[c.Tool], c)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byTool)) {
		i := slices.IndexFunc(s.Writes, func(t ToolSummary) bool { return t.Tool == name })
		if i < 0 {
			i = len(s.Writes)
			s.Writes = append(s.Writes, ToolSummary{Tool: name, Amounts: []Amount{}})
		}
		s.Writes[i].add(byTool[name])
	}
	slices.SortFunc(s.Writes, func(a, b ToolSummary) int { return cmp.Compare(a.Tool, b.Tool) })
}

// add counts the changed calls of one run.
func (t *ToolSummary) add(changes []ChangeOfRun) {
	var more, fewer, other int
	changed := map[string]int{}
	was := map[string]float64{}
	is := map[string]float64{}
	for _, c := range changes {
		switch {
		case c.Was == nil:
			more = 1
		case c.Is == nil:
			fewer = 1
		default:
			other = 1
			for _, name := range c.Args {
				changed[name] = 1
			}
		}
		addNumbers(was, c.Was)
		addNumbers(is, c.Is)
	}
	t.More += more
	t.Fewer += fewer
	t.Other += other

	names := maps.Clone(was)
	maps.Copy(names, is)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if was[name] != is[name] {
			t.addAmount(name, was[name], is[name], changed[name])
		}
	}
}

// addAmount adds the sums of one run for an argument.
func (t *ToolSummary) addAmount(name string, was, is float64, changed int) {
	i := slices.IndexFunc(t.Amounts, func(a Amount) bool { return a.Argument == name })
	if i < 0 {
		i = len(t.Amounts)
		t.Amounts = append(t.Amounts, Amount{Argument: name})
	}
	a := &t.Amounts[i]
	a.Was += was
	a.Is += is
	a.Changed += changed
	if is > was {
		a.Higher++
	} else {
		a.Lower++
	}
}

// addNumbers adds the arguments that are numbers to sums.
func addNumbers(sums map[string]float64, args json.RawMessage) {
	for name, value := range jsonform.Leaves(args) {
		if n, ok := jsonform.Number(value); ok {
			sums[name] += n
		}
	}
}

// differingArgs returns the names of the arguments that differ.
func differingArgs(was, is json.RawMessage) (names []string) {
	before := jsonform.Leaves(was)
	now := jsonform.Leaves(is)
	all := maps.Clone(before)
	maps.Copy(all, now)
	for name := range all {
		if !bytes.Equal(before[name], now[name]) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Lines returns what differs, a sentence a line: "refund: 3 runs do more, 1 with other arguments".
func (s *Summary) Lines() (lines []string) {
	for i := range s.Writes {
		lines = append(lines, s.Writes[i].String())
		for _, a := range s.Writes[i].Amounts {
			if a.Changed > 0 {
				lines = append(lines, s.Writes[i].Tool+" "+a.String())
			}
		}
	}
	for _, what := range []string{ChangedQuestion, ChangedStop, ChangedCall, ChangedAnswer} {
		if n := s.Changed[what]; n > 0 {
			lines = append(lines, fmt.Sprintf("%s differs in %d", what, n))
		}
	}
	if s.AnswerOnly > 0 {
		lines = append(lines, fmt.Sprintf("the answer alone differs in %d", s.AnswerOnly))
	}
	return lines
}

// String returns "refund: 3 runs do more, 2 do less, 1 with other arguments".
func (t *ToolSummary) String() string {
	var parts []string
	for _, part := range []struct {
		runs int
		text string
	}{
		{t.More, "%d do more"},
		{t.Fewer, "%d do less"},
		{t.Other, "%d with other arguments"},
	} {
		if part.runs > 0 {
			parts = append(parts, fmt.Sprintf(part.text, part.runs))
		}
	}
	return "write " + t.Tool + ": " + strings.Join(parts, ", ")
}

// String returns "amount: 360 becomes 1188 (12 higher, 0 lower)".
func (a Amount) String() string {
	return fmt.Sprintf("%s: %s becomes %s (%d higher, %d lower)",
		a.Argument, number(a.Was), number(a.Is), a.Higher, a.Lower)
}

// number returns a number without an exponent.
func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
