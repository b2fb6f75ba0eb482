package history

// window.go: Window, and its model, which sends what the planner decides.

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/history/internal/fold"
	"github.com/pawl-go/pawl/internal/background"
	"github.com/pawl-go/pawl/llm"
)

// Window returns the middleware that keeps requests within the context window of the model, also
// within a turn of hundreds of steps. It measures requests by the provider's usage. When a request
// passes High, results of old rounds become one line each, with the id by which result_read finds
// the whole; when these lines are many, old rounds become a record, which lists each distinct call
// and text with its id, as far as its share of the room goes. In between, requests only grow at
// their end, so that prompt caches hit. The message that began the turn, instructions, results of
// tools with Tool.Pin and the last rounds stay.
//
// If the provider refuses a request as too long, a shorter one is sent, and the size is remembered.
// A run that reads the same results again and again in a window that cannot hold them is warned,
// and ends with pawl.StopLimit.
//
// The transcript stays whole. Give the model the tool result_read (pawl.Agent.Artifacts, or
// artifact.Reader among the tools), which lists, reads and searches all of it: results, calls with
// their arguments, and what the model and the user wrote. The state is a small opaque
// part of the replies, so that a resumed, forked or replayed run sends the same requests.
func Window(o *WindowOptions) pawl.Middleware {
	opts := o.withDefaults()
	return pawl.Middleware{
		Model: func(m llm.Model) llm.Model {
			w := &windowed{inner: m, options: opts}
			if opts.Notes != nil || opts.Native {
				return noted{w}
			}
			return w
		},
		Check: func([]*pawl.Tool) error { return opts.check() },
		Sole:  func([]*pawl.Tool) []string { return []string{"the window of the conversation"} },
	}
}

// windowed is a model that receives what fits its window. It serves one run.
type windowed struct {
	inner   llm.Model
	options WindowOptions
	ledger  fold.Ledger
}

// noted is a model that also asks for notes, or for summaries of the provider. Only such a model
// costs more than the requests that it receives.
type noted struct{ *windowed }

var _ llm.Pricer = noted{}

// MaxCost returns the cost of the request, and of notes and a summary of all its messages. It is
// unknown if one of the prices is.
func (w noted) MaxCost(req *llm.Request) (dollars float64, known bool) {
	models := []llm.Model{w.inner}
	if provider, _ := w.provider(req); provider != nil {
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
			// A bound that leaves out a part of the cost is none.
			return 0, false
		}
	}
	return dollars, true
}

// Unwrap returns the inner model.
func (w *windowed) Unwrap() llm.Model { return w.inner }

// planner returns the planner of a request.
func (w *windowed) planner(req *llm.Request) planner {
	known := window{options: &w.options}
	if m, ok := llm.As[llm.Windower](w.inner); ok {
		known.stated, known.output = m.Window(req)
	}
	// The request's own limit is what the model can write at most. The model's maximum would take
	// room from the conversation for nothing.
	known.output = cmp.Or(req.Settings.MaxTokens, known.output)

	provider, onDemand := w.provider(req)
	known.native = provider != nil
	return planner{
		rounds:   fold.Of(req),
		options:  &w.options,
		ledger:   &w.ledger,
		window:   known,
		provider: provider,
		onDemand: onDemand,
	}
}

// provider returns the model as an llm.Compactor, and whether its provider summarizes on demand. It
// is nil if the provider cannot, or must not, shorten the conversation.
func (w *windowed) provider(req *llm.Request) (m llm.Compactor, onDemand bool) {
	m, ok := llm.As[llm.Compactor](w.inner)
	if !ok || !w.options.Native {
		return nil, false
	}
	const anySize = 100_000
	if _, ok := m.Compact(req, anySize); ok {
		return m, false
	}
	if _, ok := m.Compact(req, 0); ok {
		return m, true
	}
	return nil, false
}

// maxRefusals is how often a shorter request follows a request that was refused as too long.
const maxRefusals = 2

// Stream sends what fits of req, and again less if it is refused.
func (w *windowed) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		s := &sending{model: w, planner: w.planner(req), yield: yield}
		err := s.run(ctx, req)
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

	before  fold.Mark // of the last reply
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

// errStopped ends a request whose reader wants no more. It is never yielded.
var errStopped = errors.New("the consumer stopped")

// run plans the request, and sends it until it is not refused as too long.
func (s *sending) run(ctx context.Context, req *llm.Request) error {
	if err := s.plan(); err != nil {
		return err
	}
	for refusals := 0; ; refusals++ {
		if !s.report() {
			return errStopped
		}
		err := s.send(ctx, s.request(req))
		if !s.mayShorten(err) || refusals == maxRefusals || !s.shorten(refusals) {
			return err
		}
	}
}

// plan reads the state of the last reply and makes the request.
func (s *sending) plan() (err error) {
	s.before = s.rounds.LastMark(s.reportMisfit)
	d, notices, err := s.next(s.before)
	s.now = d
	s.notices = append(s.notices, notices...)
	return err
}

// reportMisfit reports that the mark of reply n is ignored.
func (s *sending) reportMisfit(n int, err error) {
	ignored := notice(NoticeWindowMark,
		"the state at reply %d does not belong to this transcript and is ignored: %v", n, err)
	s.notices = append(s.notices, ignored)
}

// report emits the notices. It reports false if the consumer stopped.
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

// withOrder adds to r the order to shorten the conversation at High.
func (s *sending) withOrder(r *llm.Request) *llm.Request {
	size := s.sizes(&s.now.mark)
	switch {
	case s.provider == nil:
	case s.onDemand && s.asksForSummary(s.now, size):
		r, _ = s.provider.Compact(r, 0)
	case s.onDemand:
	case size.native > 0:
		r, _ = s.provider.Compact(r, size.native)
	}
	return r
}

// mayShorten reports whether a shorter request may follow the error of a request. After a part of
// the reply was yielded, it must not: the reply would have two beginnings.
func (s *sending) mayShorten(err error) bool {
	var refused *llm.ProviderError
	return !s.begun && errors.As(err, &refused) && refused.Code == llm.CodeContextLength
}

// shorten makes the request shorter after a refusal. refusals is how many there were before. It
// reports false if nothing can be put away.
func (s *sending) shorten(refusals int) bool {
	d, notices, ok := s.afterRefusal(s.now, s.before, refusals)
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
	if d.Part != nil || d.Finish != "" {
		s.begun = true
	}
	if d.Part == nil {
		return
	}

	s.reply.parts = max(s.reply.parts, d.Index+1)
	if s.provider != nil && s.provider.Compacted(d.Part) {
		s.reply.summarized = true
	}
}

// withMark returns the last delta of a reply with the mark as a part behind all others. It yields d
// before, without the finish.
func (s *sending) withMark(ctx context.Context, d llm.Delta) (llm.Delta, error) {
	// The usage of a reply with a summary is the sum of two requests.
	counted := 0
	if !s.reply.summarized {
		counted = s.countOf(s.now, s.reply.usage, s.reply.more)
	}
	m, ok := s.markToStore(s.now, s.before, counted)
	if !ok {
		return d, nil
	}

	last := llm.Delta{Index: s.reply.parts, Done: true, Finish: d.Finish}
	d.Finish = ""
	if !s.yield(d, nil) {
		return d, errStopped
	}

	// The notes are asked for after the reply, so that its request depends on the transcript alone.
	// They delay the end of the reply, and not its text.
	if s.notesDue(&s.now.mark) {
		resp := s.note(ctx, &m)
		last.Requests = resp.Requests
		last.Usage = s.reply.usage.Plus(resp.Usage)
	}
	last.Part = m.Part()
	return last, nil
}

// note asks for notes of the steps that are put away, and stores them in m. resp has the usage.
func (s *sending) note(ctx context.Context, m *fold.Mark) (resp *llm.Response) {
	resp, err := llm.Complete(background.Aside(ctx), s.options.Notes, s.notesRequest(m))
	resp.Requests++ // this one

	notes, err := notesOf(resp, err)
	if err == nil {
		m.Notes = notes
		m.NotesAt = len(s.rounds.Replies) + 1
		m.NotesTo = m.Stubbed
		m.NotesFailed = 0
		return resp
	}

	m.NotesFailed++
	failed := notice(NoticeSummaryFailed, "earlier steps could not be noted: %v", err)
	s.yield(llm.Delta{Notice: failed}, nil)
	return resp
}

// Edited says what Window put away right before the request of a reply, for people. Empty means
// nothing.
func Edited(reply llm.Message) string { return fold.Edited(reply) }
