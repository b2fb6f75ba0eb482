package fold

import (
	"strings"
	"testing"

	"github.com/pawl-go/pawl/llm"
)

// A mark with a number that the transcript cannot have is refused, and the error names the number.
func TestMarkOutOfBounds(t *testing.T) {
	const reply = 9
	valid := Mark{
		Tokens:      100,
		Bytes:       300,
		Folded:      3,
		Stubbed:     5,
		Edited:      8,
		Turn:        2,
		LimitBytes:  1_000,
		CutBytes:    200,
		RoomTokens:  900,
		Shown:       4,
		Unhelpful:   1,
		Notes:       "n",
		NotesAt:     6,
		NotesTo:     5,
		NotesFailed: 1,
	}
	for _, test := range []struct {
		field  string
		change func(m *Mark)
	}{
		{"", func(*Mark) {}},
		{"", func(m *Mark) { m.Edited = reply }},
		{"", func(m *Mark) { m.Shown, m.NotesAt = reply+1, reply+1 }},
		{"", func(m *Mark) { m.Stubbed, m.NotesTo = 8, 6 }},
		{"tokens", func(m *Mark) { m.Tokens = -1 }},
		{"tokens", func(m *Mark) { m.Tokens = 1 << 30 }},
		{"bytes", func(m *Mark) { m.Bytes = -1 }},
		{"folded", func(m *Mark) { m.Folded = -1 }},
		{"folded", func(m *Mark) { m.Folded = 6 }},
		{"stubbed", func(m *Mark) { m.Stubbed = reply }},
		{"stubbed", func(m *Mark) { m.Edited = 4 }},
		{"edited", func(m *Mark) { m.Edited = reply + 1 }},
		{"turn", func(m *Mark) { m.Turn = -1 }},
		{"turn", func(m *Mark) { m.Turn = 9 }},
		{"limit_bytes", func(m *Mark) { m.LimitBytes = 1 << 30 }},
		{"cut_bytes", func(m *Mark) { m.CutBytes = -1 }},
		{"room_tokens", func(m *Mark) { m.RoomTokens = 1 << 30 }},
		{"shown", func(m *Mark) { m.Shown = reply + 2 }},
		{"unhelpful", func(m *Mark) { m.Unhelpful = -1 }},
		{"notes_at", func(m *Mark) { m.NotesAt = reply + 2 }},
		{"notes_at", func(m *Mark) { m.NotesAt = 4 }},
		{"notes_to", func(m *Mark) { m.NotesTo = -1 }},
		{"notes_failed", func(m *Mark) { m.NotesFailed = -1 }},
	} {
		m := valid
		test.change(&m)
		message := llm.Assistant(llm.Text{Text: "t"}, m.Part())
		_, ok, err := MarkOf(&message, reply)
		switch {
		case !ok:
			t.Errorf("%+v: got no mark", m)
		case test.field == "" && err != nil:
			t.Errorf("%+v: got the error %v", m, err)
		case test.field != "" && (err == nil || !strings.HasPrefix(err.Error(), test.field+" is ")):
			t.Errorf("%+v: got the error %v, want one about %s", m, err, test.field)
		}
	}
}
