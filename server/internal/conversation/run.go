package conversation

// run.go: starts and continues the run of a request.

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// Start starts the run of a request, or finds the run of an equal one.
func (c *Call) Start(in *Request) (*runs.Live, error) {
	if !c.Client.May(api.ScopeRun) {
		return nil, runs.Fault("wrong_scope", "the token of "+c.Client.Name+" may not start runs",
			"it needs the scope "+string(api.ScopeRun))
	}
	if n := len(in.Messages); n == 0 || in.Messages[n-1].Role != llm.RoleUser {
		return nil, runs.BadRequest("the conversation does not end with a message of the user", "")
	}
	in.Extras.Thread = cmp.Or(in.Extras.Thread, strings.TrimSuffix(in.Prefix, "_"))
	id, exists, err := c.runOf(in)
	if err != nil {
		return nil, err
	}
	if exists {
		return c.attachTo(in, id)
	}

	// What the server stored precedes the message, and not the client's copy of it.
	before, err := c.settled(in.Extras.Before)
	if err != nil {
		return nil, err
	}
	return c.create(in, id, before)
}

// create starts the run of a request with that ID after the messages before.
func (c *Call) create(in *Request, id string, before []llm.Message) (*runs.Live, error) {
	in.ID = id
	in.Messages = append(before, in.Messages...)
	l, err := c.Runs.Create(c.Context(), c.Caller(), in.Request)
	if l != nil {
		return l, nil
	}
	if err != nil && !errors.Is(err, store.ErrConflict) {
		return nil, err
	}
	return c.Runs.Attach(c.Context(), c.Caller(), id) // an equal request was faster
}

// runOf returns the ID of the run of a request, which an equal request finds again, and whether the
// run exists.
func (c *Call) runOf(in *Request) (id string, exists bool, err error) {
	if in.Numbered {
		return c.numbered(in)
	}
	said, err := json.Marshal(in.Messages)
	if err != nil {
		return "", false, err
	}
	id = in.Prefix + Hash(20, in.Extras.Before, "", string(said))
	if in.Key != "" {
		id = in.Prefix + Hash(20, in.Key)
	}

	_, err = c.Runs.Head(c.Context(), c.Caller(), id)
	if errors.Is(err, store.ErrNotFound) {
		return id, false, nil
	}
	return id, err == nil, err
}

// attachTo returns the existing run of a request. A run that the client names by its own ID must
// have begun with the same message.
func (c *Call) attachTo(in *Request, id string) (*runs.Live, error) {
	x, err := c.Runs.Extras(c.Context(), c.Caller(), id)
	if err != nil {
		return nil, err
	}
	if x != nil && in.Key != "" {
		same := x.Message == in.Extras.Message && bytes.Equal(x.Print, in.Extras.Print)
		if !same {
			return nil, runs.Fault("conflict", "the run "+in.Key+" was begun with another message", "take another ID")
		}
	}
	return c.Runs.Attach(c.Context(), c.Caller(), id)
}

// settled returns the conversation of a run, which is cancelled if it has not ended: the user has
// written another message, which is no approval of its calls. An empty ID has none.
func (c *Call) settled(id string) ([]llm.Message, error) {
	if id == "" {
		return nil, nil
	}
	l, err := c.Runs.Cancel(c.Context(), c.Caller(), id)
	if err != nil {
		return nil, err
	}
	if err := l.Wait(c.Request.Context()); err != nil {
		return nil, err
	}
	msgs, err := c.Runs.Transcript(c.Context(), c.Caller(), id)
	if err != nil {
		return nil, err
	}

	var results []llm.ToolResult
	for _, open := range (&pawl.Result{Messages: msgs}).Calls() {
		r := llm.ErrorResult("Not executed: the user wrote another message instead of approving.")
		r.CallID = open.ID
		results = append(results, r)
	}
	if len(results) > 0 {
		msgs = append(msgs, llm.Results(results...))
	}
	return msgs, nil
}

// Continue passes the answers of a request to its run and continues it. Answers that the token may
// not give, and answers to other questions, are dropped: the stream contains the questions again.
func (c *Call) Continue(in *Request) (*runs.Live, error) {
	if !strings.HasPrefix(in.Run, in.Prefix) {
		return nil, runs.BadRequest("the last message belongs to no run of this conversation",
			"its id is the id that the server gave it")
	}
	_, open, err := c.Runs.Pending(c.Context(), c.Caller(), in.Run)
	if err != nil {
		return nil, err
	}

	var ds []llm.Decision
	for _, d := range in.Answers {
		for _, call := range open {
			if !answers(d, call) {
				continue
			}
			d.Digest = call.Digest
			if d.Result != nil {
				d.Result.CallID = call.Call.ID
			}
			signed := []llm.Decision{d}
			if c.Caller().Sign(open, signed) == nil {
				ds = append(ds, signed...)
			}
		}
	}
	if len(ds) == 0 {
		return c.continueReturned(in)
	}
	return c.Runs.Answer(c.Context(), c.Caller(), in.Run, ds, in.Messages...)
}

// continueReturned starts the run that follows in.Run with the results of the calls that in.Run has
// returned. Without a result for each of them it attaches to in.Run.
func (c *Call) continueReturned(in *Request) (*runs.Live, error) {
	x, _, err := c.Runs.Stored(c.Context(), c.Caller(), in.Run)
	if err != nil {
		return nil, err
	}
	returned := runs.Returned(x)
	var results []llm.ToolResult
	for _, call := range returned {
		i := slices.IndexFunc(in.Answers, func(d llm.Decision) bool { return answers(d, call) })
		if i >= 0 {
			r := *in.Answers[i].Result
			r.CallID = call.Call.ID
			results = append(results, r)
		}
	}
	if len(results) == 0 || len(results) < len(returned) || !c.Client.May(api.ScopeRun) {
		return c.Runs.Attach(c.Context(), c.Caller(), in.Run)
	}

	before, err := c.Runs.Transcript(c.Context(), c.Caller(), in.Run)
	if err != nil {
		return nil, err
	}
	in.Extras.Before = in.Run
	in.Messages = append([]llm.Message{llm.Results(results...)}, in.Messages...)
	id, exists, err := c.runOf(in)
	switch {
	case err != nil:
		return nil, err
	case exists:
		return c.Runs.Attach(c.Context(), c.Caller(), id)
	}
	return c.create(in, id, before)
}

// answers reports whether d answers a pending call: a passive call with a result, and any other
// call with a decision about these arguments.
func answers(d llm.Decision, call pawl.PendingCall) bool {
	switch {
	case d.Key != call.Key:
		return false
	case call.Passive:
		return d.Result != nil
	}
	return d.Result == nil && d.Digest == call.Digest
}
