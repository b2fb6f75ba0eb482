package history

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/history/internal/fold"
	"github.com/pawl-go/pawl/llm"
)

// The codes of the notices of Window.
const (
	// Results were put away. Data has the sizes.
	NoticeWindowEdited = "window_edited"
	// The provider refused a request as too long. A shorter one follows.
	NoticeWindowRefused = "window_refused"
	// The window is filled again and again by results that were read before.
	NoticeWindowThrash = "window_thrash"
	// The state in the transcript does not fit it and is ignored.
	NoticeWindowMark = "window_mark"
)

// WindowOptions tune Window. Nil, and every zero field, stands for the default.
type WindowOptions struct {
	// Tokens is the context window. 0 means what the model says, by the method
	// Window(*llm.Request) (window, output int), which llm.As finds; the models of package provider
	// have it from the catalogue. If it is unknown, only a refusal of the provider teaches it.
	Tokens int
	// Reserve is for the reply. 0 means Settings.MaxTokens, or else the longest reply of the model,
	// at most a quarter of the window. The window without it is the room.
	Reserve int
	// High is the share of the room above which requests are made shorter. 0 means 0.80.
	High       float64
	HighTokens int // an absolute bound, if it is less; 0 means none
	// Low is the share of the room down to which they are made shorter. 0 means 0.40.
	Low  float64
	Keep int // rounds at the end that stay whole if they fit; 0 means 3
	Stub int // bytes of a result that is never put away; 0 means 400
	// Round is the share of the room that the results of three rounds in turn may have together. A
	// round after long ones has at least a third of it. Longer results are cut, the largest first,
	// before they are sent for the first time. 0 means 0.25.
	Round float64

	// Pinned returns text that is repeated when steps are folded, such as a to-do list. It must
	// depend on the messages alone. Nil means none.
	Pinned func([]llm.Message) string

	// Notes writes notes of steps before they are folded. Its requests count with the reply they
	// follow, and it needs a price under pawl.Limits.Cost. If it fails, the record has no new
	// notes. Nil means no notes.
	Notes llm.Model
	// HideReader leaves result_read out of requests until something is put away.
	HideReader bool
	// Native lets the provider shorten the conversation at High, if the model can: OpenAI's
	// Responses and Claude from 4.6 on summarize, Claude 4.5 clears old results. A summary stays
	// in the transcript, and what the user said and what is pinned follow it in each request. Only
	// its provider reads it: with another model, the record takes its place. The own edits begin at
	// 0.95 then. A summary costs about what its request costs, which counts.
	Native bool

	noStubs, noFold, noCut bool // for comparisons of the tiers
}

const (
	defaultHigh = 0.80
	blindHigh   = 0.65 // in place of High while the provider has reported no usage
	defaultLow  = 0.40
	thrashLow   = 0.25
	defaultKeep = 3
	defaultStub = 400
	shareStubs  = 0.15 // of the room: above it, stubs are folded
	shareRound  = 0.25 // of the room: default of Round
	roundSpan   = 3    // rounds that have Round together
	leastGain   = 0.10 // of the room: an edit that frees less waits until it must be
	firstRatio  = 1. / 3
	leastWindow = 2_000 // tokens; below it no state is stored if the window is unknown
	nearHigh    = 0.90  // of High: a view above it after an edit did not help
	thrashAt    = 3     // edits in turn that did not help: Low is thrashLow
	thrashEnd   = 9     // the run ends
)

// Window returns the middleware that keeps requests within the context window of the model, also
// within a turn of hundreds of steps. It measures requests by the provider's usage. When a request
// passes High, results of old rounds become one line each, with the id by which result_read finds
// the whole; when these lines are many, old rounds become a record that names every call with an
// effect. In between, requests only grow at their end, so that prompt caches hit. The message that
// began the turn, instructions, results of tools with Tool.Pin and the last rounds stay.
//
// If the provider refuses a request as too long, a shorter one is sent, and the size is remembered.
// A run that reads the same results again and again in a window that cannot hold them is warned,
// and ends with pawl.StopLimit.
//
// The transcript stays whole. Give the model the tool result_read (pawl.Agent.Artifacts, or
// artifact.Reader among the tools), which reads and searches all of it. The state is a small opaque
// part of the replies, so that a resumed, forked or replayed run sends the same requests.
func Window(o *WindowOptions) pawl.Middleware {
	if o == nil {
		o = new(WindowOptions)
	}
	opts := *o
	opts.High, opts.Low = cmp.Or(opts.High, defaultHigh), cmp.Or(opts.Low, defaultLow)
	opts.Keep, opts.Stub = max(1, cmp.Or(opts.Keep, defaultKeep)), cmp.Or(opts.Stub, defaultStub)
	opts.Round = cmp.Or(opts.Round, shareRound)
	return pawl.Middleware{
		Model: func(m llm.Model) llm.Model {
			if opts.Notes != nil || opts.Native {
				return noted{&windowed{inner: m, o: opts}}
			}
			return &windowed{inner: m, o: opts}
		},
		Check: func([]*pawl.Tool) error {
			least := min(opts.Tokens, opts.Reserve, opts.HighTokens, opts.Stub)
			if 0 < opts.Low && opts.Low < opts.High && opts.High <= 1 && least >= 0 {
				return nil
			}
			return fmt.Errorf("window: want 0 < Low < High <= 1 and no negative numbers, got Low %v and High %v", opts.Low, opts.High)
		},
	}
}

// windowed is a model that receives what fits its window. It serves one run.
type windowed struct {
	inner llm.Model
	o     WindowOptions
	mu    sync.Mutex
	past  fold.Ledger
}

// noted is a model that also asks for notes, or for summaries of the provider.
type noted struct{ *windowed }

var _ llm.Pricer = noted{}

// MaxCost returns the cost of the request, and of notes and a summary of all its messages. It is
// unknown if one of the prices is.
func (w noted) MaxCost(req *llm.Request) (dollars float64, known bool) {
	models := []llm.Model{w.inner}
	if w.own(req) != nil {
		models = append(models, w.inner)
	}
	if w.o.Notes != nil {
		models = append(models, w.o.Notes)
	}
	for _, m := range models {
		p, ok := llm.As[llm.Pricer](m)
		if !ok {
			return 0, false
		}
		one, ok := p.MaxCost(req)
		dollars += one
		if !ok {
			return 0, false
		}
	}
	return dollars, true
}

// Unwrap returns the inner model.
func (w *windowed) Unwrap() llm.Model { return w.inner }

// limitError ends a run whose window is too small for its work.
type limitError struct{ text string }

func (e *limitError) Error() string { return e.text }

// LimitReached returns the cause of pawl.StopLimit.
func (e *limitError) LimitReached() (name, cause string) { return "window", e.text }

// Stream sends what fits of req, and again less if it is refused.
func (w *windowed) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		s := &sending{w: w, c: fold.RoundsOf(req), yield: yield, own: w.own(req)}
		err := s.plan()
		for tries := 0; err == nil; tries++ {
			for _, n := range s.notices {
				if !yield(llm.Delta{Notice: n}, nil) {
					return
				}
			}
			s.notices = nil
			r := *req
			r.Messages, r.Turn, r.Edited, r.Tools = s.v.Messages, s.v.Turn, s.v.Edited, s.tools(&s.p)
			if len(r.Tools) == 0 {
				r.Choice = llm.ToolChoice{}
			}
			var refused *llm.ProviderError
			if err = s.send(ctx, s.order(&r)); err == nil || s.begun || tries == 2 || !errors.As(err, &refused) ||
				refused.Code != llm.CodeContextLength || !s.harder(tries) {
				break
			}
			err = nil
		}
		if err != nil && err != errStopped {
			yield(llm.Delta{}, err)
		}
	}
}

// sending is one request.
type sending struct {
	w     *windowed
	c     *fold.Rounds
	yield func(llm.Delta, error) bool

	before  fold.Mark // the state of the reply before
	p       fold.Mark // the state of this request
	v       fold.View
	bytes   int // of v
	notices []*llm.Notice
	begun   bool // a part of the reply was yielded

	own    compactor // nil means that the model's provider cannot, or shall not
	native int       // number of the last reply with a summary by own; 0 means none
	shrunk bool      // the provider summarized within this request
}

func (s *sending) notice(code, format string, args ...any) {
	s.notices = append(s.notices, &llm.Notice{Code: code, Text: fmt.Sprintf(format, args...)})
}

// render builds the view of state p.
func (s *sending) render(p *fold.Mark) (fold.View, int) {
	text := nativeText
	after := ""
	if p.Folded > 0 {
		s.w.mu.Lock() // not while a reply comes: its reader may ask again
		if p.Folded == s.native {
			after = s.w.past.Repeat(s.c, p, s.w.o.Pinned)
		} else {
			text = s.w.past.Render(s.c, p, s.w.o.Pinned)
		}
		s.w.mu.Unlock()
	}
	if s.hides() && p.Shown == 0 && p.Stubbed+p.Cut > 0 {
		p.Shown = len(s.c.At) + 1
	}
	v := s.c.View(p, s.w.o.Stub, text, after)
	return v, fold.Weight(v.Messages, s.tools(p))
}

// hides reports whether result_read is left out until something is put away. A provider puts away
// without saying so beforehand.
func (s *sending) hides() bool { return s.w.o.HideReader && s.c.Reads && s.own == nil }

// tools returns the tools that are offered in state p.
func (s *sending) tools(p *fold.Mark) []*llm.ToolSpec {
	if !s.hides() || p.Shown > 0 {
		return s.c.Req.Tools
	}
	return slices.DeleteFunc(slices.Clone(s.c.Req.Tools), func(t *llm.ToolSpec) bool { return t.Name == fold.ReadTool })
}

// plan reads the state of the last reply, and edits it if the request is too long.
func (s *sending) plan() error {
	for i, at := range slices.Backward(s.c.At) {
		m, ok, fits := fold.MarkOf(&s.c.Msgs[at], i)
		if !fits {
			s.notice(NoticeWindowMark, "the state at reply %d does not belong to this transcript and is ignored", i)
		} else if ok {
			s.before = m
			break
		}
	}
	s.p = s.before
	s.p.Notes = ""
	s.p.Why = ""
	size := s.sizes(&s.p)
	s.p.Cut, s.native = s.cut(size), s.summarized()
	s.v, s.bytes = s.render(&s.p)
	s.adopt(size)
	if size.room == 0 || float64(s.bytes) <= size.high {
		return nil
	}
	return s.edit(size)
}

// cut returns the bytes that the new results may have. 0 means all. It is what the rounds before
// leave of their common share, and at least an equal part of it. A call that is made again has the
// whole share: its first result was too short.
func (s *sending) cut(size sizes) int {
	n := len(s.c.At)
	share := int(s.w.o.Round * size.room)
	last := 0
	left := share
	for i := max(0, n-roundSpan); i < n && !s.w.o.noCut; i++ {
		left, last = left-last, 0
		if r := s.c.Results(i); r != nil {
			last = fold.Weigh(r.Parts)
			if limit, _ := s.c.CutOf(i+1, new(fold.Mark)); limit > 0 {
				last = min(last, limit)
			}
		}
	}
	left = max(left, share/roundSpan)
	if last <= left {
		return 0
	}
	if s.c.Again(s.p.Folded, n-1) {
		left = share
	}
	return left
}

// edit makes the view shorter, down to size.low.
func (s *sending) edit(size sizes) error {
	p := s.p
	p.Edited, p.Turn, p.Limit, p.Thrash = len(s.c.At), s.c.Turn(), int(size.room), 0
	repeats := s.repeats()
	s.put(&p, size, s.w.o.Keep)
	v, bytes := s.render(&p)
	if float64(bytes) > nearHigh*size.high && p.Folded < p.Stubbed && !s.w.o.noFold {
		p.Folded = p.Stubbed
		v, bytes = s.render(&p)
	}
	if float64(s.bytes-bytes) < leastGain*size.room && float64(s.bytes) <= size.room {
		return nil
	}
	if repeats || float64(bytes) > size.high { // it did not help
		p.Thrash = min(s.p.Thrash+1, thrashEnd)
	}
	switch p.Thrash {
	case thrashAt:
		s.notice(NoticeWindowThrash, "the window is filled again and again by results that were read before")
	case fold.WarnAt:
		v, bytes = s.render(&p)
	case thrashEnd:
		return &limitError{fmt.Sprintf("the window of %d tokens is too small for this work", cmp.Or(size.window, size.tokens(int(size.room))))}
	}
	s.take(p, v, bytes, size, "full")
	return nil
}

// take replaces the state of the request.
func (s *sending) take(p fold.Mark, v fold.View, bytes int, size sizes, why string) {
	data, _ := json.Marshal(map[string]any{"before": size.tokens(s.bytes), "after": size.tokens(bytes),
		"stubs": p.Stubbed - p.Folded, "folded": p.Folded, "why": why})
	s.notices = append(s.notices, &llm.Notice{Code: NoticeWindowEdited, Data: data,
		Text: fmt.Sprintf("the request has about %d tokens in place of %d: %d steps are shortened, and %d are in a record",
			size.tokens(bytes), size.tokens(s.bytes), p.Stubbed-p.Folded, p.Folded)})
	s.p, s.v, s.bytes, s.p.Why = p, v, bytes, why
}

// put moves the limits of stubs and of the ledger until the view has size.low. The last rounds
// stay, unless they alone nearly reach size.high.
func (s *sending) put(p *fold.Mark, size sizes, keep int) {
	n, stubs, left := len(s.c.At), s.stubs(p), float64(s.bytes)
	for ; left > size.low && p.Stubbed < n-1; p.Stubbed++ {
		if p.Stubbed == n-keep && left <= nearHigh*size.high {
			break
		}
		whole, short := s.cost(p.Stubbed, p)
		left += short - whole
		stubs += short
	}
	switch o := &s.w.o; {
	case o.noStubs && o.noFold:
		p.Stubbed = 0
	case o.noStubs:
		p.Folded = p.Stubbed
	case stubs > shareStubs*size.room && !o.noFold:
		to := p.Folded + max(1, (p.Stubbed-p.Folded)*3/4)
		if o.Notes != nil && p.Failed < notesFail {
			to = min(to, max(p.Folded, p.NotesTo)) // the rest has no notes yet
		}
		p.Folded = to
	}
	if o := &s.w.o; p.Stubbed > 0 && !o.noFold && o.Pinned != nil && o.Pinned(s.c.Msgs) != "" {
		p.Folded = max(p.Folded, 1) // the record shows it
	}
}

// repeats reports whether the window is full again soon after the last edit, mostly of results of
// calls that were made before.
func (s *sending) repeats() bool {
	last := s.p.Edited
	again := 0
	all := 0
	seen := map[uint64]bool{}
	if last == 0 || len(s.c.At)-last > max(2, s.w.o.Keep) {
		return false
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.past.Grow(s.c, s.p.Folded)
	for i := s.p.Folded; i < len(s.c.At); i++ {
		r := s.c.Results(i)
		for k, call := range s.c.Msgs[s.c.At[i]].Calls() {
			h := fold.CallHash(call)
			if i >= last && r != nil && k < len(r.Parts) {
				n := fold.Weigh(r.Parts[k : k+1])
				all += n
				if seen[h] || s.w.past.Seen[h] {
					again += n
				}
			}
			seen[h] = true
		}
	}
	return again*2 > all
}

// harder makes the view shorter after a refusal. It reports whether it could.
func (s *sending) harder(tries int) bool {
	n, p := len(s.c.At), s.p
	size := s.sizes(&p)
	p.Room = max(s.before.Tokens, size.tokens(s.bytes)/2)
	if tries > 0 {
		p.Room = s.p.Room / 2
	}
	size = s.sizes(&p)
	size.low /= 2
	p.Edited, p.Turn, p.Limit, p.Cut = n, s.c.Turn(), int(size.room), s.cut(size)
	if tries == 0 {
		s.put(&p, size, 1)
	} else if n > 0 && !s.w.o.noFold {
		p.Folded = n - 1
		p.Stubbed = n - 1
	}
	v, bytes := s.render(&p)
	if bytes >= s.bytes {
		return false
	}
	s.notice(NoticeWindowRefused, "the request was refused as too long; from here on the room is taken as %d tokens", p.Room)
	s.take(p, v, bytes, size, "refused")
	return true
}

// send sends the view, and adds the state to the reply.
func (s *sending) send(ctx context.Context, r *llm.Request) error {
	parts := 0
	more := 0
	used := llm.Usage{}
	for d, err := range s.w.inner.Stream(ctx, r) {
		if err != nil {
			return err
		}
		if d.Usage != nil {
			used = *d.Usage
		}
		more += d.Requests
		if d.Part != nil {
			parts = max(parts, d.Index+1)
		}
		s.begun = s.begun || d.Part != nil || d.Finish != ""
		s.shrunk = s.shrunk || d.Part != nil && s.own != nil && s.own.Compacted(d.Part)
		if d.Finish != "" {
			if m, ok := s.after(used, more); ok { // the mark is a part behind the last
				last := llm.Delta{Index: parts, Done: true, Finish: d.Finish}
				d.Finish = ""
				if !s.yield(d, nil) {
					return errStopped
				}
				if s.noting() {
					resp := s.note(ctx, &m)
					last.Requests, last.Usage = resp.Requests, used.Plus(resp.Usage)
				}
				last.Part = m.Part()
				d = last
			}
		}
		if !s.yield(d, nil) {
			return errStopped
		}
	}
	return nil
}

var errStopped = errors.New("the consumer stopped")

// after returns the state after the reply. ok is false as long as there is nothing to remember.
func (s *sending) after(used llm.Usage, more int) (m fold.Mark, ok bool) {
	m = s.p
	size := s.sizes(&m)
	guess := size.tokens(s.bytes)
	// the usage of a wrapper that asks several times, and of a summary, is the sum
	if t := used.Input; !s.shrunk && t > s.bytes/12 && t < 2*s.bytes && (more <= 0 || t < guess*3/2) {
		m.Tokens = t
		m.Bytes = s.bytes
	}
	idle := s.before.Version == 0 && m.Stubbed+m.Cut+m.Shown+m.Room+m.Thrash == 0
	return m, !idle || guess >= cmp.Or(size.tokens(int(size.room))/4, leastWindow)
}

// stubs returns the bytes of the rounds that are shortened.
func (s *sending) stubs(p *fold.Mark) (sum float64) {
	for i := p.Folded; i < p.Stubbed; i++ {
		_, short := s.cost(i, p)
		sum += short
	}
	return sum
}

// cost returns the bytes of round i before and after its results are put away.
func (s *sending) cost(i int, p *fold.Mark) (whole, short float64) {
	c := s.c
	reply := fold.Unmarked(c.Msgs[c.At[i]])
	whole, short = float64(fold.Weigh(reply.Parts)), float64(fold.Weigh(fold.Shortened(reply).Parts))
	if r := c.Results(i); r != nil {
		m := *r
		short += float64(fold.Weigh(c.Stubs(m, i, s.w.o.Stub).Parts))
		if limit, warn := c.CutOf(i+1, p); limit > 0 {
			m = c.Cut(m, i, limit, warn)
		}
		whole += float64(fold.Weigh(m.Parts))
	}
	return whole, short
}
