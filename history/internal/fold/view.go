package fold

// view.go: View, the messages that are sent in a state, and what stands in place of results.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/contents"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

// The sizes of what stands in place of a result, in bytes.
const (
	stubHead   = 80    // of a result that is put away
	errorHead  = 300   // of a failure that is put away, so that nothing is tried twice
	longArgs   = 2_000 // arguments above this size are shortened
	longString = 200   // of a string in shortened arguments
)

// warning is added to the results of a model that reads again what it has read.
const warning = "[The context window is full of results that were read before and put away since. Read less at a time, " +
	"search with a pattern, and write down what you need: otherwise this run ends.]"

// View is the part of a conversation that is sent.
type View struct {
	Messages []llm.Message
	Turn     int // llm.Request.Turn, in Messages
	Edited   int // llm.Request.Edited, in Messages
}

// Add adds msg, which stands at index i of req or in place of what stands there.
func (v *View) Add(req *llm.Request, i int, msg llm.Message) {
	if i <= req.Turn {
		v.Turn = len(v.Messages)
	}
	v.Messages = append(v.Messages, msg)
	if i < req.Edited {
		v.Edited = len(v.Messages)
	}
}

// Head is what is sent in place of the folded rounds.
type Head struct {
	Record string // a message of the user in place of them; empty means none
	After  string // a message of the user behind the round AfterRound; empty means none

	AfterRound int
}

// View returns the messages that are sent in state m. Results up to stub bytes are never put away.
func (r *Rounds) View(m *Mark, stub int, head Head) View {
	v := View{Messages: make([]llm.Message, 0, len(r.Messages)-r.Index(m.Folded)+r.head+4)}
	from := 0
	afterIndex := -1
	if m.Folded > 0 {
		from = r.Index(m.Folded)
		r.addRecord(&v, m, head.Record)
		if head.After != "" {
			afterIndex = r.lastOfRound(head.AfterRound)
		}
	}

	// Two things change the beginning of requests: the last edit, and result_read, which may be
	// offered late. The replies before them were written after another beginning.
	changed := max(m.Edited, m.Shown-1)
	n := m.Folded // the number of the next reply
	for i := from; i < len(r.Messages); i++ {
		msg := r.Messages[i]
		switch msg.Role {
		case llm.RoleAssistant:
			if n == changed {
				v.Edited = max(v.Edited, len(v.Messages))
			}
			msg = r.replyIn(m, msg, n)
			n++
		case llm.RoleTool:
			msg = r.resultsIn(m, msg, n-1, stub)
		}

		v.Add(r.Request, i, msg)
		if i == afterIndex {
			v.Add(r.Request, i, llm.User(head.After).WithLabel(nil))
		}
	}

	// The request of the reply to come makes the change.
	if changed == len(r.Replies) && m.Stubbed+m.Shown > 0 {
		v.Edited = len(v.Messages)
	}
	return v
}

// addRecord adds what is sent of the messages before reply m.Folded: instructions, the messages
// that began the turn, and the record, if it is not empty.
func (r *Rounds) addRecord(v *View, m *Mark, record string) {
	end := r.Index(m.Folded)
	for i := range end {
		if r.beganTurn(m, i) || Instructs(r.Messages[i].Role) {
			v.Add(r.Request, i, r.Messages[i])
		}
	}
	if record != "" {
		v.Add(r.Request, end-1, llm.User(record).WithLabel(nil)) // it repeats what tools returned
	}
}

// lastOfRound returns the index of the results of round n, or else of its reply.
func (r *Rounds) lastOfRound(n int) int {
	if r.Results(n) != nil {
		return r.Replies[n] + 1
	}
	return r.Replies[n]
}

// replyIn returns reply n as state m sends it.
func (r *Rounds) replyIn(m *Mark, reply llm.Message, n int) llm.Message {
	reply = unmarked(reply)
	if n < m.Stubbed {
		return shortened(reply)
	}
	return reply
}

// resultsIn returns the results of round n as state m sends them.
func (r *Rounds) resultsIn(m *Mark, results llm.Message, n, stub int) llm.Message {
	if n < m.Stubbed {
		return r.stubs(results, n, stub)
	}
	results = r.withoutRepeats(results, n, m)
	limit, warn := r.CutOf(n, m)
	if limit > 0 || warn {
		return r.cut(results, n, limit, warn)
	}
	return results
}

// Cost returns the bytes of round n in the request of state m, and after its results and all before
// them were put away.
func (r *Rounds) Cost(n int, m *Mark, stub int) (whole, short int) {
	reply := unmarked(*r.Reply(n))
	whole = Weigh(reply.Parts)
	short = Weigh(shortened(reply).Parts)

	results := r.Results(n)
	if results == nil {
		return whole, short
	}
	short += Weigh(r.stubs(*results, n, stub).Parts)

	// Results that were cut are weighed as they were sent. A content that a later result repeats
	// comes back with that one, so that only the last one takes it along.
	sent := r.lines(*results, n, r.repeatsIn(m).next)
	if limit, warn := r.CutOf(n, m); limit > 0 {
		sent = r.cut(sent, n, limit, warn)
	}
	whole += Weigh(sent.Parts)
	return whole, short
}

// StubBytes returns the bytes of the rounds that are shortened in state m.
func (r *Rounds) StubBytes(m *Mark, stub int) (sum int) {
	for n := m.Folded; n < m.Stubbed; n++ {
		_, short := r.Cost(n, m, stub)
		sum += short
	}
	return sum
}

// pinned reports whether the result of round n is from a tool whose results stay.
func (r *Rounds) pinned(result *llm.ToolResult, n int) bool {
	for _, p := range r.Reply(n).Parts {
		if call, ok := p.(llm.ToolCall); ok && call.ID == result.CallID {
			t := r.tools[call.Name]
			return t != nil && t.Pin
		}
	}
	return false
}

// stubs returns the results of round n with a line in place of each that is longer than most bytes.
func (r *Rounds) stubs(results llm.Message, n, most int) llm.Message {
	out := llm.Message{Role: results.Role, Parts: slices.Clone(results.Parts)}
	for i, p := range results.Parts {
		result := p.(llm.ToolResult)
		if Weigh(result.Parts) <= most || r.pinned(&result, n) {
			continue
		}
		result.Parts = []llm.Part{llm.Text{Text: r.stub(&result, n, i)}}
		result.Data = nil
		out.Parts[i] = result
	}
	return out
}

// stub returns the line in place of result i of round n.
func (r *Rounds) stub(result *llm.ToolResult, n, i int) string {
	content := result.Text()
	head := stubHead
	if result.IsError {
		head = errorHead
	}

	media := ""
	for _, p := range result.Parts {
		if medium, ok := p.(llm.Media); ok {
			media += " and " + cmp.Or(medium.MIME, "a file")
		}
	}

	where := ""
	if r.HasReader {
		where = fmt.Sprintf(" %s {\"id\":%q}", contents.ReadTool, r.step(n).ResultID(result, i))
	}
	return fmt.Sprintf("[%d bytes%s put away: %s …%s]", len(content), media, text.ClipLine(content, head), where)
}

// cut returns the results of round n with at most limit bytes together, the longest cut first, and
// with the warning if warn is set. A limit of 0 cuts nothing.
func (r *Rounds) cut(results llm.Message, n, limit int, warn bool) llm.Message {
	out := llm.Message{Role: results.Role, Parts: slices.Clone(results.Parts)}
	most := mostOfEach(results.Parts, limit)
	for i, p := range results.Parts {
		result := p.(llm.ToolResult)
		content := result.Text()
		if most > 0 && len(content) > most && !r.pinned(&result, n) {
			short := llm.Text{Text: r.shortContent(&result, content, most, n, i)}
			result.Parts = append([]llm.Part{short}, slices.DeleteFunc(slices.Clone(result.Parts), isText)...)
		}
		// The last result is the end of the request, right before the reply.
		if warn && i == len(results.Parts)-1 {
			result.Parts = append(slices.Clip(result.Parts), llm.Text{Text: "\n" + warning})
		}
		out.Parts[i] = result
	}
	return out
}

// mostOfEach returns the bytes that each of parts may have, so that all have at most limit bytes
// together. Parts that are shorter leave their share to the others.
func mostOfEach(parts []llm.Part, limit int) int {
	most := limit
	for most > 0 {
		all := 0
		for _, p := range parts {
			all += min(Weigh([]llm.Part{p}), most)
		}
		if all <= limit {
			break
		}
		most -= 1 + most/16 // a share of it, so that a large limit takes few steps
	}
	return most
}

// shortContent returns the head and the tail of the content of result i of round n, with about most
// bytes together.
func (r *Rounds) shortContent(result *llm.ToolResult, content string, most, n, i int) string {
	head := text.RuneBefore(content, most*2/3)
	tail := text.RuneAfter(content, len(content)-most/4)
	how := "ask for less at a time"
	if r.HasReader {
		how = fmt.Sprintf("read the rest with %s {\"id\":%q,\"offset\":%d}", contents.ReadTool, r.step(n).ResultID(result, i), head)
	}
	return fmt.Sprintf("%s\n[… %d bytes left out; %s …]\n%s", content[:head], tail-head, how, content[tail:])
}

func isText(p llm.Part) bool { _, ok := p.(llm.Text); return ok }

// shortened returns a reply in whose long arguments each long value is a short string. Signed
// arguments stay: the signature belongs to them.
func shortened(reply llm.Message) llm.Message {
	for i, p := range reply.Parts {
		c, ok := p.(llm.ToolCall)
		if !ok || len(c.Args) <= longArgs || c.Opaque != nil {
			continue
		}

		var args map[string]json.RawMessage
		if json.Unmarshal(c.Args, &args) != nil {
			continue
		}
		for name, v := range args {
			if len(v) > longString {
				args[name], _ = json.Marshal(text.Clip(strings.Trim(string(v), `"`), longString))
			}
		}
		c.Args, _ = json.Marshal(args) // it was read from JSON

		// The transcript shares the parts.
		reply.Parts = slices.Clone(reply.Parts)
		reply.Parts[i] = c
	}
	return reply
}
