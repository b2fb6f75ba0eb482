package fold

// mark.go: Mark, the state of history.Window, which stands in the replies of a transcript.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pawl-go/pawl/llm"
)

// Mark is the state of Window after a reply. It is the last part of that reply, as opaque data of
// the provider "pawl", so that a run that is resumed, forked, exported or replayed sends the same
// requests. A request never contains it. Replies are numbered from the start of the conversation.
// Stored transcripts have marks for ever: a new form needs a new version.
type Mark struct {
	// Version is the form of the mark, and of the record that its state has. A conversation keeps
	// the form in which it began, so that stored requests stay the same. 0 means the present form.
	Version int `json:"version"`

	// What the provider counted for the request of the reply. 0 means that it counted nothing.
	Tokens int `json:"tokens,omitzero"`
	Bytes  int `json:"bytes,omitzero"` // the size of the same request

	// What the request has in place of the first replies and results: the replies before the number
	// Folded are in the record, and the results before the number Stubbed are one line each.
	Folded  int `json:"folded,omitzero"`
	Stubbed int `json:"stubbed,omitzero"`

	// Edited is the number of the reply whose request made the last edit, which moved Folded or
	// Stubbed. At that time Turn was the number of the first reply of the turn, and LimitBytes was
	// the size of the room.
	Edited     int `json:"edited,omitzero"`
	Turn       int `json:"turn,omitzero"`
	LimitBytes int `json:"limit_bytes,omitzero"`
	// Unhelpful counts the edits in turn that did not help; see LowerAt, WarnAt and EndAt.
	Unhelpful int `json:"unhelpful,omitzero"`
	// Why is the reason of an edit by this request. Empty means that it made none.
	Why string `json:"why,omitzero"`

	// CutBytes is what the results right before this reply may have together. 0 means all.
	CutBytes int `json:"cut_bytes,omitzero"`
	// RoomTokens is the room that a refusal has taught. 0 means that there was none.
	RoomTokens int `json:"room_tokens,omitzero"`
	// Shown is the number of the first reply that had result_read, plus 1. 0 means none.
	Shown int `json:"shown,omitzero"`

	// Notes are new notes, which this reply brought.
	Notes string `json:"notes,omitzero"`
	// NotesAt is the number of the reply with the latest notes, plus 1. 0 means none.
	NotesAt int `json:"notes_at,omitzero"`
	// NotesTo is the number of the reply up to which the notes cover the replies.
	NotesTo int `json:"notes_to,omitzero"`
	// NotesFailed counts the notes in turn that could not be written.
	NotesFailed int `json:"notes_failed,omitzero"`
}

const (
	markProvider = "pawl"
	markVersion  = 3

	// Up to this version a record has no texts of the model and no calls without an effect.
	briefVersion = 2

	maxSize = 1<<30 - 1 // the largest size that a mark may have
)

// The levels of Mark.Unhelpful, at which a window is too small for its work. Package history acts
// at each of them.
const (
	LowerAt = 3 // an edit frees more than before
	WarnAt  = 6 // a warning follows the results before the next reply
	EndAt   = 9 // the run ends
)

// Part returns the form of m in a reply.
func (m Mark) Part() llm.Part {
	m.Version = cmp.Or(m.Version, markVersion)
	data, _ := json.Marshal(m) // numbers and strings: no error is possible
	return llm.Reasoning{Opaque: &llm.Opaque{Provider: markProvider, Data: data}}
}

// Brief reports whether the conversation began in a form whose records name only calls with an
// effect.
func (m *Mark) Brief() bool { return m.Version != 0 && m.Version <= briefVersion }

// Warns reports whether a warning follows the results right before reply n, which has the mark m.
func (m *Mark) Warns(n int) bool { return m.Unhelpful == WarnAt && m.Edited == n }

// parse reads the stored form of a mark, of any version.
func parse(data json.RawMessage) (m Mark, err error) {
	err = json.Unmarshal(data, &m)
	if err == nil && m.Version == 0 {
		m, err = parseV1(data)
	}
	if err == nil && (m.Version < briefVersion || m.Version > markVersion) {
		err = fmt.Errorf("version is %d, want %d to %d", m.Version, briefVersion, markVersion)
	}
	return m, err
}

// MarkOf returns the mark of a reply, which has the number n. ok is false if it has none. The error
// says why the mark is not from this transcript, which may come from a client.
func MarkOf(reply *llm.Message, n int) (m Mark, ok bool, err error) {
	for _, p := range slices.Backward(reply.Parts) {
		if !isMark(p) {
			continue
		}
		m, err = parse(p.(llm.Reasoning).Opaque.Data)
		if err == nil {
			err = m.check(n)
		}
		return m, true, err
	}
	return Mark{}, false, nil
}

// check reports what keeps m from being the mark of reply n. Its numbers become indexes into the
// transcript, so that a wrong one would be a panic.
func (m *Mark) check(n int) error {
	for _, f := range []struct {
		name               string
		least, value, most int
	}{
		{"tokens", 0, m.Tokens, maxSize},
		{"bytes", 0, m.Bytes, maxSize},
		{"folded", 0, m.Folded, m.Stubbed},
		{"stubbed", m.Folded, m.Stubbed, min(m.Edited, max(0, n-1))},
		{"edited", m.Stubbed, m.Edited, n},
		{"turn", 0, m.Turn, m.Edited},
		{"limit_bytes", 0, m.LimitBytes, maxSize},
		{"unhelpful", 0, m.Unhelpful, maxSize},
		{"cut_bytes", 0, m.CutBytes, maxSize},
		{"room_tokens", 0, m.RoomTokens, maxSize},
		{"shown", 0, m.Shown, n + 1},
		{"notes_at", m.NotesTo, m.NotesAt, n + 1},
		{"notes_to", 0, m.NotesTo, m.NotesAt},
		{"notes_failed", 0, m.NotesFailed, maxSize},
	} {
		if f.value < f.least || f.value > f.most {
			return fmt.Errorf("%s is %d, want %d to %d", f.name, f.value, f.least, f.most)
		}
	}
	return nil
}

// Edited says what Window put away right before the request of a reply, for people. Empty means
// nothing.
func Edited(reply llm.Message) string {
	for _, p := range reply.Parts {
		if !isMark(p) {
			continue
		}
		m, err := parse(p.(llm.Reasoning).Opaque.Data)
		if err == nil && m.Why != "" {
			return fmt.Sprintf("%s: %d steps shortened, %d in a record", m.Why, m.Stubbed-m.Folded, m.Folded)
		}
	}
	return ""
}

func isMark(p llm.Part) bool {
	r, ok := p.(llm.Reasoning)
	return ok && r.Opaque != nil && r.Opaque.Provider == markProvider
}

// unmarked returns reply without its mark.
func unmarked(reply llm.Message) llm.Message {
	if slices.ContainsFunc(reply.Parts, isMark) {
		reply.Parts = slices.DeleteFunc(slices.Clone(reply.Parts), isMark)
	}
	return reply
}
