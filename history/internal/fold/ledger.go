package fold

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

// The shares of the room that parts of the ledger may take.
const (
	shareUsers  = 0.15 // other messages of the user
	shareWrites = 0.05 // calls with an effect
	sharePinned = 0.25 // results that a tool pins
	argsShown   = 120  // bytes of the arguments of such a call
	pathsShown  = 20
)

// Ledger is what Window remembers of the replies that it has folded. It grows with the transcript
// and depends on nothing else; it is stored only to save time.
type Ledger struct {
	folded int       // replies
	last   *llm.Part // of the last of them, to recognize the transcript
	tools  []tally
	writes []string
	paths  []string
	pinned []string
	Seen   map[uint64]bool // calls

	// the text, and the state that it belongs to
	text string
	of   Mark
}

// tally counts the calls of a tool.
type tally struct {
	name          string
	calls, failed int
	first, last   string
}

// Grow adds the replies up to n. It starts over if the transcript is another.
func (l *Ledger) Grow(c *Rounds, n int) {
	if l.folded > n || l.folded > 0 && (l.last == nil || l.last != firstPart(&c.Msgs[c.At[l.folded-1]])) {
		*l = Ledger{}
	}
	if l.folded == 0 {
		l.Seen = map[uint64]bool{}
	}
	for ; l.folded < n; l.folded++ {
		reply := &c.Msgs[c.At[l.folded]]
		l.last = firstPart(reply)
		l.add(c, reply, l.folded)
	}
}

func firstPart(m *llm.Message) *llm.Part {
	if len(m.Parts) == 0 {
		return nil
	}
	return &m.Parts[0]
}

// add adds the calls of reply n.
func (l *Ledger) add(c *Rounds, reply *llm.Message, n int) {
	results := c.Results(n)
	for place, call := range reply.Calls() {
		r := llm.ToolResult{}
		outcome := "ok"
		if results != nil && place < len(results.Parts) {
			r = results.Parts[place].(llm.ToolResult)
		}
		key := id(&r, n, place)
		l.Seen[CallHash(call)] = true
		i := slices.IndexFunc(l.tools, func(t tally) bool { return t.name == call.Name })
		if i < 0 {
			i = len(l.tools)
			l.tools = append(l.tools, tally{name: call.Name, first: key})
		}
		t := &l.tools[i]
		tool := c.tools[call.Name]
		t.calls, t.last = t.calls+1, key
		if r.IsError {
			t.failed, outcome = t.failed+1, "failed"
		}
		if tool == nil || tool.Effect != pawl.EffectRead && tool.Effect != pawl.EffectPure {
			l.writes = append(l.writes, fmt.Sprintf("- %s %s %s: %s\n", key, call.Name, clipLine(string(call.Args), argsShown), outcome))
		}
		if tool != nil && tool.Pin {
			l.pinned = append(l.pinned, r.Text())
		}
		l.touch(call.Args)
	}
}

// touch remembers the path in the arguments of a call.
func (l *Ledger) touch(args json.RawMessage) {
	var in struct{ Path, File string }
	_ = json.Unmarshal(args, &in) // other arguments have no path
	if path := clipLine(cmp.Or(in.Path, in.File), argsShown); path != "" {
		l.paths = append(slices.DeleteFunc(l.paths, func(p string) bool { return p == path }), path)
		l.paths = l.paths[max(0, len(l.paths)-pathsShown):]
	}
}

// CallHash identifies a call by name and arguments.
func CallHash(c llm.ToolCall) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %s", c.Name, c.Args)
	return h.Sum64()
}

func clipLine(s string, n int) string { return strings.Join(strings.Fields(text.Clip(s, n)), " ") }

// Render returns the text in place of the folded replies of state p. pinned returns further text
// of the program; nil means none.
func (l *Ledger) Render(c *Rounds, p *Mark, pinned func([]llm.Message) string) string {
	key := Mark{Folded: p.Folded, Edited: p.Edited, Turn: p.Turn, Limit: p.Limit, NotesAt: p.NotesAt}
	l.Grow(c, p.Folded)
	if l.text != "" && l.of == key {
		return l.text
	}
	l.of = key
	room := float64(p.Limit)
	var b strings.Builder
	b.WriteString("[A record of earlier steps, which were put away to save space. It is no instruction.]\n")
	said(&b, "The user also said:", c, p, func(i int) bool { return !c.task(p, i) })
	b.WriteString("\nCalls, with the ids of the first and the last result:\n")
	for _, t := range l.tools {
		fmt.Fprintf(&b, "- %s: %d (%s to %s)", t.name, t.calls, t.first, t.last)
		if t.failed > 0 {
			fmt.Fprintf(&b, ", %d failed", t.failed)
		}
		b.WriteString("\n")
	}
	if n := len(l.writes); n > 0 {
		b.WriteString("\nDone with effect; do not do it again:\n")
		for left := int(room * shareWrites); n > 0 && left >= len(l.writes[n-1]); n-- {
			left -= len(l.writes[n-1])
		}
		if n > 0 {
			fmt.Fprintf(&b, "- %d earlier calls, which are not listed\n", n)
		}
		b.WriteString(strings.Join(l.writes[n:], ""))
	}
	if len(l.paths) > 0 {
		fmt.Fprintf(&b, "\nFiles: %s\n", strings.Join(l.paths, ", "))
	}
	l.stays(&b, c, p, pinned)
	if notes := c.Notes(p); notes != "" {
		quote(&b, "Notes of the earlier steps, by a model:", []string{notes})
	}
	if c.Reads {
		fmt.Fprintf(&b, "\nNothing is lost: %s with an id reads a result, and %s with a pattern and no id searches all results.\n",
			ReadTool, ReadTool)
	}
	l.text = b.String()
	return l.text
}

// said quotes those messages of the user before the record that keep chooses.
func said(b *strings.Builder, title string, c *Rounds, p *Mark, keep func(i int) bool) {
	var users []string
	for i, m := range c.Msgs[:c.At[p.Folded]] {
		if m.Role == llm.RoleUser && keep(i) {
			users = append(users, m.Text())
		}
	}
	quote(b, title, bounded(users, int(float64(p.Limit)*shareUsers)))
}

// stays writes what tools and the program pin.
func (l *Ledger) stays(b *strings.Builder, c *Rounds, p *Mark, pinned func([]llm.Message) string) {
	quote(b, "Results that stay in sight:", bounded(l.pinned, int(float64(p.Limit)*sharePinned)))
	if pinned != nil {
		if t := pinned(c.Msgs[:c.End(p.Edited)]); t != "" {
			b.WriteString("\n" + strings.TrimSpace(t) + "\n")
		}
	}
}

// Repeat returns what follows the provider's summary, before which it may drop everything.
func (l *Ledger) Repeat(c *Rounds, p *Mark, pinned func([]llm.Message) string) string {
	l.Grow(c, p.Folded)
	var b strings.Builder
	b.WriteString("[What stays in sight of the steps before the summary.]\n")
	said(&b, "The user said:", c, p, func(int) bool { return true })
	l.stays(&b, c, p, pinned)
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
