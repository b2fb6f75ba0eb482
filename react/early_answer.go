package react

import (
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// earlyAnswer emits an answer while it is written, once the reply has opened as one.
type earlyAnswer struct {
	format Format
	out    *reply

	own     strings.Builder // what the model thought outside of its text
	text    strings.Builder // until the reply has opened
	scans   int
	open    opening
	pending string          // of the answer, not certain yet
	space   strings.Builder // of the answer, held until something follows it
	emitted strings.Builder
	opened  bool
	ended   bool
}

// earlyAnswer returns the emitter of an answer to req. Nil means that an answer is not certain
// before the end.
func (m *Model) earlyAnswer(req *llm.Request, out *reply) *earlyAnswer {
	forced := req.Choice.Mode == llm.ToolRequired || req.Choice.Mode == llm.ToolNamed
	switch {
	case req.Whole, m.opts.FinalViaInference, m.opts.Decision != nil:
		return nil
	case m.opts.Format == Text, m.opts.Format == Plain: // their answers have no certain beginning
		return nil
	case forced && len(req.Tools) > 0: // an answer is a fault
		return nil
	}
	return &earlyAnswer{format: m.opts.Format, out: out}
}

// part returns add; nil means that nothing is emitted early.
func (t *earlyAnswer) part() func(llm.Part) error {
	if t == nil {
		return nil
	}
	return t.add
}

// started reports whether text was emitted, so that the reply is an answer.
func (t *earlyAnswer) started() bool { return t != nil && t.emitted.Len() > 0 }

// finish emits the rest of the answer, given the decision that was read from the whole reply.
func (t *earlyAnswer) finish(resp *llm.Response, d Decision) error {
	if rest, ok := strings.CutPrefix(d.Answer, t.emitted.String()); ok && rest != "" {
		if err := t.out.text(rest); err != nil {
			return err
		}
	}
	return t.out.finish(resp)
}

// maxScans bounds how often the beginning of a reply is read again.
const maxScans = 64

// add reads the next fragment of the reply.
func (t *earlyAnswer) add(p llm.Part) error {
	switch p := p.(type) {
	case llm.Reasoning:
		t.own.WriteString(p.Text)
	case llm.Text:
		if t.ended || p.Text == "" {
			return nil
		}
		if t.opened {
			t.pending += p.Text
			return t.emit()
		}
		return t.tryOpen(p.Text)
	}
	return nil
}

// tryOpen reads the beginning of the reply again, where the last fragment may have ended it.
func (t *earlyAnswer) tryOpen(fragment string) error {
	from := max(0, t.text.Len()-len(`answer" : `))
	t.text.WriteString(fragment)
	text := t.text.String()
	// Each reading costs the length of the text. It is worth it only where the last fragment
	// completed the label of an answer.
	if near := strings.ToLower(text[from:]); !strings.Contains(near, `answer"`) && !strings.Contains(near, "answer>") {
		return nil
	}

	// A text full of such labels would cost a quadratic time.
	t.scans++
	if t.scans > maxScans {
		t.ended = true
		return nil
	}
	thought, rest := cutThinking(text)
	o, ok := open(rest, t.format)
	if !ok {
		return nil
	}
	t.open = o
	t.opened = true
	t.pending = rest[o.body:]
	if t.own.Len() > 0 {
		thought = strings.TrimSpace(t.own.String() + "\n" + thought)
	}
	t.own.Reset()
	t.own.WriteString(thought)
	return t.emit()
}

// emit emits the certain part of the answer.
func (t *earlyAnswer) emit() error {
	text, n, ended := t.open.readText(t.pending, false)
	t.pending = strings.Clone(t.pending[n:])
	t.ended = ended
	return t.send(text)
}

// send passes text on, but for the space at its end, and at the beginning of the answer.
func (t *earlyAnswer) send(text string) error {
	// Spaces at the end belong to the answer only if text follows: the answer of the decision is
	// trimmed.
	solid := strings.TrimSpace(text)
	if solid == "" {
		t.space.WriteString(text)
		return nil
	}
	end := strings.Index(text, solid) + len(solid)
	held := t.space.String()
	t.space.Reset()
	t.space.WriteString(text[end:])
	text = held + text[:end]
	// The thoughts come first, as in a reply that is emitted whole.
	if t.emitted.Len() == 0 {
		if t.open.end != "" {
			text = strings.TrimSpace(text)
		}
		if err := t.out.parts(thoughts(t.own.String(), t.open.thought)...); err != nil {
			return err
		}
	}
	t.emitted.WriteString(text)
	return t.out.text(text)
}

// thoughts returns the parts before the decision.
func thoughts(own, thought string) (parts []llm.Part) {
	if own != "" {
		parts = append(parts, llm.Reasoning{Text: own, Opaque: ownReasoning})
	}
	if thought != "" {
		parts = append(parts, llm.Reasoning{Text: thought})
	}
	return parts
}
