package turns

// follow.go: follows the run of a turn to its end, or to a question.

import (
	"slices"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/internal/web"
)

// following is a turn that a client follows.
type following struct {
	*Call
	turn *Turn
	send *web.Sender // gets heartbeats; nil means that the answer is sent whole
	beat *time.Ticker

	out    Reply
	speech speech
	think  thoughts
	skip   int // replies that an earlier turn, or an earlier attempt, has sent
	step   int // the last one of the run itself
}

// Follow sends text as it arrives and returns the outcome. An error is meant for the client. An
// agent with structured output says that output alone. w gets heartbeats; nil means none. A stream
// stays open while a call waits for a person, if Options.Hold is set.
func (c *Call) Follow(t *Turn, w *web.Sender, v Voice) (Reply, error) {
	f := &following{
		Call:   c,
		turn:   t,
		send:   w,
		beat:   time.NewTicker(c.Beat),
		speech: speech{say: v.Say, withdraw: v.Withdraw},
		think:  thoughts{say: v.Think},
		skip:   t.Skip,
	}
	defer f.beat.Stop()
	err := f.follow()
	t.failed = err != nil && w != nil
	return f.out, err
}

// follow sends what the run says, and sets the reply.
func (f *following) follow() error {
	for {
		end, err := f.read()
		if err != nil {
			return err
		}
		if !f.holds(end.Result) {
			f.speech.finish(end.Result)
			f.out.Text = f.speech.all.String()
			f.out.Reasoning = f.think.all.String()
			return f.turn.stopped(end, &f.out)
		}

		f.Handler.window.hold(f.turn.sent)
		if err := f.ask(end.Result); err != nil {
			return err
		}
		next, err := f.await()
		if err != nil {
			return err
		}
		defer next.AddReader()()
		f.turn.Live = next
		f.skip = f.step
	}
}

// read sends what the run says until it stops, and returns its last event.
func (f *following) read() (end pawl.Event, err error) {
	how := runs.Reading{Tick: f.beat.C, Beat: func() { f.send.Beat() }, Hold: f.Hold()}
	for ev, err := range f.turn.Live.Events(f.Request.Context(), how) {
		if err == runs.ErrElsewhere {
			break
		}
		if err != nil {
			f.turn.away = runs.IsOutage(err)
			return ev, err
		}

		switch {
		case ev.Kind == pawl.EventGap:
			f.speech.held = true
			continue
		case ev.Run != "run": // of a nested run
			continue
		case ev.Kind == pawl.EventRunEnded && ev.Result != nil:
			return ev, nil
		case ev.Step <= f.skip: // an earlier turn had it
			continue
		}
		f.add(&ev)
	}
	return end, f.stopping()
}

// stopping returns the error of a server that stops while it answers.
func (f *following) stopping() error {
	return runs.Fault("busy", "the server is stopping", "the run "+f.turn.ID+" is resumed by the next one")
}

// add sends what an event of the run itself says.
func (f *following) add(ev *pawl.Event) {
	f.step = max(f.step, ev.Step)
	f.think.addEvent(&f.Handler.Options, ev)
	if ev.Kind == pawl.EventResponseReceived && ev.Response != nil {
		f.out.Finish = FinishOf(ev.Response.Finish)
	}
	if !f.turn.Live.Structured() {
		f.speech.add(ev)
	}
}

// holds reports whether the reply stays open for the answer of a person.
func (f *following) holds(res *pawl.Result) bool {
	asks := slices.ContainsFunc(res.Pending, func(p pawl.PendingCall) bool { return !p.Passive })
	return f.Handler.Hold && f.send != nil && asks
}

// ask says which calls wait for a person, and where they are answered: as reasoning if the client
// gets any, and as text otherwise. In structured output there is no place for text.
func (f *following) ask(res *pawl.Result) error {
	open, err := f.Runs.Show(f.Context(), f.Caller(), f.turn.ID, slices.Clone(res.Pending))
	if err != nil {
		return err
	}
	for i, p := range open {
		if p.Passive {
			continue
		}
		said := "Waits for a person: " + shortened(p.Call.Name+" "+string(p.Call.Args))
		if link := f.link(&res.Pending[i]); link != "" {
			said += "\nApprove or deny: " + link
		}

		switch {
		case f.think.say != nil:
			if !f.think.atLineStart() {
				said = "\n" + said
			}
			f.think.add(f.step, said+"\n")
		case !f.turn.Live.Structured():
			f.speech.write("\n\n" + said)
		}
	}
	return nil
}

// link returns the address of a page where a call is answered; "" means none. A client without the
// scope for decisions gets none, because the page needs no token.
func (f *following) link(p *pawl.PendingCall) string {
	if f.Handler.ApprovalLink == nil || !f.Client.May(api.ScopeDecide) {
		return ""
	}
	link := f.Handler.ApprovalLink(f.Client.Scope, runs.BaseName(f.turn.Agent), f.turn.ID, *p)
	if len(link) > 0 && link[0] == '/' {
		return web.Base(f.Request) + link
	}
	return link
}

// await returns the next attempt of a run that waits for an answer. Meanwhile the client gets
// heartbeats. A client that leaves changes nothing: its next equal request waits for the same
// answer.
func (f *following) await() (*runs.Live, error) {
	beat := func() bool {
		f.send.Beat()
		return true // the end of the request says that the client has left
	}
	next, err := f.AwaitResumed(f.turn.Live, beat)
	switch {
	case err == web.ErrStopping:
		return nil, f.stopping()
	case next == nil && err == nil: // it has stopped since then
		return f.Runs.Attach(f.Context(), f.Caller(), f.turn.ID)
	}
	return next, err
}
