package server

// front.go: what the endpoints of front ends share: the runs of a conversation, and their streams.

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/uistream"
	"github.com/pawl-go/pawl/store"
)

// front is a request of a front end. Its conversation is a chain of runs: each message of the
// assistant is a run, whose ID the client sends back with the message.
type front struct {
	asked
	prefix  string // of the IDs of the runs of the conversation
	key     string // the client's ID of the run, which then decides about its ID; "" means none
	again   bool   // a new run, even if an equal request had one
	o       uistream.Options
	run     string         // the run to continue; "" means a new one
	answers []llm.Decision // for calls of that run
}

// short returns a hash of texts that an ID can contain.
func short(n int, texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:n])
}

// conversation returns the prefix of the runs of a conversation with the agent in the path, or with
// the agent of that name, or with the only one.
func (c *call) conversation(protocol, agent, chat string) (name, prefix string, err error) {
	a, err := c.s.agent(cmp.Or(c.r.PathValue("agent"), agent))
	if err != nil {
		return "", "", err
	}
	return a.Name, protocol + "_" + short(16, a.Name, chat) + "_", nil
}

// newest returns the newest run of a conversation in a state; "" means any. Nil means that there is
// none.
func (c *call) newest(prefix, state string) (last *store.JournalRun, err error) {
	for p := (store.Page{After: prefix, Limit: 1000}); ; {
		heads, err := c.s.o.Journal.JournalRuns(c.ctx(), c.client.scope(), state, p)
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

// follows sets the run that n messages follow: the run of the assistant's last message, whose own
// messages replace the client's copy, and adds the messages behind it. run returns the run of a
// message, or another text.
func (c *call) follows(in *front, n int, run func(i int) string, message func(i int) (llm.Message, error)) error {
	from := 0
	for i := n - 1; i >= 0 && from == 0; i-- {
		id := run(i)
		if !strings.HasPrefix(id, in.prefix) {
			continue
		}
		_, err := c.s.o.Journal.JournalRun(c.ctx(), c.client.scope(), id)
		if err == nil {
			in.dress.Before = id
			from = i + 1
		} else if !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	for i := from; i < n; i++ {
		switch msg, err := message(i); {
		case err != nil:
			return badRequest("messages: "+err.Error(), "")
		case msg.Role == llm.RoleSystem:
			in.system(msg.Parts)
		case len(msg.Parts) > 0:
			in.messages = append(in.messages, msg)
		}
	}
	return nil
}

// startFront starts the run of a request, or finds the run of an equal one.
func (c *call) startFront(in *front) (*live, error) {
	if !c.client.may(ScopeRun) {
		return nil, fault("wrong_scope", "the token of "+c.client.Name+" may not start runs", "it needs the scope "+string(ScopeRun))
	}
	if n := len(in.messages); n == 0 || in.messages[n-1].Role != llm.RoleUser {
		return nil, badRequest("the conversation does not end with a message of the user", "")
	}
	said, err := json.Marshal(in.messages)
	if err != nil {
		return nil, err
	}
	in.dress.Thread = cmp.Or(in.dress.Thread, strings.TrimSuffix(in.prefix, "_"))
	p := place{c.client.scope(), in.prefix + short(20, in.dress.Before, "", string(said))}
	if in.key != "" {
		p.id = in.prefix + short(20, in.key)
	}
	for n, id := 1, p.id; ; n++ {
		if n > 1 {
			p.id = id + "-r" + strconv.Itoa(n)
		}
		_, err := c.s.o.Journal.JournalRun(c.ctx(), p.who, p.id)
		switch {
		case in.again && (n == 1 || err == nil):
			continue
		case err == nil:
			d, err := c.s.dressOf(c.ctx(), p)
			if err != nil {
				return nil, err
			} else if was := &in.dress; d != nil && in.key != "" &&
				(d.Message != was.Message || !bytes.Equal(d.Print, was.Print)) {
				return nil, fault("conflict", "the run "+in.key+" was begun with another message", "take another ID")
			}
			return c.look(p)
		case !errors.Is(err, store.ErrNotFound):
			return nil, err
		}
		before, err := c.settled(in.dress.Before)
		if err != nil {
			return nil, err
		}
		in.messages = append(before, in.messages...)
		if t, err := c.launch(p.id, in.asked); t != nil {
			return t.live, nil
		} else if err != nil && !errors.Is(err, store.ErrConflict) {
			return nil, err
		}
		return c.look(p)
	}
}

// settled returns the conversation of a run, which is cancelled if it has not ended: the user has
// written another message, which is no approval of its calls. An empty ID has none.
func (c *call) settled(id string) ([]llm.Message, error) {
	if id == "" {
		return nil, nil
	}
	l, err := c.giveUp(id)
	if err != nil {
		return nil, err
	}
	if err := l.await(c.r.Context()); err != nil {
		return nil, err
	}
	msgs, err := c.transcript(id)
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

// goOnFront passes the answers to a run and continues it. Answers that the token may not give, and
// answers to other questions, are dropped: the stream contains the questions again.
func (c *call) goOnFront(in *front) (*live, error) {
	p := place{c.client.scope(), in.run}
	if !strings.HasPrefix(in.run, in.prefix) {
		return nil, badRequest("the last message belongs to no run of this conversation", "its id is the one that the server gave it")
	}
	head, open, err := c.waiting(p.id)
	if err != nil {
		return nil, err
	}
	var ds []llm.Decision
	for _, d := range in.answers {
		i := slices.IndexFunc(open, func(w pawl.PendingCall) bool { return w.Key == d.Key })
		if i < 0 || open[i].Passive != (d.Result != nil) || d.Result == nil && d.Digest != open[i].Digest {
			continue
		}
		d.Digest = open[i].Digest
		if d.Result != nil {
			d.Result.CallID = open[i].Call.ID
		}
		if one := []llm.Decision{d}; c.may(open, one) == nil {
			ds = append(ds, one...)
		}
	}
	if len(ds) == 0 {
		return c.look(p)
	}
	return c.takeAnswers(p, head.Agent, ds, in.messages)
}

// answerFront begins or continues the run of a request and sends its stream.
func (c *call) answerFront(in *front) error {
	leave, err := c.enterStream()
	if err != nil {
		return err
	}
	defer leave()
	begin := c.startFront
	if in.run != "" {
		begin = c.goOnFront
	}
	l, err := begin(in)
	if err != nil {
		return err
	}
	return c.tellFront(l, in.o)
}

// tellFront sends the stream of a run until it has ended or asks something.
func (c *call) tellFront(l *live, o uistream.Options) error {
	o.Beat, o.Wait = c.s.o.Beat, c.s.o.Wait
	l.readers.Add(1)
	defer func() { // a run without a reader goes on, unless it is to be cancelled
		if l.readers.Add(-1) == 0 && c.r.Context().Err() != nil && c.onDisconnect(l.agent) == "cancel" {
			c.abandon(l.id, func() bool { return l.readers.Load() == 0 })
		}
	}()
	// an error means that the client has disconnected
	_ = uistream.Write(c.w, l.events(c.r.Context(), true, nil, nil), c.options(l, o))
	return nil
}

// options returns o for a run.
func (c *call) options(l *live, o uistream.Options) uistream.Options {
	list, err := pawl.Toolsets(l.job.agent.Tools).Tools(c.ctx())
	if err != nil {
		c.s.o.Log.Warn("listing the tools of a run", "run", l.id, "error", err)
	}
	o.Run = l.id
	o.Agent = l.agent
	o.Passive = func(name string) bool {
		return slices.ContainsFunc(list, func(t *pawl.Tool) bool { return t.Name == name && t.Passive })
	}
	return o
}

// events yields the events of a run. With wait they end with the run, else with the last event so
// far. While there are none, each tick calls beat. If the run continues in another process, the
// error is http.ErrAbortHandler: the response must break off, since clients take its plain end for
// success.
func (l *live) events(ctx context.Context, wait bool, tick <-chan time.Time,
	beat func() bool) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		for after := int64(0); ; {
			batch, ended, more := l.feed.read(after, batchBytes)
			for _, e := range batch {
				after = e.n
				if ev, err := e.event(); !yield(ev, err) || err != nil {
					return
				}
			}
			switch {
			case len(batch) > 0:
			case ended:
				yield(pawl.Event{}, http.ErrAbortHandler)
				return
			case !wait && !l.story:
				return
			default:
				select {
				case <-more:
				case <-tick:
					beat()
				case <-ctx.Done():
					yield(pawl.Event{}, context.Cause(ctx))
					return
				}
			}
		}
	}
}
