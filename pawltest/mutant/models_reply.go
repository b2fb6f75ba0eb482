package mutant

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// replyFaults lose or change parts of a reply.
func replyFaults() []Mutant[llm.Model] {
	return []Mutant[llm.Model]{
		ofReply("loses a fragment", "reply/long text", func(_ *llm.Request, next yield) yield {
			n := 0
			return func(d llm.Delta, err error) bool {
				n++
				return n == 3 && d.Finish == "" || next(d, err)
			}
		}),
		ofReply("repeats a fragment", "reply/long text", func(_ *llm.Request, next yield) yield {
			n := 0
			return func(d llm.Delta, err error) bool {
				n++
				return (n != 3 || d.Part == nil || next(d, err)) && next(d, err)
			}
		}),
		ofReply("loses the last fragment of a text", "reply/text", func(_ *llm.Request, next yield) yield {
			return func(d llm.Delta, err error) bool {
				if t, ok := d.Part.(llm.Text); ok && d.Done {
					t.Text = ""
					d.Part = t
				}
				return next(d, err)
			}
		}),
		ofDelta("trims fragments", "reply/long text", func(d *llm.Delta) {
			if t, ok := d.Part.(llm.Text); ok {
				t.Text = strings.TrimSpace(t.Text)
				d.Part = t
			}
		}),
		ofDelta("loses large fragments", "reply/large fragment", func(d *llm.Delta) {
			if t, ok := d.Part.(llm.Text); ok && len(t.Text) > 64<<10 {
				t.Text = t.Text[:64<<10]
				d.Part = t
			}
		}),
		ofDelta("puts all parts at one place", "reply/text and calls", func(d *llm.Delta) { d.Index = 0 }),
		ofDelta("skips a place", "reply/text", func(d *llm.Delta) {
			if d.Part != nil {
				d.Index++
			}
		}),
		ofReply("drops the text before calls", "reply/text and calls", func(_ *llm.Request, next yield) yield {
			return func(d llm.Delta, err error) bool {
				if d.Part == nil {
					return next(d, err)
				}
				d.Index--
				return d.Index < 0 || next(d, err)
			}
		}),
		ofDelta("returns reasoning as text", "reply/reasoning, then text", func(d *llm.Delta) {
			if r, ok := d.Part.(llm.Reasoning); ok {
				d.Part = llm.Text{Text: r.Text}
			}
		}),
		ofDelta("drops the text of reasoning", "reply/reasoning, then calls", func(d *llm.Delta) {
			if _, ok := d.Part.(llm.Reasoning); ok {
				d.Part = llm.Reasoning{}
			}
		}),
	}
}

// callFaults lose or change calls of a reply.
func callFaults() []Mutant[llm.Model] {
	return []Mutant[llm.Model]{
		ofReply("returns the first of parallel calls only", "reply/parallel calls", func(_ *llm.Request, next yield) yield {
			return func(d llm.Delta, err error) bool { return d.Index > 0 && d.Finish == "" || next(d, err) }
		}),
		ofDelta("gives all calls one id", "reply/parallel calls", func(d *llm.Delta) {
			if c, ok := d.Part.(llm.ToolCall); ok && c.Name != "" {
				c.ID = "call"
				d.Part = c
			}
		}),
		ofDelta("changes the names of calls", "reply/call", func(d *llm.Delta) {
			if c, ok := d.Part.(llm.ToolCall); ok && c.Name != "" {
				c.Name = strings.ToUpper(c.Name)
				d.Part = c
			}
		}),
		ofReply("cuts arguments", "reply/long arguments", func(_ *llm.Request, next yield) yield {
			size := 0
			return func(d llm.Delta, err error) bool {
				if c, ok := d.Part.(llm.ToolCall); ok {
					c.Args = c.Args[:min(len(c.Args), max(0, 1000-size))]
					size += len(c.Args)
					d.Part = c
				}
				return next(d, err)
			}
		}),
		ofReply("completes broken arguments", "reply/broken arguments", func(_ *llm.Request, next yield) yield {
			return func(d llm.Delta, err error) bool {
				if c, ok := d.Part.(llm.ToolCall); ok && d.Done {
					c.Args = json.RawMessage(string(c.Args) + "]}")
					d.Part = c
				}
				return next(d, err)
			}
		}),
		ofDelta("changes the ends of lines in replies", "reply/odd text", func(d *llm.Delta) {
			if text, ok := d.Part.(llm.Text); ok {
				text.Text = strings.ReplaceAll(text.Text, "\r", "")
				d.Part = text
			}
		}),
		ofReply("rounds large numbers of arguments", "reply/exact numbers", rewritten(func(args []byte) []byte {
			return bytes.ReplaceAll(args, []byte("9007199254740993"), []byte("9007199254740992"))
		})),
		ofReply("writes arguments anew in replies", "reply/escaped arguments", rewritten(compact)),
	}
}

// endFaults lose or change media, the end of a reply, its usage and its names.
func endFaults() []Mutant[llm.Model] {
	return []Mutant[llm.Model]{
		ofDelta("drops media", "reply/media", func(d *llm.Delta) {
			if _, ok := d.Part.(llm.Media); ok {
				d.Part = llm.Text{}
			}
		}),
		ofDelta("takes a cut reply for a complete one", "reply/cut text", func(d *llm.Delta) {
			if d.Finish == llm.FinishReasonLength {
				d.Finish = llm.FinishReasonStop
			}
		}),
		ofDelta("takes a cut call for a complete one", "reply/cut call", func(d *llm.Delta) {
			if d.Finish == llm.FinishReasonLength {
				d.Finish = llm.FinishReasonToolCalls
			}
		}),
		ofDelta("takes a filtered reply for a complete one", "reply/filtered", func(d *llm.Delta) {
			if d.Finish == llm.FinishReasonContentFilter {
				d.Finish = llm.FinishReasonStop
			}
		}),
		ofDelta("drops the usage", "reply/usage", func(d *llm.Delta) { d.Usage = nil }),
		ofDelta("counts the input without what was cached", "reply/usage details", func(d *llm.Delta) {
			if d.Usage != nil {
				u := *d.Usage
				u.Input -= u.CacheRead
				d.Usage = &u
			}
		}),
		ofDelta("drops the tokens of reasoning and of the cache", "reply/usage details", func(d *llm.Delta) {
			if d.Usage != nil {
				d.Usage = &llm.Usage{Input: d.Usage.Input, Output: d.Usage.Output}
			}
		}),
		ofDelta("drops the model's name of a reply", "reply/text", func(d *llm.Delta) { d.Model = "" }),
		ofDelta("drops the id of a reply", "reply/text", func(d *llm.Delta) { d.ID = "" }),
		ofReply("returns another usage when whole", "reply/usage", func(req *llm.Request, next yield) yield {
			return func(d llm.Delta, err error) bool {
				if req.Whole && d.Usage != nil {
					d.Usage = &llm.Usage{Input: 1}
				}
				return next(d, err)
			}
		}),
	}
}

// opaqueFaults lose data that only the provider reads, in the reply or on its way back.
func opaqueFaults() []Mutant[llm.Model] {
	return []Mutant[llm.Model]{
		ofDelta("drops the signature of reasoning from replies", "opaque/reasoning", func(d *llm.Delta) {
			if r, ok := d.Part.(llm.Reasoning); ok {
				r.Opaque = nil
				d.Part = r
			}
		}),
		ofRequest("sends reasoning back without its signature", "opaque/reasoning", eachOf(func(r llm.Reasoning) llm.Part {
			r.Opaque = nil
			return r
		})),
		ofRequest("sends no reasoning back", "opaque/reasoning", eachOf(func(llm.Reasoning) llm.Part { return nil })),
		ofRequest("drops reasoning that has no text", "opaque/hidden reasoning", eachOf(func(r llm.Reasoning) llm.Part {
			if r.Text == "" {
				return nil
			}
			return r
		})),
		ofRequest("sends the first reasoning of a reply only", "opaque/more reasoning", func(r *llm.Request) {
			seen := false
			eachOf(func(p llm.Reasoning) llm.Part {
				if seen {
					return nil
				}
				seen = true
				return p
			})(r)
		}),
		ofRequest("writes signatures anew", "opaque/reasoning", eachOf(func(r llm.Reasoning) llm.Part {
			if r.Opaque != nil {
				r.Opaque.Data = json.RawMessage(strings.ReplaceAll(string(r.Opaque.Data), "+", " "))
			}
			return r
		})),
		ofRequest("drops the data of texts", "opaque/text", eachOf(func(t llm.Text) llm.Part {
			t.Opaque = nil
			return t
		})),
		ofRequest("drops the data of calls", "opaque/call", eachOf(func(c llm.ToolCall) llm.Part {
			c.Opaque = nil
			return c
		})),
		ofDelta("drops the data of calls from replies", "opaque/call", func(d *llm.Delta) {
			if c, ok := d.Part.(llm.ToolCall); ok {
				c.Opaque = nil
				d.Part = c
			}
		}),
	}
}

// rewritten returns the change of a reply whose arguments are changed as a whole.
func rewritten(change func(args []byte) []byte) func(*llm.Request, yield) yield {
	return func(_ *llm.Request, next yield) yield {
		var written []byte
		return func(d llm.Delta, err error) bool {
			if c, ok := d.Part.(llm.ToolCall); ok {
				written = append(written, c.Args...)
				c.Args = nil
				if d.Done {
					c.Args = change(written)
				}
				d.Part = c
			}
			return next(d, err)
		}
	}
}
