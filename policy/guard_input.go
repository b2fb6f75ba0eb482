package policy

// guard_input.go: the rulings on input, and a reply that is held back until they are made.

import (
	"context"
	"crypto/sha256"
	"slices"

	"github.com/pawl-go/pawl/llm"
)

// view returns req with the rulings on its input: the given and the remembered ones. stop is the
// stop of a new message, and texts have no ruling. A stopped message of an earlier turn is replaced
// by a remark.
func (g *guard) view(req *llm.Request, given map[string]Ruling) (view *llm.Request, stop *Ruling,
	texts []string) {
	lastReply := len(req.Messages) - 1
	for lastReply >= 0 && req.Messages[lastReply].Role != llm.RoleAssistant {
		lastReply--
	}

	// A copy: the transcript keeps what was said, and only the request shows the rulings.
	changed := *req
	view = &changed
	view.Messages = slices.Clone(req.Messages)
	for i, m := range req.Messages {
		text := m.Text()
		if m.Role != llm.RoleUser || text == "" {
			continue
		}

		r, known := given[text]
		if !known {
			r, known = g.remembered(text)
		}
		switch {
		case !known:
			texts = append(texts, text)
		// A message before the last reply has been handled in its own turn. It must not stop the
		// conversation for ever.
		case r.Action == GuardStop && i > lastReply:
			stop = &r
		case r.Action == GuardStop:
			view.Messages[i].Parts = replaced(m.Parts, "[removed by guard "+g.Name+"]")
		case r.Action == GuardReplace:
			view.Messages[i].Parts = replaced(m.Parts, r.Text)
		}
	}
	return view, stop, texts
}

// remembered returns the ruling on an input that was checked before.
func (g *guard) remembered(text string) (r Ruling, ok bool) {
	digest := sha256.Sum256([]byte(text))
	g.mu.Lock()
	defer g.mu.Unlock()
	r, ok = g.known[digest]
	return r, ok
}

// remember stores the ruling on an input.
func (g *guard) remember(text string, r Ruling) {
	digest := sha256.Sum256([]byte(text))
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.known) >= mostRulings {
		clear(g.known)
	}
	g.known[digest] = r
}

// replaced returns parts with text in place of their texts.
func replaced(parts []llm.Part, text string) (out []llm.Part) {
	out = []llm.Part{llm.Text{Text: text}}
	for _, p := range parts {
		if _, ok := p.(llm.Text); !ok {
			out = append(out, p)
		}
	}
	return out
}

// inputs are the rulings on new texts, with the usage of the checks.
type inputs struct {
	rulings map[string]Ruling
	notices []*llm.Notice
	allow   bool // all texts are allowed
	spent   llm.Response
	err     error // of a check; the other rulings are not complete then
}

// input checks texts, and remembers the rulings.
func (g *guard) input(ctx context.Context, texts []string) *inputs {
	in := &inputs{rulings: map[string]Ruling{}, allow: true}
	for _, text := range texts {
		r, err := g.rule(ctx, Guarded{Place: GuardInput, Text: text})
		in.spent.Usage.Add(r.Usage)
		in.spent.Requests += r.Requests
		if err != nil {
			in.allow = false
			in.err = err
			return in
		}

		if n := g.notice(GuardInput, r); n != nil {
			in.notices = append(in.notices, n)
		}
		in.rulings[text] = r.Ruling
		if r.Action != GuardAllow {
			in.allow = false
		}

		// A text that was passed without a check is checked with the next request.
		if r.passed == nil {
			g.remember(text, r.Ruling)
		}
	}
	return in
}

// holding is a reply that is held back until its input is ruled on.
type holding struct {
	ruled chan *inputs // gets one value
	in    *inputs      // nil until the ruling
	yield func(llm.Delta, error) bool

	held     []llm.Delta
	broken   error // the error that ended the reply; nil means that it is whole, or still comes
	requests int   // that the reply counts as, if it is dropped
}

// allowed waits for the ruling, and reports whether the reply is passed on.
func (h *holding) allowed() bool {
	if h.in == nil {
		h.apply(<-h.ruled)
	}
	return h.in.allow
}

// apply stores the ruling. If the input is allowed, what is held is passed on.
func (h *holding) apply(in *inputs) {
	h.in = in
	if !in.allow {
		return
	}
	h.yield = in.before(h.yield)
	for _, d := range h.held {
		h.yield(d, nil)
	}
}

// pass passes a delta on, or holds it. cancelled means that the request was cancelled.
func (h *holding) pass(d llm.Delta, err error, cancelled bool) bool {
	if h.in == nil {
		select {
		// The ruling and the reply race. As soon as the guard has allowed the input, the held
		// deltas are released.
		case in := <-h.ruled:
			h.apply(in)
		default:
		}
	}

	switch {
	case h.in != nil && h.in.allow:
		return h.yield(d, err)
	case err == nil:
		h.held = append(h.held, d)
		return true
	case !cancelled:
		h.requests-- // a model that fails counts its request before the error (llm.Delta.Requests)
	}
	h.broken = err
	return false
}

// addDropped adds the usage of the dropped reply to the usage of the checks.
func (h *holding) addDropped() {
	dropped := llm.Response{Requests: h.requests}
	for _, d := range h.held {
		_ = dropped.Add(d) // only its usage counts
	}
	h.in.spent.Usage.Add(dropped.Usage)
	h.in.spent.Requests += dropped.Requests
}

// before yields the notices and the usage of in, and returns yield with that usage added.
func (in *inputs) before(yield func(llm.Delta, error) bool) func(llm.Delta, error) bool {
	more := yield(llm.Delta{Requests: in.spent.Requests, Usage: &in.spent.Usage}, nil)
	for _, n := range in.notices {
		more = more && yield(llm.Delta{Notice: n}, nil)
	}

	// The usage of a delta replaces the usage of those before, so that a reply has to add it.
	return func(d llm.Delta, err error) bool {
		if d.Usage != nil && in.spent.Requests > 0 {
			d.Usage = d.Usage.Plus(in.spent.Usage)
		}
		more = more && yield(d, err)
		return more
	}
}
