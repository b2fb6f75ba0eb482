package fold

// ledger.go: Ledger, which writes the record in place of folded replies.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/internal/contents"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

// The shares of the room that parts of the record may take, and the bounds of its lists.
const (
	shareUsers  = 0.15 // other messages of the user
	shareWrites = 0.05 // calls with an effect
	shareCalls  = 0.08 // distinct calls without an effect
	shareTexts  = 0.06 // texts of the model, a line for each
	sharePinned = 0.25 // results that a tool pins
	argsShown   = 120  // bytes of the arguments of such a call
	pathsShown  = 20
)

// Ledger lists the calls of folded rounds, and writes the record of them. It is a cache: it depends
// on the transcript alone, and reads each round once while the transcript grows. A Ledger may be
// used concurrently.
type Ledger struct {
	mu sync.Mutex
	entries
	repeated count

	record   string // the last record; empty means none
	recordOf Mark   // the fields that it was written from
}

// entries are what a Ledger has read.
type entries struct {
	progress
	tools  []tally
	writes []string       // a line for each call with an effect
	paths  []string       // the last pathsShown, each once
	pinned []string       // results of tools with Tool.Pin
	table  contents.Table // all texts, and each distinct call
}

// progress is how far a transcript was read.
type progress struct {
	replies int       // how many were read
	last    *llm.Part // the first part of the last of them
}

// tally counts the calls of a tool.
type tally struct {
	name   string
	calls  int
	failed int
	first  string // the id of a result
	last   string
}

// grow reads the replies before reply n. It starts over if r is another transcript.
func (l *Ledger) grow(r *Rounds, n int) {
	if !l.hasRead(r, n) {
		l.entries = entries{}
		l.record = ""
	}
	for l.replies < n {
		l.add(r, l.next(r))
	}
}

// hasRead reports whether the replies that were read are the first ones of r, and at most n.
func (p *progress) hasRead(r *Rounds, n int) bool {
	switch {
	case p.replies > n:
		return false
	case p.replies == 0:
		return true
	}

	// The requests of a run share their parts, so the address of one part identifies the
	// transcript. A transcript that was read from JSON is read anew.
	return p.last != nil && p.last == firstPart(r.Reply(p.replies-1))
}

// next returns the number of the next reply of r, which counts as read then.
func (p *progress) next(r *Rounds) int {
	n := p.replies
	p.last = firstPart(r.Reply(n))
	p.replies++
	return n
}

func firstPart(m *llm.Message) *llm.Part {
	if len(m.Parts) == 0 {
		return nil
	}
	return &m.Parts[0]
}

// add adds what reply n answers, the reply, and its calls.
func (l *Ledger) add(r *Rounds, n int) {
	step := r.step(n)
	l.table.Add(step)
	for place, call := range r.Reply(n).Calls() {
		result, _ := step.Result(place)
		key := step.ResultID(&result, place)
		l.count(call.Name, key, result.IsError)
		l.addPath(call.Args)

		if !r.onlyReads(call.Name) {
			l.addWrite(call, key, result.IsError)
		}
		if tool := r.tools[call.Name]; tool != nil && tool.Pin {
			l.pinned = append(l.pinned, result.Text())
		}
	}
}

// addWrite adds a call with an effect, whose result has the id key.
func (l *Ledger) addWrite(call llm.ToolCall, key string, failed bool) {
	outcome := "ok"
	if failed {
		outcome = "failed"
	}
	args := text.ClipLine(string(call.Args), argsShown)
	l.writes = append(l.writes, fmt.Sprintf("- %s %s %s: %s\n", key, call.Name, args, outcome))
}

// count counts a call of a tool, whose result has the id key.
func (l *Ledger) count(tool, key string, failed bool) {
	i := slices.IndexFunc(l.tools, func(t tally) bool { return t.name == tool })
	if i < 0 {
		i = len(l.tools)
		l.tools = append(l.tools, tally{name: tool, first: key})
	}
	t := &l.tools[i]
	t.calls++
	t.last = key
	if failed {
		t.failed++
	}
}

// addPath adds the path in the arguments of a call.
func (l *Ledger) addPath(args json.RawMessage) {
	var in struct{ Path, File string }
	_ = json.Unmarshal(args, &in) // other arguments have no path

	path := text.ClipLine(cmp.Or(in.Path, in.File), argsShown)
	if path == "" {
		return
	}

	// The path that was used last stands last.
	l.paths = append(slices.DeleteFunc(l.paths, func(p string) bool { return p == path }), path)
	l.paths = l.paths[max(0, len(l.paths)-pathsShown):]
}

// MostlyRepeats reports whether most of the results since the last edit of state m, in bytes, are
// of calls that were made before.
func (l *Ledger) MostlyRepeats(r *Rounds, m *Mark) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grow(r, m.Folded)

	// The ledger has the calls that are folded; seen has those after them.
	again := 0
	all := 0
	seen := map[uint64]bool{}
	for n := m.Folded; n < len(r.Replies); n++ {
		var sent llm.Message
		if results := r.Results(n); results != nil {
			sent = r.withoutRepeats(*results, n, m)
		}
		for place, call := range r.Reply(n).Calls() {
			hash := contents.CallHash(call)
			if n >= m.Edited && place < len(sent.Parts) {
				bytes := Weigh(sent.Parts[place : place+1])
				all += bytes
				if seen[hash] || l.table.Has(hash) {
					again += bytes
				}
			}
			seen[hash] = true
		}
	}
	return again*2 > all
}

// Record returns the text in place of the folded replies of state m. pinned returns further text of
// the program; nil means none.
func (l *Ledger) Record(r *Rounds, m *Mark, pinned func([]llm.Message) string) string {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.grow(r, m.Folded)

	// A record is written once for each edit, since pinned may read the whole transcript. It
	// changes with these fields alone.
	of := Mark{
		Version:    m.Version,
		Folded:     m.Folded,
		Edited:     m.Edited,
		Turn:       m.Turn,
		LimitBytes: m.LimitBytes,
		NotesAt:    m.NotesAt,
	}
	if l.record == "" || l.recordOf != of {
		l.recordOf = of
		l.record = l.write(r, m, pinned)
	}
	return l.record
}

// write writes the record of state m.
func (l *Ledger) write(r *Rounds, m *Mark, pinned func([]llm.Message) string) string {
	var b strings.Builder
	b.WriteString("[A record of earlier steps, which were put away to save space. It is no instruction.]\n")
	quoteUser(&b, "The user also said:", r, m, func(i int) bool { return !r.beganTurn(m, i) })

	if !m.Brief() {
		l.writeTexts(&b, int(float64(m.LimitBytes)*shareTexts))
	}
	b.WriteString("\nCalls, with the ids of the first and the last result:\n")
	for _, t := range l.tools {
		fmt.Fprintf(&b, "- %s: %d (%s to %s)", t.name, t.calls, t.first, t.last)
		if t.failed > 0 {
			fmt.Fprintf(&b, ", %d failed", t.failed)
		}
		b.WriteString("\n")
	}

	if !m.Brief() {
		l.writeReads(&b, r, int(float64(m.LimitBytes)*shareCalls))
	}

	// Writes have a share of their own: a model that does not know of a write repeats it.
	l.writeEffects(&b, int(float64(m.LimitBytes)*shareWrites))
	if len(l.paths) > 0 {
		fmt.Fprintf(&b, "\nFiles: %s\n", strings.Join(l.paths, ", "))
	}

	l.writePinned(&b, r, m, pinned)
	if notes := r.Notes(m); notes != "" {
		quote(&b, "Notes of the earlier steps, by a model:", []string{notes})
	}
	writeReader(&b, r, m)
	return b.String()
}

// writeReader says how everything that is left out can be read.
func writeReader(b *strings.Builder, r *Rounds, m *Mark) {
	switch {
	case !r.HasReader:
		return
	case m.Brief():
		fmt.Fprintf(b, "\nNothing is lost: %s with an id reads a result, "+
			"and %s with a pattern and no id searches all results.\n", contents.ReadTool, contents.ReadTool)
		return
	}
	fmt.Fprintf(b, "\nNothing is lost. %s {\"id\":%q} lists each earlier call and text with its id. With an id it reads the whole: "+
		"a result (run/7/0), what you wrote in step 7 with its calls (reply/7), what the user said after it (user/7). "+
		"With a pattern and no id it searches all of them.\n", contents.ReadTool, contents.Index)
}

// writeTexts lists the latest texts of the model, with most bytes at most.
func (l *Ledger) writeTexts(b *strings.Builder, most int) {
	isReply := func(e *contents.Entry) bool { return e.Call == "" && strings.HasPrefix(e.ID, "reply/") }
	lines, left := contents.Lines(l.table.Latest(isReply), most)
	if lines == "" {
		return
	}

	b.WriteString("\nWhat you wrote, with the ids of the texts:\n")
	if left > 0 {
		fmt.Fprintf(b, "- %d earlier texts, which are not listed here\n", left)
	}
	b.WriteString(lines)
}

// writeReads lists the latest distinct calls without an effect, with most bytes at most.
func (l *Ledger) writeReads(b *strings.Builder, r *Rounds, most int) {
	reads := func(e *contents.Entry) bool { return e.Call != "" && r.onlyReads(e.Call) }
	lines, left := contents.Lines(l.table.Latest(reads), most)
	if lines == "" {
		return
	}

	b.WriteString("\nAlready read or asked, with the ids of the results; do not ask again:\n")
	if left > 0 {
		fmt.Fprintf(b, "- %d earlier calls, which are not listed here\n", left)
	}
	b.WriteString(lines)
}

// writeEffects lists the latest calls with an effect, with most bytes at most.
func (l *Ledger) writeEffects(b *strings.Builder, most int) {
	first := len(l.writes)
	if first == 0 {
		return
	}
	for first > 0 && most >= len(l.writes[first-1]) {
		first--
		most -= len(l.writes[first])
	}

	b.WriteString("\nDone with effect; do not do it again:\n")
	if first > 0 {
		fmt.Fprintf(b, "- %d earlier calls, which are not listed\n", first)
	}
	b.WriteString(strings.Join(l.writes[first:], ""))
}

// quoteUser quotes the messages of the user before the record that keep chooses.
func quoteUser(b *strings.Builder, title string, r *Rounds, m *Mark, keep func(i int) bool) {
	var users []string
	ids := r.saidIDs()
	for i := range r.Messages[:r.Index(m.Folded)] {
		msg := &r.Messages[i]
		if msg.Role != llm.RoleUser || !keep(i) {
			continue
		}
		said := msg.Text()
		if !m.Brief() {
			said = ids[msg] + ": " + said
		}
		users = append(users, said)
	}
	quote(b, title, bounded(users, int(float64(m.LimitBytes)*shareUsers)))
}

// writePinned writes what tools and the program pin.
func (l *Ledger) writePinned(b *strings.Builder, r *Rounds, m *Mark, pinned func([]llm.Message) string) {
	quote(b, "Results that stay in sight:", bounded(l.pinned, int(float64(m.LimitBytes)*sharePinned)))
	if pinned == nil {
		return
	}

	// The record must stay the same until the next edit, so it has the text as of the last one.
	if t := pinned(r.Messages[:r.Index(m.Edited)]); t != "" {
		b.WriteString("\n" + strings.TrimSpace(t) + "\n")
	}
}

// AfterSummary returns what follows the provider's summary, before which it may drop everything.
func (l *Ledger) AfterSummary(r *Rounds, m *Mark, pinned func([]llm.Message) string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grow(r, m.Folded)

	var b strings.Builder
	b.WriteString("[What stays in sight of the steps before the summary.]\n")
	quoteUser(&b, "The user said:", r, m, func(int) bool { return true })
	l.writePinned(&b, r, m, pinned)
	if !m.Brief() {
		writeReader(&b, r, m)
	}
	return b.String()
}

// quote writes texts as quotes.
func quote(b *strings.Builder, title string, texts []string) {
	if len(texts) == 0 {
		return
	}
	b.WriteString("\n" + title + "\n")
	for _, t := range texts {
		b.WriteString("> " + strings.ReplaceAll(strings.TrimSpace(t), "\n", "\n> ") + "\n")
	}
}

// bounded returns texts with at most n bytes together, each with its head and its tail. The newest
// have precedence.
func bounded(texts []string, n int) []string {
	var out []string
	for _, t := range slices.Backward(texts) {
		if n <= 0 {
			out = append(out, "(earlier ones are left out)")
			break
		}
		if len(t) > n {
			t = text.Clip(t, n*2/3) + " … " + t[text.RuneAfter(t, len(t)-n/4):]
		}
		n -= len(t)
		out = append(out, t)
	}
	slices.Reverse(out)
	return out
}
