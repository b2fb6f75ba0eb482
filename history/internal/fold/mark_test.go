package fold

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/llm"
)

// All stored forms of a mark are read as the same mark, but for the version. testdata/mark_v1.json
// to testdata/mark_v3.json never change: stored transcripts have these forms.
func TestStoredMarks(t *testing.T) {
	want := Mark{
		Version:     markVersion,
		Tokens:      100,
		Bytes:       300,
		Folded:      3,
		Stubbed:     5,
		Edited:      8,
		Turn:        2,
		LimitBytes:  1_000,
		Unhelpful:   1,
		Why:         "full",
		CutBytes:    200,
		RoomTokens:  900,
		Shown:       4,
		Notes:       "Found: a fact.",
		NotesAt:     6,
		NotesTo:     5,
		NotesFailed: 7,
	}
	for version, file := range map[int]string{1: "testdata/mark_v1.json", 2: "testdata/mark_v2.json", 3: "testdata/mark_v3.json"} {
		want.Version = max(version, 2) // the records of the first two are the same
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		part := llm.Reasoning{Opaque: &llm.Opaque{Provider: "pawl", Data: data}}
		message := llm.Assistant(llm.Text{Text: "t"}, part)
		got, ok, err := MarkOf(&message, 9)
		if err != nil || !ok {
			t.Fatalf("%s: got mark %t, error %v", file, ok, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
		if got := Edited(message); got != "full: 2 steps shortened, 3 in a record" {
			t.Errorf("%s: got edit %q", file, got)
		}
	}

	// A new mark has the present version, and another keeps its own.
	for version, file := range map[int]string{0: "testdata/mark_v3.json", 2: "testdata/mark_v2.json", 3: "testdata/mark_v3.json"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want.Version = version
		got := string(want.Part().(llm.Reasoning).Opaque.Data)
		if got != strings.TrimSpace(string(data)) {
			t.Errorf("version %d: the stored form of a mark is another:\n%s\n%s", version, got, data)
		}
	}
}

// A mark of a version that is not known, or that is no mark, belongs to no transcript.
func TestUnknownMarks(t *testing.T) {
	for data, want := range map[string]string{
		`{"version":4}`:         "version is 4, want 2 to 3",
		`{"v":2}`:               "version is 2, want 1 to 3",
		`{}`:                    "version is 0, want 1 to 3",
		`{"version":1,"v":1}`:   "version is 1, want 2 to 3",
		`{"v":1,"f":"a"}`:       "cannot unmarshal",
		`{"version":2,"turn":`:  "unexpected end",
		`{"v":1,"s":2,"f":1}`:   "stubbed is 2, want 1 to 0",
		`{"version":2,"why":1}`: "cannot unmarshal",
	} {
		part := llm.Reasoning{Opaque: &llm.Opaque{Provider: "pawl", Data: []byte(data)}}
		message := llm.Assistant(part)
		_, ok, err := MarkOf(&message, 9)
		if !ok || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got mark %t, error %v, want an error with %q", data, ok, err, want)
		}
		if got := Edited(message); got != "" {
			t.Errorf("%s: got edit %q", data, got)
		}
	}
}

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
