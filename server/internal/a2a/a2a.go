package a2a

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/internal/access"
	"github.com/pawl-go/pawl/server/internal/conversation"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/internal/web"
	"github.com/pawl-go/pawl/store"
)

// a2aPrefix begins the IDs of runs that are tasks.
const a2aPrefix = "a2a_"

// a2aAnswer is the ID of the artifact with the answer of a task.
const a2aAnswer a2a.ArtifactID = "answer"

// mostA2AID is the maximum length of the IDs of messages and contexts, which clients choose.
const mostA2AID = 256

// a2aTasks handles the methods of the protocol. The context of a request has its call. The SDK's
// own handler, without an agent, refuses the methods for push notifications and the extended card.
type a2aTasks struct{ a2asrv.RequestHandler }

type a2aCall struct {
	*call
	agent string // the name of the agent in the path, with its version
}

func a2aOf(ctx context.Context) a2aCall {
	c, _ := ctx.Value(a2aCall{}).(a2aCall)
	return c
}

// MuxA2A adds the addresses of the protocol.
func (s *Handler) MuxA2A(mux *http.ServeMux) {
	beat := a2asrv.WithTransportKeepAlive(s.O.Beat)
	tasks := a2aTasks{a2asrv.NewHandler(nil, a2asrv.WithLogger(s.O.Log))}
	rpc, rest := a2asrv.NewJSONRPCHandler(tasks, beat), a2asrv.NewRESTHandler(tasks, beat)
	handle := func(pattern string, scope access.Scope, do func(c a2aCall, a *pawl.Agent) error) {
		rt := &web.Route{Scope: scope, Or: access.ScopeRun, Do: func(w *web.Call) error {
			c := &call{conversation.Call{Call: w}}
			a, err := s.Agent(c.R.PathValue("agent"))
			if err != nil {
				return err
			}
			return do(a2aCall{c, a.Name}, a)
		}}
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.Answer(w, r, rt) })
	}
	card := func(c a2aCall, a *pawl.Agent) error { return c.Write(http.StatusOK, s.a2aCard(a, c.R)) }
	handle("GET "+a2asrv.WellKnownAgentCardPath, "", card)
	handle("GET /a2a/{agent}"+a2asrv.WellKnownAgentCardPath, "", card)
	methods := func(path string, h http.Handler) func(a2aCall, *pawl.Agent) error {
		return func(c a2aCall, _ *pawl.Agent) error {
			http.StripPrefix("/a2a/"+c.R.PathValue("agent")+path, h).ServeHTTP(c.W,
				c.R.WithContext(context.WithValue(c.Ctx(), a2aCall{}, c)))
			return nil
		}
	}
	handle("POST /a2a/{agent}", access.ScopeRead, methods("", rpc))
	handle("/a2a/{agent}/rest/", access.ScopeRead, methods("/rest", rest))
}

// a2aCard describes an agent, without its tools.
func (s *Handler) a2aCard(a *pawl.Agent, r *http.Request) *a2a.AgentCard {
	about := s.O.About[a.Name]
	base := strings.TrimSuffix(cmp.Or(s.Options.URL, "http://"+r.Host), "/") + "/a2a/" + url.PathEscape(a.Name)
	about.Title = cmp.Or(about.Title, a.Name)
	about.Description = cmp.Or(about.Description, "The agent "+a.Name+".")
	name, version, _ := strings.Cut(a.Name, "@")
	card := &a2a.AgentCard{Name: about.Title, Description: about.Description, Version: cmp.Or(version, "1"),
		SupportedInterfaces: []*a2a.AgentInterface{a2a.NewAgentInterface(base, a2a.TransportProtocolJSONRPC),
			a2a.NewAgentInterface(base+"/rest", a2a.TransportProtocolHTTPJSON)},
		Capabilities:       a2a.AgentCapabilities{Streaming: true},
		DefaultInputModes:  []string{"text/plain", "application/json", "image/*"},
		DefaultOutputModes: []string{"text/plain"},
		Skills: []a2a.AgentSkill{{ID: name, Name: about.Title, Description: about.Description,
			Tags: []string{"agent"}}}}
	if len(a.Output) > 0 {
		card.DefaultOutputModes = []string{"application/json"}
	}
	if len(s.Clients) > 0 || s.Authenticate != nil {
		card.SecuritySchemes = a2a.NamedSecuritySchemes{"bearer": a2a.HTTPAuthSecurityScheme{Scheme: "Bearer"}}
		card.SecurityRequirements = a2a.SecurityRequirementsOptions{{"bearer": {}}}
	}
	return card
}

// a2aError converts an error for the client.
func (c a2aCall) a2aError(err error) error {
	var ours *a2a.Error
	if err == nil || errors.As(err, &ours) || errors.Is(err, a2a.ErrPushNotificationNotSupported) {
		return err
	} else if err == runs.ErrElsewhere {
		return a2a.NewError(a2a.ErrServerError, "another process continues the task; subscribe to it")
	}
	e := runs.ToError(err)
	if e.Cause != nil || e.Status == http.StatusInternalServerError {
		c.S.O.Log.Error("a request failed", "path", c.R.URL.Path, "error", cmp.Or(e.Cause, error(e)))
	}
	kind, ok := map[string]error{"not_found": a2a.ErrTaskNotFound, "wrong_scope": a2a.ErrUnauthorized,
		"bad_request": a2a.ErrInvalidParams, "misfit": a2a.ErrInvalidParams, "conflict": a2a.ErrUnsupportedOperation}[e.Code]
	if !ok {
		kind = a2a.ErrServerError
	}
	return a2a.NewError(kind, strings.TrimSuffix(c.S.O.Secrets.String(e.Message)+"; "+e.Hint, "; "))
}

// check refuses versions of the protocol that the server does not speak, and missing scopes.
func (c a2aCall) check(scope access.Scope, or ...access.Scope) error {
	v := cmp.Or(c.R.Header.Get("A2A-Version"), c.R.URL.Query().Get("A2A-Version"))
	if v != "1.0" && !strings.HasPrefix(v, "1.0.") {
		v = cmp.Or(v, "missing, which means 0.3")
		return a2a.NewError(a2a.ErrVersionNotSupported, "the header A2A-Version is "+v+"; 1.0 is supported")
	}
	if !c.Client.May(scope) && !slices.ContainsFunc(or, c.Client.May) {
		return a2a.NewError(a2a.ErrUnauthorized, "the token of "+c.Client.Name+" needs the scope "+string(scope))
	}
	return nil
}

// head returns the run of a task of the agent. With ended, a task that has ended is this error.
func (c a2aCall) head(id a2a.TaskID, ended error) (store.JournalRun, error) {
	none := runs.Fault("not_found", "there is no task "+string(id), "")
	if !strings.HasPrefix(string(id), a2aPrefix) || store.CheckID(string(id)) != nil {
		return store.JournalRun{}, none
	}
	h, err := c.S.O.Journal.JournalRun(c.Ctx(), c.Client.Scope(), string(id))
	if err == nil && !c.ours(h) {
		err = none
	} else if err == nil && ended != nil && (h.State == store.JournalOver || h.State == store.JournalFailed) {
		err = ended
	}
	return h, err
}

// ours reports whether a run is of the agent in the path, in any version.
func (c a2aCall) ours(h store.JournalRun) bool {
	is, _, _ := strings.Cut(h.Agent, "@")
	want, _, _ := strings.Cut(c.agent, "@")
	return is == want
}

// send starts a task or answers its questions.
func (c a2aCall) send(r *a2a.SendMessageRequest) (*runs.Live, error) {
	if err := c.check(access.ScopeRun, access.ScopeDecide); err != nil {
		return nil, err
	}
	m := r.Message
	switch {
	case m == nil || m.ID == "":
		return nil, runs.BadRequest("message or messageId is missing", "each message has an id of its own")
	case len(m.ID) > mostA2AID || len(m.ContextID) > mostA2AID:
		return nil, runs.BadRequest("messageId or contextId is too long", fmt.Sprintf("at most %d bytes are allowed", mostA2AID))
	case r.Config != nil && r.Config.PushConfig != nil:
		return nil, a2a.ErrPushNotificationNotSupported
	}
	msg, answers, err := c.input(m)
	if err != nil {
		return nil, err
	}
	in := &conversation.Front{Prefix: a2aPrefix}
	if m.TaskID != "" {
		return c.answerTask(in, m.TaskID, msg, answers)
	}
	if len(msg.Parts) == 0 {
		return nil, runs.BadRequest("the message answers a question, and names no task", "taskId is the task that asked")
	}
	in.Dress.Message, in.Dress.Thread = m.ID, cmp.Or(m.ContextID, "ctx_"+runs.Short(20, m.ID))
	in.Model, in.Prefix, err = c.Conversation("a2a", "", in.Dress.Thread)
	if err != nil {
		return nil, err
	}
	said, _ := json.Marshal(msg) // it was decoded from JSON
	sum := sha256.Sum256(said)
	in.Key = m.ID
	in.Dress.Print = sum[:]
	before, err := c.Newest(in.Prefix, store.JournalOver)
	if err != nil {
		return nil, err
	}
	if before != nil {
		in.Dress.Before = before.ID
	}
	in.Messages = []llm.Message{msg}
	return c.StartFront(in)
}

// answerTask passes the answers of a message to the questions of a task. Text alone is no approval:
// it denies, and is the reason. It is the result of a call if the task waits for this call alone.
func (c a2aCall) answerTask(in *conversation.Front, id a2a.TaskID, msg llm.Message, answers []llm.Decision) (*runs.Live, error) {
	h, err := c.head(id,
		a2a.NewError(a2a.ErrUnsupportedOperation, "the task has ended; leave taskId out and keep contextId"))
	if err != nil {
		return nil, err
	}
	in.Run = h.ID
	_, open, err := c.Waiting(h.ID)
	if err != nil {
		return nil, err
	}
	if len(answers) == 0 && len(open) == 0 {
		return nil, a2a.NewError(a2a.ErrUnsupportedOperation, "the task asks nothing at present; wait for its end, or cancel it")
	}
	for _, p := range open {
		switch {
		case len(answers) > 0:
		case !p.Passive:
			in.Answers = append(in.Answers, llm.Decision{Key: p.Key, Digest: p.Digest, Reason: msg.Text()})
		case len(open) == 1:
			res := llm.TextResult(msg.Text())
			in.Answers = append(in.Answers, llm.Decision{Key: p.Key, Result: &res})
		}
	}
	in.Answers = append(in.Answers, answers...)
	return c.GoOnFront(in)
}

// current returns the task of a run with its present state.
func (c a2aCall) current(id string, history *int) (*a2a.Task, error) {
	h, err := c.head(a2a.TaskID(id), nil)
	if err != nil {
		return nil, err
	}
	return c.task(h, history)
}

// updates yields a task and its updates until it has ended or asks something. begin returns its
// run. sent means that the client has just sent a message: the first event shows the task at its
// start.
func (c a2aCall) updates(sent bool, begin func() (*runs.Live, error)) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		leave, err := c.EnterStream()
		if err != nil {
			yield(nil, c.a2aError(err))
			return
		}
		defer leave()
		l, err := begin()
		var t *a2a.Task
		if err == nil {
			t, err = c.current(l.Id, nil)
		}
		if err != nil {
			yield(nil, c.a2aError(err))
			return
		}
		if sent {
			t.Status = a2a.TaskStatus{State: a2a.TaskStateSubmitted}
			t.Artifacts = nil
			t.History = t.History[:min(1, len(t.History))]
		}
		if !yield(t, nil) {
			return
		}
		step := 0
		for e, err := range l.Events(c.R.Context(), true, nil, nil) {
			var out a2a.Event
			switch {
			case err != nil:
				yield(nil, c.a2aError(err))
				return
			case e.Run != "run":
				continue
			case e.Kind == pawl.EventRunEnded:
				c.last(l, yield)
				return
			case e.Kind == pawl.EventStepStarted && t.Status.State != a2a.TaskStateWorking:
				t.Status.State = a2a.TaskStateWorking
				out = a2a.NewStatusUpdateEvent(t, a2a.TaskStateWorking, nil)
			case e.Kind == pawl.EventText && !l.Structured:
				// the text of a step replaces the text of the step before
				part := a2a.NewArtifactUpdateEvent(t, a2aAnswer, a2a.NewTextPart(e.Text))
				part.Append, step = e.Step == step, e.Step
				out = part
			default:
				continue
			}
			if !yield(out, nil) {
				return
			}
		}
	}
}

// last yields the last updates of a stream: the whole answer, and the state.
func (c a2aCall) last(l *runs.Live, yield func(a2a.Event, error) bool) {
	err := l.Await(c.R.Context())
	var t *a2a.Task
	if err == nil {
		t, err = c.current(l.Id, nil)
	}
	if err != nil {
		yield(nil, c.a2aError(err))
		return
	}
	for _, a := range t.Artifacts {
		last := &a2a.TaskArtifactUpdateEvent{TaskID: t.ID, ContextID: t.ContextID, Artifact: a, LastChunk: true}
		if !yield(last, nil) {
			return
		}
	}
	yield(&a2a.TaskStatusUpdateEvent{TaskID: t.ID, ContextID: t.ContextID, Status: t.Status}, nil)
}

// SendMessage starts or continues a task and waits for its end or its question.
func (a2aTasks) SendMessage(ctx context.Context, r *a2a.SendMessageRequest) (a2a.SendMessageResult, error) {
	c, o := a2aOf(ctx), cmp.Or(r.Config, &a2a.SendMessageConfig{})
	l, err := c.send(r)
	if err == nil && !o.ReturnImmediately {
		err = l.Await(c.R.Context())
	}
	if err != nil {
		return nil, c.a2aError(err)
	}
	t, err := c.current(l.Id, o.HistoryLength)
	return t, c.a2aError(err)
}

// SendStreamingMessage starts or continues a task and yields its updates.
func (a2aTasks) SendStreamingMessage(ctx context.Context, r *a2a.SendMessageRequest) iter.Seq2[a2a.Event, error] {
	c := a2aOf(ctx)
	return c.updates(true, func() (*runs.Live, error) { return c.send(r) })
}

// SubscribeToTask yields the updates of a task that has not ended.
func (a2aTasks) SubscribeToTask(ctx context.Context, r *a2a.SubscribeToTaskRequest) iter.Seq2[a2a.Event, error] {
	c := a2aOf(ctx)
	return c.updates(false, func() (*runs.Live, error) {
		if err := c.check(access.ScopeRead); err != nil {
			return nil, err
		}
		h, err := c.head(r.ID, a2a.NewError(a2a.ErrUnsupportedOperation, "the task has ended; get it instead"))
		if err != nil {
			return nil, err
		}
		return c.Look(runs.Place{Who: h.Scope, Id: h.ID})
	})
}

// GetTask returns a task.
func (a2aTasks) GetTask(ctx context.Context, r *a2a.GetTaskRequest) (*a2a.Task, error) {
	c := a2aOf(ctx)
	if err := c.check(access.ScopeRead); err != nil {
		return nil, err
	}
	t, err := c.current(string(r.ID), r.HistoryLength)
	return t, c.a2aError(err)
}

// ListTasks returns the tasks of the agent that the client may see, the last change first.
func (a2aTasks) ListTasks(ctx context.Context, r *a2a.ListTasksRequest) (*a2a.ListTasksResponse, error) {
	c := a2aOf(ctx)
	if err := c.check(access.ScopeRead); err != nil {
		return nil, err
	}
	prefix := a2aPrefix
	if r.ContextID != "" {
		var err error
		_, prefix, err = c.Conversation("a2a", "", r.ContextID)
		if err != nil {
			return nil, c.a2aError(err)
		}
	}
	var all []store.JournalRun
	for p := (store.Page{After: prefix, Limit: 1000}); ; {
		heads, err := c.S.O.Journal.JournalRuns(c.Ctx(), c.Client.Scope(), "", p)
		if err != nil {
			return nil, c.a2aError(err)
		}
		for _, h := range heads {
			p.After = h.ID
			if strings.HasPrefix(h.ID, prefix) && c.ours(h) &&
				(r.Status == "" || r.Status == state(c.S.ToRun(h))) &&
				(r.StatusTimestampAfter == nil || h.Updated.After(*r.StatusTimestampAfter)) {
				all = append(all, h)
			}
		}
		if len(heads) < p.Limit || !strings.HasPrefix(p.After, prefix) {
			break
		}
	}
	place := func(h store.JournalRun) string {
		return fmt.Sprintf("%020d.%s", math.MaxInt64-h.Updated.UnixNano(), h.ID)
	}
	slices.SortFunc(all, func(a, b store.JournalRun) int { return cmp.Compare(place(a), place(b)) })
	out := &a2a.ListTasksResponse{Tasks: []*a2a.Task{}, TotalSize: len(all),
		PageSize: min(cmp.Or(max(r.PageSize, 0), 50), 100)}
	all = slices.DeleteFunc(all, func(h store.JournalRun) bool { return place(h) <= r.PageToken })
	if n := out.PageSize; len(all) > n {
		all, out.NextPageToken = all[:n], place(all[n-1])
	}
	for _, h := range all {
		t, err := c.task(h, cmp.Or(r.HistoryLength, new(int)))
		if err != nil {
			return nil, c.a2aError(err)
		}
		if !r.IncludeArtifacts {
			t.Artifacts = nil
		}
		out.Tasks = append(out.Tasks, t)
	}
	return out, nil
}

// CancelTask cancels a task that has not ended.
func (a2aTasks) CancelTask(ctx context.Context, r *a2a.CancelTaskRequest) (*a2a.Task, error) {
	c := a2aOf(ctx)
	if err := c.check(access.ScopeRun); err != nil {
		return nil, err
	}
	h, err := c.head(r.ID, a2a.NewError(a2a.ErrTaskNotCancelable, "the task has ended"))
	if err != nil {
		return nil, c.a2aError(err)
	}
	l, err := c.GiveUp(h.ID)
	if err != nil {
		return nil, c.a2aError(err)
	}
	c.Settle(l)
	t, err := c.current(h.ID, nil)
	return t, c.a2aError(err)
}
