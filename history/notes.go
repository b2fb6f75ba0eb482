package history

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	_ "embed"

	"github.com/pawl-go/pawl/history/internal/fold"
	"github.com/pawl-go/pawl/internal/background"
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

// noting reports whether notes are due: the next fold is near, and will take steps without notes.
func (s *sending) noting() bool {
	if s.w.o.Notes == nil || s.p.Failed >= notesFail || s.p.Edited != len(s.c.At) || s.p.NotesTo >= s.p.Stubbed {
		return false
	}
	return s.stubs(&s.p) > shareStubs/2*float64(s.p.Limit)
}

// note asks for notes of the steps that are put away, and stores them in m. It runs after the
// reply, so that the reply's request depends on the transcript alone. resp has the usage.
func (s *sending) note(ctx context.Context, m *fold.Mark) (resp *llm.Response) {
	size := s.sizes(m)
	var b strings.Builder
	if old := s.c.Notes(m); old != "" {
		b.WriteString("Old notes:\n\n" + old + "\n\n")
	}
	from := min(m.NotesTo, m.Stubbed)
	most := min(longestSaw, m.Limit/2/max(1, m.Stubbed-from))
	b.WriteString("The steps to take notes of:\n")
	for _, msg := range s.c.Msgs[s.c.Start(from):s.c.End(m.Stubbed)] {
		tell(&b, msg, most)
	}
	b.WriteString("\nEnd of the steps. Write the notes.")
	words := size.tokens(int(shareNotes * float64(m.Limit)))
	ask := &llm.Request{Key: s.c.Req.Key + "/notes", Messages: []llm.Message{
		llm.System(strings.ReplaceAll(notesPage, "WORDS", strconv.Itoa(max(50, words*3/4)))), llm.User(b.String())},
		Settings: llm.Settings{MaxTokens: 2 * max(100, words)}}
	resp, err := llm.Complete(background.Aside(ctx), s.w.o.Notes, ask)
	resp.Requests++ // this one
	switch notes := strings.TrimSpace(resp.Message.Text()); {
	case err != nil:
	case resp.Finish.Cut():
		err = fmt.Errorf("they were cut (%s)", resp.Finish)
	case resp.Message.HasCalls() || notes == "":
		err = errors.New("the reply has no text, or calls")
	default:
		m.Notes = notes
		m.NotesAt = len(s.c.At) + 1
		m.NotesTo = m.Stubbed
		m.Failed = 0
		return resp
	}
	m.Failed++
	s.yield(llm.Delta{Notice: &llm.Notice{Code: NoticeSummaryFailed, Text: "earlier steps could not be noted: " + err.Error()}}, nil)
	return resp
}

// tell writes m as text, with at most most bytes of a result.
func tell(b *strings.Builder, m llm.Message, most int) {
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.Text:
			fmt.Fprintf(b, "\n[%s] %s\n", m.Role, p.Text)
		case llm.ToolCall:
			fmt.Fprintf(b, "\n[call] %s %s\n", p.Name, text.Clip(string(p.Args), most))
		case llm.ToolResult:
			fmt.Fprintf(b, "\n[result, failed: %v] %s\n", p.IsError, text.Clip(p.Text(), most))
		}
	}
}
