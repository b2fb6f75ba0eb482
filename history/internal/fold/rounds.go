package fold

// rounds.go: Rounds, the messages of a request by replies.

import (
	"bytes"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// ReadTool is the tool by which the model reads a result that was put away; see package artifact.
const ReadTool = "result_read"

// Rounds are the messages of a request by replies. A round is a reply and what follows it. Rounds
// must not be used concurrently.
type Rounds struct {
	Request   *llm.Request
	Messages  []llm.Message
	Replies   []int // the index of each reply in Messages
	HasReader bool  // result_read is offered

	head  int // how many messages are instructions
	tools map[string]*pawl.Tool
	marks []*Mark // of the replies, as far as they were read; noMark means none that fits
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
		r.tools[t.Name], _ = t.Source.(*pawl.Tool)
		if t.Name == ReadTool {
			r.HasReader = true
		}
	}
	return r
}

// Instructs reports whether messages of the role are instructions.
func Instructs(r llm.Role) bool { return r == llm.RoleSystem || r == llm.RoleDeveloper }

// Reply returns reply n.
func (r *Rounds) Reply(n int) *llm.Message { return &r.Messages[r.Replies[n]] }

// Start returns the index of the first message after reply n-1.
func (r *Rounds) Start(n int) int {
	if n == 0 {
		return r.head
	}
	return r.Replies[n-1] + 1
}

// End returns the index of reply n, or the number of messages if there is none yet.
func (r *Rounds) End(n int) int {
	if n < len(r.Replies) {
		return r.Replies[n]
	}
	return len(r.Messages)
}

// Turn returns the number of the first reply of the current turn. A message that is sent to a run
// between two steps begins none.
func (r *Rounds) Turn() int {
	n := len(r.Replies)
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

// Repeats reports whether one of the replies since from has a call of reply n.
func (r *Rounds) Repeats(from, n int) bool {
	calls := r.Reply(n).Calls()
	for i := from; i < n; i++ {
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

// CutOf returns the bytes that the results right before reply n may have, and whether a warning
// follows them. 0 means that they are whole. next is the mark of the reply to come.
func (r *Rounds) CutOf(n int, next *Mark) (limit int, warn bool) {
	m := next
	if n < len(r.Replies) {
		m = r.mark(n)
	}
	if m == nil {
		return 0, false
	}
	return m.CutBytes, m.Warns(n)
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

// beganTurn reports whether the folded message i began the turn of state m.
func (r *Rounds) beganTurn(m *Mark, i int) bool {
	if m.Turn > m.Folded || r.Messages[i].Role != llm.RoleUser {
		return false
	}
	return r.Start(m.Turn) <= i && i < r.Replies[m.Turn]
}
