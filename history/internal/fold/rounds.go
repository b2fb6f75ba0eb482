package fold

// rounds.go: Rounds, the messages of a request by replies.

import (
	"bytes"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/contents"
	"github.com/pawl-go/pawl/llm"
)

// Rounds are the messages of a request by replies. Rounds must not be used concurrently.
//
//	index      0        1      2         3         4         5         6
//	message    system   user   reply 0   results   reply 1   results   the reply to come
//	round                      └──── 0 ────────┘   └──── 1 ────────┘   2
//	Index(1) = 4: reply 1          InputStart(1) = 3: the first message that reply 1 answers
type Rounds struct {
	Request   *llm.Request
	Messages  []llm.Message
	Replies   []int // the index of each reply in Messages
	HasReader bool  // contents.ReadTool is offered; see package artifact

	head  int // the number of messages at the beginning that are instructions
	tools map[string]*pawl.Tool
	marks []*Mark // of the replies, as far as they were read; noMark means none that fits
	steps []contents.Step

	repeated *repeats // of the last state; nil means that none was read
}

// noMark stands for a reply without a mark that fits.
var noMark = new(Mark)

// Of returns the rounds of req.
func Of(req *llm.Request) *Rounds {
	r := &Rounds{
		Request:  req,
		Messages: req.Messages,
		tools:    make(map[string]*pawl.Tool, len(req.Tools)),
	}
	for r.head < len(r.Messages) && Instructs(r.Messages[r.head].Role) {
		r.head++
	}
	for i := range r.Messages {
		if r.Messages[i].Role == llm.RoleAssistant {
			r.Replies = append(r.Replies, i)
		}
	}
	r.marks = make([]*Mark, len(r.Replies))

	for _, t := range req.Tools {
		// A specification without a tool behind it stays nil: its effect is not known.
		r.tools[t.Name], _ = t.Source.(*pawl.Tool)
		if t.Name == contents.ReadTool {
			r.HasReader = true
		}
	}
	return r
}

// Instructs reports whether messages of the role are instructions.
func Instructs(r llm.Role) bool { return r == llm.RoleSystem || r == llm.RoleDeveloper }

// Reply returns reply n.
func (r *Rounds) Reply(n int) *llm.Message { return &r.Messages[r.Replies[n]] }

// InputStart returns the index of the first message that reply n answers: of the results before it,
// or of the messages behind the instructions.
func (r *Rounds) InputStart(n int) int {
	if n == 0 {
		return r.head
	}
	return r.Replies[n-1] + 1
}

// step returns round n, with what it answers.
func (r *Rounds) step(n int) *contents.Step {
	if r.steps == nil {
		r.steps = contents.Steps(r.Messages)
	}
	return &r.steps[n]
}

// saidIDs returns the ids of the messages of the user.
func (r *Rounds) saidIDs() map[*llm.Message]string {
	ids := map[*llm.Message]string{}
	for n := range r.Replies {
		step := r.step(n)
		for _, m := range step.Said {
			ids[m] = step.SaidID()
		}
	}
	return ids
}

// onlyReads reports whether calls of a tool have no effect. A tool that is not offered any more may
// have had one.
func (r *Rounds) onlyReads(tool string) bool {
	t := r.tools[tool]
	return t != nil && (t.Effect == pawl.EffectRead || t.Effect == pawl.EffectPure)
}

// Index returns the index of reply n. For the reply to come, it is the number of messages.
func (r *Rounds) Index(n int) int {
	if n < len(r.Replies) {
		return r.Replies[n]
	}
	return len(r.Messages)
}

// TurnStart returns the number of the first reply of the current turn.
func (r *Rounds) TurnStart() int {
	n := len(r.Replies)

	// A message that is sent to a run between two steps moves Request.Turn, but begins no turn: the
	// reply before it has calls.
	for n > 0 && (r.Replies[n-1] > r.Request.Turn || r.Reply(n-1).HasCalls()) {
		n--
	}
	return n
}

// Results returns the results of round n, or nil.
func (r *Rounds) Results(n int) *llm.Message {
	if i := r.Replies[n] + 1; i < len(r.Messages) && r.Messages[i].Role == llm.RoleTool {
		return &r.Messages[i]
	}
	return nil
}

// CalledBefore reports whether reply n repeats a call of the replies before it, from reply since
// on.
func (r *Rounds) CalledBefore(n, since int) bool {
	calls := r.Reply(n).Calls()
	for i := since; i < n; i++ {
		for _, old := range r.Reply(i).Calls() {
			same := func(c llm.ToolCall) bool { return c.Name == old.Name && bytes.Equal(c.Args, old.Args) }
			if slices.ContainsFunc(calls, same) {
				return true
			}
		}
	}
	return false
}

// LastMark returns the mark of the last reply with a mark that fits; the zero Mark means that there
// is none. It calls misfit for each mark after it, with the number of its reply.
func (r *Rounds) LastMark(misfit func(n int, err error)) Mark {
	for n := len(r.Replies) - 1; n >= 0; n-- {
		m, ok, err := MarkOf(r.Reply(n), n)
		switch {
		case err != nil:
			misfit(n, err)
		case ok:
			return m
		}
	}
	return Mark{}
}

// mark returns the mark of reply n, or nil. A mark that does not fit counts as none.
func (r *Rounds) mark(n int) *Mark {
	if r.marks[n] == nil {
		r.marks[n] = noMark
		if m, ok, err := MarkOf(r.Reply(n), n); ok && err == nil {
			r.marks[n] = &m
		}
	}
	if r.marks[n] == noMark {
		return nil
	}
	return r.marks[n]
}

// CutOf returns the bytes that the results of round n may have together, and whether a warning
// follows them. 0 means that they are whole. next is the mark of the reply to come.
//
// Results are sent for the first time with the request of the next reply, and later in the same
// form, so that its mark decides.
func (r *Rounds) CutOf(n int, next *Mark) (limit int, warn bool) {
	m := next
	if n+1 < len(r.Replies) {
		m = r.mark(n + 1)
	}
	if m == nil {
		return 0, false
	}
	return m.CutBytes, m.Warns(n + 1)
}

// Notes returns the latest notes in state m, or "".
func (r *Rounds) Notes(m *Mark) string {
	if m.NotesAt <= 0 || m.NotesAt > len(r.Replies) {
		return ""
	}
	if with := r.mark(m.NotesAt - 1); with != nil {
		return with.Notes
	}
	return ""
}

// beganTurn reports whether the message i, before the reply m.Folded, began the turn of state m.
func (r *Rounds) beganTurn(m *Mark, i int) bool {
	if m.Turn > m.Folded || r.Messages[i].Role != llm.RoleUser {
		return false
	}
	return r.InputStart(m.Turn) <= i && i < r.Index(m.Turn)
}
