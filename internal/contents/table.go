package contents

// table.go: Table, the list of what a transcript has, and Entry, a line of it.

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

const (
	argsShown = 80  // bytes of the arguments of a call in a list
	textShown = 120 // bytes of a text in a list
)

// Entry is a text of the user or of the model, or all equal calls.
type Entry struct {
	ID   string // of the text, or of the first result
	Call string // the tool; empty means that the entry is a text
	Args string // of the calls, whole
	Text string // the beginning of a text

	IDs    []string // of the results of equal calls, the first one first
	Reply  string   // the id of the reply with the first call
	Failed bool     // the last call failed
	Bytes  int      // of the last result, or of the text
	last   int      // the number of the last reply with the call, or of the text
}

// Table lists what a transcript has, each distinct call once, without the calls of ReadTool. The
// zero value is empty.
type Table struct {
	entries []Entry
	calls   map[uint64]int // the hash of a call is the index of its entry
}

var hashSeed = maphash.MakeSeed()

// CallHash identifies a call by name and arguments, within this process.
func CallHash(c llm.ToolCall) uint64 {
	var h maphash.Hash
	h.SetSeed(hashSeed)
	_, _ = h.WriteString(c.Name) // it never fails
	_ = h.WriteByte(' ')
	_, _ = h.Write(c.Args)
	return h.Sum64()
}

// Has reports whether the table has an equal call.
func (t *Table) Has(hash uint64) bool {
	_, ok := t.calls[hash]
	return ok
}

// Add adds what a step has.
func (t *Table) Add(s *Step) {
	if t.calls == nil {
		t.calls = map[uint64]int{}
	}
	if len(s.Said) > 0 {
		t.addText(s.SaidID(), s.SaidText(), s.Before)
	}
	if s.Reply == nil {
		return
	}
	if content := s.Reply.Text(); content != "" {
		t.addText(s.ReplyID(), content, s.Number)
	}
	for place, c := range s.Reply.Calls() {
		// What a call of ReadTool returns is listed already.
		if c.Name != ReadTool {
			t.addCall(s, c, place)
		}
	}
}

// addText adds a text of a user or a model.
func (t *Table) addText(id, content string, number int) {
	t.entries = append(t.entries, Entry{
		ID:    id,
		Text:  text.ClipLine(content, textShown),
		Bytes: len(content),
		last:  number,
	})
}

// addCall adds the call at a place of step s.
func (t *Table) addCall(s *Step, c llm.ToolCall, place int) {
	result, _ := s.Result(place)
	id := s.ResultID(&result, place)
	hash := CallHash(c)
	i, ok := t.calls[hash]
	if !ok {
		i = len(t.entries)
		t.calls[hash] = i
		t.entries = append(t.entries, Entry{ID: id, Call: c.Name, Args: string(c.Args), Reply: s.ReplyID()})
	}

	e := &t.entries[i]
	e.IDs = append(e.IDs, id)
	e.Failed = result.IsError
	e.Bytes = len(result.Text())
	e.last = s.Number
}

// Latest returns the entries that keep chooses, the latest first.
func (t *Table) Latest(keep func(*Entry) bool) []*Entry {
	var out []*Entry
	for i := range t.entries {
		if keep(&t.entries[i]) {
			out = append(out, &t.entries[i])
		}
	}
	slices.Reverse(out)
	slices.SortStableFunc(out, func(a, b *Entry) int { return cmp.Compare(b.last, a.last) })
	return out
}

// line returns the entry as a line that begins with its id, and names each other id that is needed
// to read all of it.
func (e *Entry) line() string {
	if e.Call == "" {
		return e.ID + " " + e.short()
	}

	args := text.ClipLine(e.Args, argsShown)
	whole := ""
	if args != e.Args {
		whole = ", whole arguments in " + e.Reply
	}
	again := ""
	if len(e.IDs) > 1 {
		again = fmt.Sprintf(", again as %s", strings.Join(e.IDs[1:], " "))
	}
	return fmt.Sprintf("%s %s %s: %s%s%s", e.ID, e.Call, args, e.outcome(), again, whole)
}

// outcome says how the last call ended.
func (e *Entry) outcome() string {
	if e.Failed {
		return "failed"
	}
	return fmt.Sprintf("%d bytes", e.Bytes)
}

// size says how long a text is that is not shown whole.
func (e *Entry) size() string {
	if e.Call != "" || e.Bytes == len(e.Text) {
		return ""
	}
	return fmt.Sprintf(", %d bytes", e.Bytes)
}

// IndexOf returns the list of all that a transcript has, in its order, a line for each entry.
func IndexOf(msgs []llm.Message) string {
	t := new(Table)
	steps := Steps(msgs)
	for i := range steps {
		t.Add(&steps[i])
	}

	var b strings.Builder
	for i := range t.entries {
		b.WriteString(t.entries[i].line() + "\n")
	}
	return b.String()
}
