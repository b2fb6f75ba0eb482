package fold

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pawl-go/pawl/llm"
)

// Mark is the state of Window after a reply. It is the last part of that reply, as opaque data of
// the provider "pawl", so that a run that is resumed, forked, exported or replayed sends the same
// requests. A request never contains it. Numbers of replies count from the start of the
// conversation.
type Mark struct {
	Version int    `json:"v"`
	Tokens  int    `json:"t,omitzero"` // of the request, by the provider's count
	Bytes   int    `json:"b,omitzero"` // of the same request, by size
	Folded  int    `json:"f,omitzero"` // the replies before this number are in the ledger
	Stubbed int    `json:"s,omitzero"` // the results before this number are put away
	Edited  int    `json:"e,omitzero"` // number of the reply whose request made the last edit
	Turn    int    `json:"u,omitzero"` // number of the first reply of the turn at that edit
	Limit   int    `json:"l,omitzero"` // bytes of the room at that edit
	Cut     int    `json:"c,omitzero"` // bytes that the results right before this reply may have
	Room    int    `json:"r,omitzero"` // tokens that a refusal has taught
	Shown   int    `json:"q,omitzero"` // number of the first reply that had result_read, plus 1
	Thrash  int    `json:"h,omitzero"` // edits in turn that did not help
	Notes   string `json:"n,omitzero"` // new notes
	NotesAt int    `json:"i,omitzero"` // number of the reply with the latest notes, plus 1
	NotesTo int    `json:"o,omitzero"` // the notes cover the replies before this number
	Failed  int    `json:"x,omitzero"` // notes in turn that failed
	Why     string `json:"y,omitzero"` // of an edit by this request
}

const (
	markProvider = "pawl"
	markVersion  = 1
	WarnAt       = 6 // edits in turn that did not help: the model is warned
)

// Part returns the form of m in a reply.
func (m Mark) Part() llm.Part {
	m.Version = markVersion
	data, _ := json.Marshal(m) // numbers and strings: no error is possible
	return llm.Reasoning{Opaque: &llm.Opaque{Provider: markProvider, Data: data}}
}

func isMark(p llm.Part) bool {
	r, ok := p.(llm.Reasoning)
	return ok && r.Opaque != nil && r.Opaque.Provider == markProvider
}

// MarkOf returns the mark of reply n. ok is false if it has none. fits is false if its mark is not
// from this transcript: the transcript may come from a client.
func MarkOf(reply *llm.Message, n int) (m Mark, ok, fits bool) {
	for _, p := range slices.Backward(reply.Parts) {
		if !isMark(p) {
			continue
		}
		err := json.Unmarshal(p.(llm.Reasoning).Opaque.Data, &m)
		sizes := []int{m.Tokens, m.Bytes, m.Limit, m.Cut, m.Room, m.Thrash}
		fits = err == nil && m.Version == markVersion && slices.Min(sizes) >= 0 && slices.Max(sizes) < 1<<30 &&
			slices.IsSorted([]int{0, m.Folded, m.Stubbed, m.Edited, n}) && m.Stubbed <= max(0, n-1) &&
			slices.IsSorted([]int{0, m.Turn, m.Edited}) && slices.IsSorted([]int{0, m.Shown, n + 1}) &&
			slices.IsSorted([]int{0, m.NotesTo, m.NotesAt, n + 1}) && m.Failed >= 0
		return m, true, fits
	}
	return Mark{}, false, true
}

// Edited says what Window put away right before the request of a reply, for people. Empty means
// nothing.
func Edited(reply llm.Message) string {
	for _, p := range reply.Parts {
		var m Mark
		if isMark(p) && json.Unmarshal(p.(llm.Reasoning).Opaque.Data, &m) == nil && m.Why != "" {
			return fmt.Sprintf("%s: %d steps shortened, %d in a record", m.Why, m.Stubbed-m.Folded, m.Folded)
		}
	}
	return ""
}

// Unmarked returns reply without its mark.
func Unmarked(reply llm.Message) llm.Message {
	if slices.ContainsFunc(reply.Parts, isMark) {
		reply.Parts = slices.DeleteFunc(slices.Clone(reply.Parts), isMark)
	}
	return reply
}
