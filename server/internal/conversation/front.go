package conversation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/internal/access"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/uistream"
	"github.com/pawl-go/pawl/store"
)

// Front is a request of a front end. Its conversation is a chain of runs: each message of the
// assistant is a run, whose ID the client sends back with the message.
type Front struct {
	runs.Asked
	Prefix  string // of the IDs of the runs of the conversation
	Key     string // the client's ID of the run, which then decides about its ID; "" means none
	Again   bool   // a new run, even if an equal request had one
	O       uistream.Options
	Run     string         // the run to continue; "" means a new one
	Answers []llm.Decision // for calls of that run
}

// Conversation returns the prefix of the runs of a conversation with the agent in the path, or with
// the agent of that name, or with the only one.
func (c *Call) Conversation(protocol, agent, chat string) (name, prefix string, err error) {
	a, err := c.S.Agent(cmp.Or(c.R.PathValue("agent"), agent))
	if err != nil {
		return "", "", err
	}
	return a.Name, protocol + "_" + runs.Short(16, a.Name, chat) + "_", nil
}

// Newest returns the newest run of a conversation in a state; "" means any. Nil means that there is
// none.
func (c *Call) Newest(prefix, state string) (last *store.JournalRun, err error) {
	for p := (store.Page{After: prefix, Limit: 1000}); ; {
		heads, err := c.S.O.Journal.JournalRuns(c.Ctx(), c.Client.Scope(), state, p)
		for _, h := range heads {
			p.After = h.ID
			if strings.HasPrefix(h.ID, prefix) && (last == nil || !h.Created.Before(last.Created)) {
				last = &h
			}
		}
		if err != nil || len(heads) < p.Limit || !strings.HasPrefix(p.After, prefix) {
			return last, err
		}
	}
}

// Follows sets the run that n messages follow: the run of the assistant's last message, whose own
// messages replace the client's copy, and adds the messages behind it. run returns the run of a
// message, or another text.
func (c *Call) Follows(in *Front, n int, run func(i int) string, message func(i int) (llm.Message, error)) error {
	from := 0
	for i := n - 1; i >= 0 && from == 0; i-- {
		id := run(i)
		if !strings.HasPrefix(id, in.Prefix) {
			continue
		}
		_, err := c.S.O.Journal.JournalRun(c.Ctx(), c.Client.Scope(), id)
		if err == nil {
			in.Dress.Before = id
			from = i + 1
		} else if !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	for i := from; i < n; i++ {
		switch msg, err := message(i); {
		case err != nil:
			return runs.BadRequest("messages: "+err.Error(), "")
		case msg.Role == llm.RoleSystem:
			in.System(msg.Parts)
		case len(msg.Parts) > 0:
			in.Messages = append(in.Messages, msg)
		}
	}
	return nil
}

// StartFront starts the run of a request, or finds the run of an equal one.
func (c *Call) StartFront(in *Front) (*runs.Live, error) {
	if !c.Client.May(access.ScopeRun) {
		return nil, runs.Fault("wrong_scope", "the token of "+c.Client.Name+" may not start runs", "it needs the scope "+string(access.ScopeRun))
	}
	if n := len(in.Messages); n == 0 || in.Messages[n-1].Role != llm.RoleUser {
		return nil, runs.BadRequest("the conversation does not end with a message of the user", "")
	}
	said, err := json.Marshal(in.Messages)
	if err != nil {
		return nil, err
	}
	in.Dress.Thread = cmp.Or(in.Dress.Thread, strings.TrimSuffix(in.Prefix, "_"))
	p := runs.Place{Who: c.Client.Scope(), Id: in.Prefix + runs.Short(20, in.Dress.Before, "", string(said))}
	if in.Key != "" {
		p.Id = in.Prefix + runs.Short(20, in.Key)
	}
	for n, id := 1, p.Id; ; n++ {
		if n > 1 {
			p.Id = id + "-r" + strconv.Itoa(n)
		}
		_, err := c.S.O.Journal.JournalRun(c.Ctx(), p.Who, p.Id)
		switch {
		case in.Again && (n == 1 || err == nil):
			continue
		case err == nil:
			d, err := c.S.DressOf(c.Ctx(), p)
			if err != nil {
				return nil, err
			} else if was := &in.Dress; d != nil && in.Key != "" &&
				(d.Message != was.Message || !bytes.Equal(d.Print, was.Print)) {
				return nil, runs.Fault("conflict", "the run "+in.Key+" was begun with another message", "take another ID")
			}
			return c.Look(p)
		case !errors.Is(err, store.ErrNotFound):
			return nil, err
		}
		before, err := c.settled(in.Dress.Before)
		if err != nil {
			return nil, err
		}
		in.Messages = append(before, in.Messages...)
		if l, err := c.Launch(p.Id, in.Asked); l != nil {
			return l, nil
		} else if err != nil && !errors.Is(err, store.ErrConflict) {
			return nil, err
		}
		return c.Look(p)
	}
}

// settled returns the conversation of a run, which is cancelled if it has not ended: the user has
// written another message, which is no approval of its calls. An empty ID has none.
func (c *Call) settled(id string) ([]llm.Message, error) {
	if id == "" {
		return nil, nil
	}
	l, err := c.GiveUp(id)
	if err != nil {
		return nil, err
	}
	if err := l.Await(c.R.Context()); err != nil {
		return nil, err
	}
	msgs, err := c.Transcript(id)
	var results []llm.ToolResult
	for _, open := range (&pawl.Result{Messages: msgs}).Calls() {
		r := llm.ErrorResult("Not executed: the user wrote another message instead of approving.")
		r.CallID = open.ID
		results = append(results, r)
	}
	if len(results) > 0 {
		msgs = append(msgs, llm.Results(results...))
	}
	return msgs, err
}

// GoOnFront passes the answers to a run and continues it. Answers that the token may not give, and
// answers to other questions, are dropped: the stream contains the questions again.
func (c *Call) GoOnFront(in *Front) (*runs.Live, error) {
	p := runs.Place{Who: c.Client.Scope(), Id: in.Run}
	if !strings.HasPrefix(in.Run, in.Prefix) {
		return nil, runs.BadRequest("the last message belongs to no run of this conversation", "its id is the one that the server gave it")
	}
	head, open, err := c.Waiting(p.Id)
	if err != nil {
		return nil, err
	}
	var ds []llm.Decision
	for _, d := range in.Answers {
		i := slices.IndexFunc(open, func(w pawl.PendingCall) bool { return w.Key == d.Key })
		if i < 0 || open[i].Passive != (d.Result != nil) || d.Result == nil && d.Digest != open[i].Digest {
			continue
		}
		d.Digest = open[i].Digest
		if d.Result != nil {
			d.Result.CallID = open[i].Call.ID
		}
		if one := []llm.Decision{d}; c.May(open, one) == nil {
			ds = append(ds, one...)
		}
	}
	if len(ds) == 0 {
		return c.Look(p)
	}
	return c.TakeAnswers(p, head.Agent, ds, in.Messages)
}

// AnswerFront begins or continues the run of a request and sends its stream.
func (c *Call) AnswerFront(in *Front) error {
	leave, err := c.EnterStream()
	if err != nil {
		return err
	}
	defer leave()
	begin := c.StartFront
	if in.Run != "" {
		begin = c.GoOnFront
	}
	l, err := begin(in)
	if err != nil {
		return err
	}
	return c.TellFront(l, in.O)
}

// TellFront sends the stream of a run until it has ended or asks something.
func (c *Call) TellFront(l *runs.Live, o uistream.Options) error {
	o.Beat, o.Wait = c.S.O.Beat, c.S.O.Wait
	l.Readers.Add(1)
	defer func() { // a run without a reader goes on, unless it is to be cancelled
		if l.Readers.Add(-1) == 0 && c.R.Context().Err() != nil && c.OnDisconnect(l.Agent) == "cancel" {
			c.Abandon(l.Id, func() bool { return l.Readers.Load() == 0 })
		}
	}()
	// an error means that the client has disconnected
	_ = uistream.Write(c.W, broken(l.Events(c.R.Context(), true, nil, nil)), c.Options(l, o))
	return nil
}

// Options returns o for a run.
func (c *Call) Options(l *runs.Live, o uistream.Options) uistream.Options {
	list, err := pawl.Toolsets(l.Job.Agent.Tools).Tools(c.Ctx())
	if err != nil {
		c.S.O.Log.Warn("listing the tools of a run", "run", l.Id, "error", err)
	}
	o.Run, o.Agent = l.Id, l.Agent
	o.Passive = func(name string) bool {
		return slices.ContainsFunc(list, func(t *pawl.Tool) bool { return t.Name == name && t.Passive })
	}
	return o
}

// broken yields events, and http.ErrAbortHandler in place of runs.ErrElsewhere: the response must
// break off, since clients take its plain end for success.
func broken(events iter.Seq2[pawl.Event, error]) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		for e, err := range events {
			if err == runs.ErrElsewhere {
				err = http.ErrAbortHandler
			}
			if !yield(e, err) {
				return
			}
		}
	}
}
