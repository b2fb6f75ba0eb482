package history

// notes.go: the notes that a model writes of steps before they are folded.

import (
	_ "embed" // the page
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/history/internal/fold"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

// NoticeSummaryFailed is the code of the notice that notes could not be written.
const NoticeSummaryFailed = "summary_failed"

//go:embed notes.md
var notesPage string

const (
	shareNotes = 0.10    // of the room
	longestSaw = 4 << 10 // bytes of a result that notes are made of
	notesFail  = 3       // failures in turn, after which no notes are asked for
)

// notesExpected reports whether steps get notes before they are folded.
func (p *planner) notesExpected(m *fold.Mark) bool {
	return p.options.Notes != nil && m.NotesFailed < notesFail
}

// notesDue reports whether notes are due after the reply with the mark m: its request made an edit,
// the next fold is near, and it will take steps without notes.
func (p *planner) notesDue(m *fold.Mark) bool {
	edited := m.Edited == len(p.rounds.Replies)
	if !p.notesExpected(m) || !edited || m.NotesTo >= m.Stubbed {
		return false
	}
	stubs := p.rounds.StubBytes(m, p.options.Stub)
	return float64(stubs) > shareStubs/2*float64(m.LimitBytes)
}

// notesRequest returns the request for notes of the steps that state m puts away.
func (p *planner) notesRequest(m *fold.Mark) *llm.Request {
	var b strings.Builder
	if old := p.rounds.Notes(m); old != "" {
		b.WriteString("Old notes:\n\n" + old + "\n\n")
	}

	// All results together get half of the room.
	from := min(m.NotesTo, m.Stubbed)
	most := min(longestSaw, m.LimitBytes/2/max(1, m.Stubbed-from))
	b.WriteString("The steps to take notes of:\n")
	for _, msg := range p.rounds.Messages[p.rounds.InputStart(from):p.rounds.Index(m.Stubbed)] {
		writeStep(&b, msg, most)
	}
	b.WriteString("\nEnd of the steps. Write the notes.")

	words := p.sizes(m).tokens(int(shareNotes * float64(m.LimitBytes)))
	page := strings.ReplaceAll(notesPage, "WORDS", strconv.Itoa(max(50, words*3/4)))
	return &llm.Request{
		Key:      p.rounds.Request.Key + "/notes",
		Messages: []llm.Message{llm.System(page), llm.User(b.String())},
		Settings: llm.Settings{MaxTokens: 2 * max(100, words)},
	}
}

// notesOf returns the text of a reply with notes. err is the error of its request.
func notesOf(resp *llm.Response, err error) (string, error) {
	notes := strings.TrimSpace(resp.Message.Text())
	switch {
	case err != nil:
		return "", err
	case resp.Finish.Cut():
		return "", fmt.Errorf("they were cut (%s)", resp.Finish)
	case resp.Message.HasCalls() || notes == "":
		return "", errors.New("the reply has no text, or calls")
	}
	return notes, nil
}

// writeStep writes msg as text, with at most most bytes of a result.
func writeStep(b *strings.Builder, msg llm.Message, most int) {
	for _, p := range msg.Parts {
		switch p := p.(type) {
		case llm.Text:
			fmt.Fprintf(b, "\n[%s] %s\n", msg.Role, p.Text)
		case llm.ToolCall:
			fmt.Fprintf(b, "\n[call] %s %s\n", p.Name, text.Clip(string(p.Args), most))
		case llm.ToolResult:
			fmt.Fprintf(b, "\n[result, failed: %v] %s\n", p.IsError, text.Clip(p.Text(), most))
		}
	}
}
