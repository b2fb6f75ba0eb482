// Package answertest has one table of answers to a pending call. Each way to give an answer plays
// it: see Play.
package answertest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Run is a run with one pending call of the tool pay.
type Run struct {
	Question pawl.PendingCall

	// Answer gives an answer and returns the word of its outcome. It is safe for concurrent use.
	Answer func(to To, d llm.Decision) string

	// Begin continues the run until its call is in progress.
	Begin func()

	// End lets the call end, continues the run until it stops, and returns the number of open
	// questions. It may follow Begin or stand alone.
	End func() (open int)

	Till *Till
}

// To says who answers, and which run. The zero value is the owner of the run, and the run.
type To struct {
	User string // Stranger or Approver; empty means the owner
	Lost bool   // the answer is to a run that does not exist
}

// The users besides the owner.
const (
	Stranger = "eve"  // may answer the calls of other runs
	Approver = "boss" // may answer the calls of all users
)

// Open begins runs that ask whether they may pay 5, 6 and so on. An approval is valid for within; 0
// means no limit.
type Open func(t *testing.T, n int, within time.Duration) []*Run

// The words of outcomes.
const (
	Taken    = "accepted"
	misfit   = "refused: the arguments do not fit"
	notOpen  = "refused: not pending"
	other    = "refused: other question"
	answered = "refused: answered otherwise"
	noRun    = "refused: no such run"
	oneWins  = "one decision wins"
	none     = "–"
)

// Doors are the ways to give an answer. An MCP client answers only the questions of its own calls,
// each once. A Temporal cluster has no users.
var Doors = []string{"Go", "HTTP", "command", "MCP", "Temporal"}

// Row is a kind of answer.
type Row struct {
	Answer string
	Want   string
	Calls  int // executed until the run stops; -1 means 1 if the decision that wins is a yes
	Open   int // open questions when the run stops

	Except map[string]Difference // by door

	within time.Duration
	play   func(r *Run, others ...*Run) string
}

// Difference is the outcome at a door that differs from Row.Want. A Word that is "–" means that the
// answer cannot be given there.
type Difference struct{ Word, Why string }

// The differences of the doors.
var (
	noArgs  = map[string]Difference{"MCP": {none, "a client says yes or no"}}
	once    = map[string]Difference{"MCP": {notOpen, "a client answers a question once"}}
	noKey   = map[string]Difference{"MCP": {none, "without an answer to its question, a client has said no"}}
	byState = map[string]Difference{"MCP": {notOpen, "a client names its call, and no run"}}
	byInbox = map[string]Difference{"MCP": {none, "the server has the question"},
		"command": {none, "the command takes the digest from the question that it reads"}}
	ofOther = map[string]Difference{"MCP": byState["MCP"], "command": byInbox["command"]}
	noUsers = map[string]Difference{"MCP": {none, "only the client of a call answers its question"},
		"Temporal": {none, "a cluster has no users"}}
)

// Table has all kinds of answers.
var Table = []Row{
	{"a yes", Taken, 1, 0, nil, 0, func(r *Run, _ ...*Run) string { return r.yes() }},
	{"a no", Taken, 0, 0, nil, 0, func(r *Run, _ ...*Run) string { return r.no() }},
	{"arguments that do not fit the schema", misfit, 0, 1, noArgs, 0,
		func(r *Run, _ ...*Run) string {
			return r.Answer(To{}, r.Question.Edit("a", json.RawMessage(`{"amount":"seven"}`)))
		}},
	{"a yes that is not used within its time", Taken, 0, 1, nil, time.Nanosecond,
		func(r *Run, _ ...*Run) string { return r.yes() }},
	{"the same answer again", Taken, 1, 0, once, 0, func(r *Run, _ ...*Run) string {
		return after(r.yes(), r.yes())
	}},
	{"another answer after it", answered, 1, 0, once, 0, func(r *Run, _ ...*Run) string {
		return after(r.yes(), r.no())
	}},
	{"the same answer while the call runs", Taken, 1, 0, once, 0, func(r *Run, _ ...*Run) string {
		first := r.yes()
		r.Begin()
		return after(first, r.yes())
	}},
	{"another answer while the call runs", answered, 1, 0, once, 0, func(r *Run, _ ...*Run) string {
		first := r.yes()
		r.Begin()
		return after(first, r.no())
	}},
	{"the same answer after the run ended", notOpen, 1, 0, nil, 0, func(r *Run, _ ...*Run) string {
		first := r.yes()
		r.End()
		return after(first, r.yes())
	}},
	{"another answer after the run ended", notOpen, 1, 0, nil, 0, func(r *Run, _ ...*Run) string {
		first := r.yes()
		r.End()
		return after(first, r.no())
	}},
	{"an unknown call", notOpen, 0, 1, noKey, 0,
		func(r *Run, _ ...*Run) string {
			d := r.Question.Approve("a")
			d.Key = "run/9/9"
			return r.Answer(To{}, d)
		}},
	{"an unknown run", noRun, 0, 1, byState, 0, func(r *Run, _ ...*Run) string {
		return r.Answer(To{Lost: true}, r.Question.Approve("a"))
	}},
	{"another digest", other, 0, 1, byInbox, 0, func(r *Run, _ ...*Run) string {
		d := r.Question.Approve("a")
		d.Digest = strings.Repeat("0", len(d.Digest))
		return r.Answer(To{}, d)
	}},
	{"the answer to a call of another run", other, 0, 1, ofOther, 0,
		func(r *Run, others ...*Run) string { return r.Answer(To{}, others[0].Question.Approve("a")) }},
	{"a yes of a user without the permission", noRun, 0, 1, noUsers, 0,
		func(r *Run, _ ...*Run) string { return r.Answer(To{User: Stranger}, r.Question.Approve("eve")) }},
	{"a yes of an approver", Taken, 1, 0, noUsers, 0,
		func(r *Run, _ ...*Run) string { return r.Answer(To{User: Approver}, r.Question.Approve("boss")) }},
	{"20 answers at once, 10 yes and 10 no", oneWins, -1, 0, nil, 0, concurrent},
}

func (r *Run) yes() string { return r.Answer(To{}, r.Question.Approve("a")) }
func (r *Run) no() string  { return r.Answer(To{}, r.Question.Deny("b", "")) }

// after returns word if the first answer was accepted.
func after(first, word string) string {
	if first != Taken {
		return "after a first answer that was " + first + ": " + word
	}
	return word
}

// concurrent gives 20 answers. The accepted ones must be equal, and the world must agree.
func concurrent(r *Run, _ ...*Run) string {
	r.Till.Let()
	words := make([]string, 20)
	var all sync.WaitGroup
	for i := range words {
		all.Go(func() {
			if i%2 == 0 {
				words[i] = r.yes()
			} else {
				words[i] = r.no()
			}
		})
	}
	all.Wait()
	r.End()
	var count [2]int
	for i, w := range words {
		if w == Taken {
			count[i%2]++
		} else if w != notOpen && w != answered {
			return w
		}
	}
	if yes, no := count[0], count[1]; (yes > 0) == (no > 0) || (yes > 0) != (r.Till.Paid() == 1) {
		return fmt.Sprintf("%d yes and %d no were accepted, with %d calls", yes, no, r.Till.Paid())
	}
	return oneWins
}

// WordFor returns the outcome of a row at a door.
func (row *Row) WordFor(door string) (word, why string) {
	if d, ok := row.Except[door]; ok {
		return d.Word, d.Why
	}
	return row.Want, ""
}

// differs plays a row at a door, and returns how its outcome differs from the table. Empty means
// that it does not.
func (row *Row) differs(t *testing.T, door string, open Open) string {
	want, _ := row.WordFor(door)
	runs := open(t, 2, row.within)
	r := runs[0]
	got := row.play(r, runs[1:]...)
	left, paid, calls := r.End(), r.Till.Paid(), row.Calls
	if calls < 0 {
		calls = min(paid, 1)
	}
	var diffs []string
	if got != want {
		diffs = append(diffs, fmt.Sprintf("%q, want %q", got, want))
	}
	if left != row.Open || paid != calls {
		diffs = append(diffs, fmt.Sprintf("%d executed calls and %d open questions, want %d and %d", paid, left, calls, row.Open))
	}
	if left, paid := runs[1].End(), runs[1].Till.Paid(); left != 1 || paid != 0 {
		diffs = append(diffs, fmt.Sprintf("the other run has %d executed calls and %d open questions", paid, left))
	}
	return strings.Join(diffs, "; ")
}

// Play gives all answers of the table at a door. Each has the outcome of the table.
func Play(t *testing.T, door string, open Open) {
	for _, row := range played(t, door) {
		t.Run(row.Answer, func(t *testing.T) {
			if door == "Temporal" { // refused answers are sent again for some seconds
				t.Parallel()
			}
			if diff := row.differs(t, door, open); diff != "" {
				t.Errorf("%s: %s", door, diff)
			}
		})
	}
}

// Found plays the table at a door that is known to be wrong, and returns the answers whose outcomes
// differ from the table.
func Found(t *testing.T, door string, open Open) (answers []string) {
	for _, row := range played(t, door) {
		if row.differs(t, door, open) != "" {
			answers = append(answers, row.Answer)
		}
	}
	return answers
}

// played returns the rows for a door.
func played(t *testing.T, door string) (rows []Row) {
	if !slices.Contains(Doors, door) {
		t.Fatalf("the table has no door %q", door)
	}
	for _, row := range Table {
		if want, _ := row.WordFor(door); want != none {
			rows = append(rows, row)
		}
	}
	return rows
}
