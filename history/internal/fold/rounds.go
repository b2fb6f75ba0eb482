package fold

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

// The sizes of what Window sends in place of a result, in bytes.
const (
	stubHead    = 80    // of a result that is put away
	errorHead   = 300   // of a failure that is put away, so that nothing is tried twice
	longArgs    = 2_000 // arguments above this size are shortened
	longString  = 200   // of a string in shortened arguments
	perPart     = 8     // what a provider adds around a part
	mediaFactor = 4     // bytes for each estimated token of a medium
)

// ReadTool is the tool by which the model reads a result that was put away; see package artifact.
const ReadTool = "result_read"

// warning is added to the results of a model that reads again what it has read.
const warning = "[The context window is full of results that were read before and put away since. Read less at a time, " +
	"search with a pattern, and write down what you need: otherwise this run ends.]"

// Rounds are the messages of a request by replies. A round is a reply and what follows it.
type Rounds struct {
	Req   *llm.Request
	Msgs  []llm.Message
	head  int   // how many are instructions
	At    []int // index of each reply
	tools map[string]*pawl.Tool
	Reads bool // result_read is offered
}

func RoundsOf(req *llm.Request) *Rounds {
	c := &Rounds{Req: req, Msgs: req.Messages, tools: make(map[string]*pawl.Tool, len(req.Tools))}
	for c.head < len(c.Msgs) && Instructs(c.Msgs[c.head].Role) {
		c.head++
	}
	for i := range c.Msgs {
		if c.Msgs[i].Role == llm.RoleAssistant {
			c.At = append(c.At, i)
		}
	}
	for _, t := range req.Tools {
		c.tools[t.Name], _ = t.Source.(*pawl.Tool)
		c.Reads = c.Reads || t.Name == ReadTool
	}
	return c
}

// Start returns the index of the first message after reply n-1.
func (c *Rounds) Start(n int) int {
	if n == 0 {
		return c.head
	}
	return c.At[n-1] + 1
}

// End returns the index of reply n, or the number of messages if there is none yet.
func (c *Rounds) End(n int) int {
	if n < len(c.At) {
		return c.At[n]
	}
	return len(c.Msgs)
}

// Turn returns the number of the first reply of the current turn. A message that is sent to a run
// between two steps begins none.
func (c *Rounds) Turn() int {
	n := len(c.At)
	for n > 0 && (c.At[n-1] > c.Req.Turn || c.Msgs[c.At[n-1]].HasCalls()) {
		n--
	}
	return n
}

// task reports whether the folded message i began the turn.
func (c *Rounds) task(p *Mark, i int) bool {
	return p.Turn <= p.Folded && c.Start(p.Turn) <= i && i < c.At[p.Turn] && c.Msgs[i].Role == llm.RoleUser
}

// Results returns the results of round n, or nil.
func (c *Rounds) Results(n int) *llm.Message {
	if i := c.At[n] + 1; i < len(c.Msgs) && c.Msgs[i].Role == llm.RoleTool {
		return &c.Msgs[i]
	}
	return nil
}

// Again reports whether one of the replies since from has a call of reply n.
func (c *Rounds) Again(from, n int) bool {
	calls := c.Msgs[c.At[n]].Calls()
	for _, at := range c.At[from:n] {
		for _, old := range c.Msgs[at].Calls() {
			for _, call := range calls {
				if call.Name == old.Name && bytes.Equal(call.Args, old.Args) {
					return true
				}
			}
		}
	}
	return false
}

var cutsOrWarns = regexp.MustCompile(`"[ch]":`)

// CutOf returns the bytes that the results before reply n may have, and whether a warning follows
// them. now is the mark of the reply to come.
func (c *Rounds) CutOf(n int, now *Mark) (limit int, warn bool) {
	m := now
	if n < len(c.At) {
		parts := c.Msgs[c.At[n]].Parts
		i := slices.IndexFunc(parts, isMark)
		if i < 0 || !cutsOrWarns.Match(parts[i].(llm.Reasoning).Opaque.Data) {
			return 0, false // most marks need not be decoded
		}
		is, _, fits := MarkOf(&c.Msgs[c.At[n]], n)
		m = &is
		if !fits {
			return 0, false
		}
	}
	return m.Cut, m.Thrash == WarnAt && m.Edited == n
}

// View returns the messages that state p stands for. ledger is the text in place of the folded
// replies, and after, if not empty, follows the first round behind them.
func (c *Rounds) View(p *Mark, stub int, ledger, after string) View {
	v := View{Messages: make([]llm.Message, 0, len(c.Msgs)-c.End(p.Folded)+c.head+4)}
	add := func(i int, m llm.Message) {
		if i <= c.Req.Turn {
			v.Turn = len(v.Messages)
		}
		v.Messages = append(v.Messages, m)
		if i < c.Req.Edited {
			v.Edited = len(v.Messages)
		}
	}
	from := 0
	place := -1
	if p.Folded > 0 {
		from = c.At[p.Folded]
		if after != "" {
			place = from
			if c.Results(p.Folded) != nil {
				place++
			}
		}
		for i := range from {
			if c.task(p, i) || Instructs(c.Msgs[i].Role) {
				add(i, c.Msgs[i])
			}
		}
		add(from-1, llm.User(ledger))
	}
	n := p.Folded
	edited := max(p.Edited, p.Shown-1) // the next reply, and the one at the last edit
	for i := from; i < len(c.Msgs); i++ {
		m := c.Msgs[i]
		switch m.Role {
		case llm.RoleAssistant:
			if n == edited {
				v.Edited = max(v.Edited, len(v.Messages))
			}
			m = Unmarked(m)
			if n < p.Stubbed {
				m = Shortened(m)
			}
			n++
		case llm.RoleTool:
			limit, warn := c.CutOf(n, p)
			if n-1 < p.Stubbed {
				m = c.Stubs(m, n-1, stub)
			} else if limit > 0 || warn {
				m = c.Cut(m, n-1, limit, warn)
			}
		}
		add(i, m)
		if i == place {
			add(i, llm.User(after))
		}
	}
	if edited == len(c.At) && p.Stubbed+p.Shown > 0 {
		v.Edited = len(v.Messages)
	}
	return v
}

// id returns the id by which result_read finds result i of round n.
func id(r *llm.ToolResult, n, i int) string {
	return cmp.Or(string(r.Key), fmt.Sprintf("%d/%d", n+1, i))
}

// pinned reports whether the result of round n is from a tool whose results stay.
func (c *Rounds) pinned(r *llm.ToolResult, n int) bool {
	for _, p := range c.Msgs[c.At[n]].Parts {
		if call, ok := p.(llm.ToolCall); ok && call.ID == r.CallID {
			t := c.tools[call.Name]
			return t != nil && t.Pin
		}
	}
	return false
}

// Stubs returns the results m of round n with a line in place of each that is longer than most
// bytes.
func (c *Rounds) Stubs(m llm.Message, n, most int) llm.Message {
	out := llm.Message{Role: m.Role, Parts: slices.Clone(m.Parts)}
	for i, p := range m.Parts {
		r := p.(llm.ToolResult)
		if size := Weigh(r.Parts); size <= most || c.pinned(&r, n) {
			continue
		}
		content := r.Text()
		media := ""
		head := stubHead
		where := ""
		for _, p := range r.Parts {
			if m, ok := p.(llm.Media); ok {
				media += " and " + cmp.Or(m.MIME, "a file")
			}
		}
		if r.IsError {
			head = errorHead
		}
		if c.Reads {
			where = fmt.Sprintf(" %s {\"id\":%q}", ReadTool, id(&r, n, i))
		}
		r.Parts = []llm.Part{llm.Text{Text: fmt.Sprintf("[%d bytes%s put away: %s …%s]", len(content), media,
			strings.Join(strings.Fields(text.Clip(content, head)), " "), where)}}
		r.Data = nil
		out.Parts[i] = r
	}
	return out
}

// Cut returns the results m of round n with at most limit bytes together. The longest are cut
// first.
func (c *Rounds) Cut(m llm.Message, n, limit int, warn bool) llm.Message {
	out := llm.Message{Role: m.Role, Parts: slices.Clone(m.Parts)}
	most := limit // bytes of one result
	for all := limit + 1; all > limit && most > 0; {
		all = 0
		for _, p := range m.Parts {
			all += min(Weigh([]llm.Part{p}), most)
		}
		if all > limit {
			most -= 1 + most/16
		}
	}
	for i, p := range m.Parts {
		r := p.(llm.ToolResult)
		if content := r.Text(); most > 0 && len(content) > most && !c.pinned(&r, n) {
			head := text.RuneBefore(content, most*2/3)
			tail := text.RuneAfter(content, len(content)-most/4)
			how := "ask for less at a time"
			if c.Reads {
				how = fmt.Sprintf("read the rest with %s {\"id\":%q,\"offset\":%d}", ReadTool, id(&r, n, i), head)
			}
			short := fmt.Sprintf("%s\n[… %d bytes left out; %s …]\n%s", content[:head], tail-head, how, content[tail:])
			r.Parts = append([]llm.Part{llm.Text{Text: short}}, slices.DeleteFunc(slices.Clone(r.Parts), isText)...)
		}
		if warn && i == len(m.Parts)-1 {
			r.Parts = append(slices.Clip(r.Parts), llm.Text{Text: "\n" + warning})
		}
		out.Parts[i] = r
	}
	return out
}

func isText(p llm.Part) bool { _, ok := p.(llm.Text); return ok }

// Shortened returns a reply in whose long arguments each long value is a short string. Signed
// arguments stay: the signature belongs to them.
func Shortened(m llm.Message) llm.Message {
	for i, p := range m.Parts {
		c, ok := p.(llm.ToolCall)
		var args map[string]json.RawMessage
		if !ok || len(c.Args) <= longArgs || c.Opaque != nil || json.Unmarshal(c.Args, &args) != nil {
			continue
		}
		for name, v := range args {
			if len(v) > longString {
				args[name], _ = json.Marshal(text.Clip(strings.Trim(string(v), `"`), longString))
			}
		}
		c.Args, _ = json.Marshal(args) // it was read from JSON
		m.Parts = slices.Clone(m.Parts)
		m.Parts[i] = c
	}
	return m
}

// Weigh returns the size of parts in bytes: media count as the text of as many tokens.
func Weigh(parts []llm.Part) int {
	bytes, media := size(parts)
	return bytes + media*mediaFactor + len(parts)*perPart
}

// Weight returns the size of what is sent: messages and tools.
func Weight(msgs []llm.Message, tools []*llm.ToolSpec) (n int) {
	for i := range msgs {
		n += Weigh(msgs[i].Parts)
	}
	for _, t := range tools {
		n += len(t.Name) + len(t.Description) + len(t.Input) + perPart
	}
	return n
}
