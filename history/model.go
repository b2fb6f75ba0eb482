package history

// model.go: the model of Window, which sends what the planner decides.

import (
	"context"
	"errors"
	"iter"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/history/internal/fold"
	"github.com/pawl-go/pawl/llm"
)

// windowed is a model that receives what fits its window. It serves one run.
type windowed struct {
	inner   llm.Model
	options WindowOptions
	ledger  fold.Ledger
}

// noted is a model that also asks for notes, or for summaries of the provider.
type noted struct{ *windowed }

var _ llm.Pricer = noted{}

// MaxCost returns the cost of the request, and of notes and a summary of all its messages. It is
// unknown if one of the prices is.
func (w noted) MaxCost(req *llm.Request) (dollars float64, known bool) {
	models := []llm.Model{w.inner}
	if w.provider(req) != nil {
		models = append(models, w.inner)
	}
	if w.options.Notes != nil {
		models = append(models, w.options.Notes)
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

// planner returns the planner of a request.
func (w *windowed) planner(req *llm.Request) planner {
	p := planner{
		rounds:   fold.Of(req),
		options:  &w.options,
		ledger:   &w.ledger,
		provider: w.provider(req),
	}
	if m, ok := llm.As[llm.Windower](w.inner); ok {
		p.window, p.output = m.Window(req)
	}
	return p
}

// limitError ends a run whose window is too small for its work.
type limitError struct{ text string }

var _ pawl.LimitError = (*limitError)(nil)

func (e *limitError) Error() string { return e.text }

// LimitReached returns the cause of pawl.StopLimit.
func (e *limitError) LimitReached() (name pawl.LimitName, cause string) { return "window", e.text }

// maxRefusals is how often a shorter request follows a request that was refused as too long.
const maxRefusals = 2

// Stream sends what fits of req, and again less if it is refused.
func (w *windowed) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		s := &sending{model: w, planner: w.planner(req), yield: yield}
		err := s.plan()
		for tries := 0; err == nil; tries++ {
			if !s.report() {
				return
			}
			err = s.send(ctx, s.request(req))
			if s.retries(err) && tries < maxRefusals && s.shorten(tries) {
				err = nil
				continue
			}
			break
		}
		if err != nil && err != errStopped {
			yield(llm.Delta{}, err)
		}
	}
}

// sending is one request, and the shorter ones after a refusal.
type sending struct {
	planner
	model *windowed
	yield func(llm.Delta, error) bool

	before  fold.Mark // the state of the reply before
	now     draft
	notices []*llm.Notice // not yet emitted
	begun   bool          // a part of the reply was yielded
	reply   received
}

// received is what came of a reply so far.
type received struct {
	parts      int // of the reply
	usage      llm.Usage
	more       int  // further requests that usage includes
	summarized bool // the provider summarized within this request
}

var errStopped = errors.New("the consumer stopped")

// plan reads the state of the last reply and makes the request.
func (s *sending) plan() (err error) {
	s.before = s.rounds.LastMark(func(n int, err error) {
		s.notices = append(s.notices,
			notice(NoticeWindowMark, "the state at reply %d does not belong to this transcript and is ignored: %v", n, err))
	})
	d, notices, err := s.next(s.before)
	s.now = d
	s.notices = append(s.notices, notices...)
	return err
}

// report emits the notices.
func (s *sending) report() bool {
	for _, n := range s.notices {
		if !s.yield(llm.Delta{Notice: n}, nil) {
			return false
		}
	}
	s.notices = nil
	return true
}

// request returns req with what is sent of it.
func (s *sending) request(req *llm.Request) *llm.Request {
	r := *req
	r.Messages = s.now.view.Messages
	r.Turn = s.now.view.Turn
	r.Edited = s.now.view.Edited
	r.Tools = s.now.tools
	if len(r.Tools) == 0 {
		r.Choice = llm.ToolChoice{}
	}
	return s.withOrder(&r)
}

// retries reports whether a shorter request may follow the error of a request. After a part of the
// reply was yielded, it must not: the reply would have two beginnings.
func (s *sending) retries(err error) bool {
	var refused *llm.ProviderError
	return !s.begun && errors.As(err, &refused) && refused.Code == llm.CodeContextLength
}

// shorten makes the request shorter after a refusal. It reports whether it could.
func (s *sending) shorten(tries int) bool {
	d, notices, ok := s.afterRefusal(s.now, s.before, tries)
	if ok {
		s.now = d
		s.notices = append(s.notices, notices...)
	}
	return ok
}

// send sends a request, and adds the state to its reply.
func (s *sending) send(ctx context.Context, r *llm.Request) error {
	s.reply = received{}
	for d, err := range s.model.inner.Stream(ctx, r) {
		if err != nil {
			return err
		}
		s.receive(d)
		if d.Finish != "" {
			d, err = s.withMark(ctx, d)
			if err != nil {
				return err
			}
		}
		if !s.yield(d, nil) {
			return errStopped
		}
	}
	return nil
}

// receive remembers what d says about the reply.
func (s *sending) receive(d llm.Delta) {
	if d.Usage != nil {
		s.reply.usage = *d.Usage
	}
	s.reply.more += d.Requests
	if d.Finish != "" {
		s.begun = true
	}
	if d.Part == nil {
		return
	}

	s.begun = true
	s.reply.parts = max(s.reply.parts, d.Index+1)
	if s.provider != nil && s.provider.Compacted(d.Part) {
		s.reply.summarized = true
	}
}

// withMark returns the last delta of a reply with the state as a part behind all others. It yields
// d before, without the finish.
func (s *sending) withMark(ctx context.Context, d llm.Delta) (llm.Delta, error) {
	counted := 0
	if !s.reply.summarized { // its usage is the sum of two requests
		counted = s.counted(s.now, s.reply.usage, s.reply.more)
	}
	m, ok := s.stored(s.now, s.before, counted)
	if !ok {
		return d, nil
	}

	last := llm.Delta{Index: s.reply.parts, Done: true, Finish: d.Finish}
	d.Finish = ""
	if !s.yield(d, nil) {
		return d, errStopped
	}
	if s.wantsNotes(&s.now.mark) {
		resp := s.note(ctx, &m)
		last.Requests = resp.Requests
		last.Usage = s.reply.usage.Plus(resp.Usage)
	}
	last.Part = m.Part()
	return last, nil
}
