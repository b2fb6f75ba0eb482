package script

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"
	"unicode/utf8"

	"github.com/pawl-go/pawl/llm"
)

// play yields turn as the reply to req. number names the turn in ids.
func play(ctx context.Context, turn Turn, req *llm.Request, number string, yield func(llm.Delta, error) bool) {
	held := turn.Hold == nil
	pause := turn.Delay
	if turn.Deltas == nil && len(turn.Parts) == 0 && turn.Err != nil {
		wait(ctx, pause) // nothing else will
	}

	for d := range turn.deltas(req, number) {
		wait(ctx, pause)
		pause = turn.Pace
		if ctx.Err() != nil {
			yield(llm.Delta{}, context.Cause(ctx))
			return
		}
		if !yield(d, nil) {
			return
		}
		// A reply that is held has begun, so that a test can act in the middle of it.
		if !held {
			held = true
			select {
			case <-turn.Hold:
			case <-ctx.Done():
			}
		}
	}

	switch {
	case ctx.Err() != nil && turn.Err != nil:
		yield(llm.Delta{}, context.Cause(ctx))
	case turn.Err != nil && yield(llm.Delta{Requests: turn.Requests + 1}, nil):
		yield(llm.Delta{}, turn.Err)
	}
}

// wait takes its time, unless ctx ends.
func wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// deltas writes a turn as a model would send it.
func (t Turn) deltas(req *llm.Request, number string) iter.Seq[llm.Delta] {
	return func(yield func(llm.Delta) bool) {
		if t.Deltas != nil {
			for _, d := range t.Deltas {
				if !yield(d) {
					return
				}
			}
			return
		}

		calls := 0
		for i, p := range t.Parts {
			if c, ok := p.(llm.ToolCall); ok {
				if c.ID == "" {
					c.ID = fmt.Sprintf("call_%s_%d", number, calls)
				}
				p = c
				calls++
			}
			for d := range fragments(i, p, req.Whole, t.Size) {
				if !yield(d) {
					return
				}
			}
		}

		// A reply that fails has no end: play yields the error in its place.
		if t.Err == nil {
			yield(t.end(req, number, calls))
		}
	}
}

// end returns the last delta of a reply with so many calls.
func (t Turn) end(req *llm.Request, number string, calls int) llm.Delta {
	d := llm.Delta{
		Finish:   t.Finish,
		Usage:    t.Usage,
		Model:    cmp.Or(t.Model, "script"),
		ID:       cmp.Or(t.ID, "script_"+number),
		Requests: t.Requests,
	}
	if d.Finish == "" {
		d.Finish = llm.FinishReasonStop
		if calls > 0 {
			d.Finish = llm.FinishReasonToolCalls
		}
	}
	// An estimate, so that limits of tokens act in tests as they do with a provider.
	if d.Usage == nil {
		d.Usage = &llm.Usage{Input: tokens(req.Messages...), Output: tokens(llm.Message{Parts: t.Parts})}
	}
	return d
}

// fragments cuts a part at fixed places: at the first rune that begins at or after every size
// bytes. 0 means eight bytes, or a sixty-fourth of a longer part. A call's name comes before its
// arguments, as with real providers.
func fragments(index int, part llm.Part, whole bool, size int) iter.Seq[llm.Delta] {
	return func(yield func(llm.Delta) bool) {
		if whole {
			yield(llm.Delta{Index: index, Part: part, Done: true})
			return
		}

		// What is opaque, such as a signature, covers the whole text, so the last piece has it.
		prose := func(text string, opaque *llm.Opaque, part func(string, *llm.Opaque) llm.Part) {
			for s, last := range pieces(text, size) {
				end := opaque
				if !last {
					end = nil
				}
				if !yield(llm.Delta{Index: index, Part: part(s, end), Done: last}) {
					return
				}
			}
		}

		switch p := part.(type) {
		case llm.Text:
			prose(p.Text, p.Opaque, func(s string, o *llm.Opaque) llm.Part { return llm.Text{Text: s, Opaque: o} })
		case llm.Reasoning:
			prose(p.Text, p.Opaque, func(s string, o *llm.Opaque) llm.Part { return llm.Reasoning{Text: s, Opaque: o} })
		case llm.ToolCall:
			if !yield(llm.Delta{Index: index, Part: llm.ToolCall{ID: p.ID, Name: p.Name, Opaque: p.Opaque}}) {
				return
			}
			for s, last := range pieces(string(p.Args), size) {
				if !yield(llm.Delta{Index: index, Part: llm.ToolCall{Args: json.RawMessage(s)}, Done: last}) {
					return
				}
			}
		default:
			yield(llm.Delta{Index: index, Part: part, Done: true})
		}
	}
}

// pieces cuts s between runes; the last piece comes with true. An empty s is one empty piece.
func pieces(s string, size int) iter.Seq2[string, bool] {
	if size <= 0 {
		size = max(8, len(s)/64)
	}
	return func(yield func(string, bool) bool) {
		for len(s) > size {
			n := size
			for n < len(s) && !utf8.RuneStart(s[n]) {
				n++
			}
			// The rest is a single character, which the last piece has.
			if n == len(s) {
				break
			}
			if !yield(s[:n], false) {
				return
			}
			s = s[n:]
		}
		yield(s, true)
	}
}

// tokens counts what messages say, four bytes a token.
func tokens(messages ...llm.Message) int {
	n := 0
	var count func([]llm.Part)
	count = func(parts []llm.Part) {
		for _, p := range parts {
			switch p := p.(type) {
			case llm.Text:
				n += len(p.Text)
			case llm.Reasoning:
				n += len(p.Text)
			case llm.Media:
				n += len(p.URL) + len(p.Data)
			case llm.ToolCall:
				n += len(p.Name) + len(p.Args)
			case llm.ToolResult:
				count(p.Parts)
			}
		}
	}
	for _, m := range messages {
		count(m.Parts)
	}
	return (n + 3) / 4
}
