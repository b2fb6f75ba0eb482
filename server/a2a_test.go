package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/parts"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/server/api"
)

var works = []api.Scope{api.ScopeRun, api.ScopeRead}

var a2aTokens = []api.Token{
	{Name: "ann", Token: strings.Repeat("a", 32), Tenant: "one", User: "ann", Scopes: append(works, api.ScopeDecide)},
	{Name: "bob", Token: strings.Repeat("b", 32), Tenant: "two", User: "bob", Scopes: append(works, api.ScopeDecide)},
	{Name: "eve", Token: strings.Repeat("e", 32), Tenant: "one", User: "ann", Scopes: works},
	{Name: "run", Token: strings.Repeat("r", 32), Tenant: "one", User: "ann", Scopes: works[:1]},
}

// a2aServer serves the clerk over A2A, with an address that lets its tool wait return.
func a2aServer(t *testing.T) (*world, *httptest.Server) {
	w := &world{gate: make(chan struct{}, 100)}
	v := serve(t, func(o *options) {
		o.Agents, o.A2A, o.Access.Tokens = []*pawl.Agent{clerk(w)}, &server.A2A{}, a2aTokens
		o.Front.About = map[string]server.About{"clerk": {Title: "Clerk", Description: "Pays invoices."}}
	})
	front := http.NewServeMux()
	front.Handle("/", v.s)
	front.HandleFunc("POST /test/release", func(http.ResponseWriter, *http.Request) { w.gate <- struct{}{} })
	h := httptest.NewServer(front)
	t.Cleanup(h.Close)
	return w, h
}

// The official JavaScript client at its default settings, over both transports: what it sees, and
// each payment once.
func TestA2AClient(t *testing.T) {
	path := parts.Packages(t, filepath.Join("testdata", "a2a"), "@a2a-js/sdk/package.json")
	for binding, prefix := range map[string]string{"rpc": "JsonRpc", "rest": "Rest"} {
		t.Run(binding, func(t *testing.T) {
			w, h := a2aServer(t)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, path, "client.mjs", h.URL, a2aTokens[0].Token, binding)
			cmd.Dir = filepath.Join("testdata", "a2a")
			out, err := cmd.Output()
			if err != nil {
				var exit *exec.ExitError
				if errors.As(err, &exit) {
					t.Fatalf("%v: %s", err, exit.Stderr)
				}
				t.Fatal(err)
			}
			var got map[string]any
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for name, want := range map[string]any{
				"failed": "failed: ", "both": "completed: Done: found Oslo; found Rome", "failedWrite": "failed: ",
				"text": "completed: You said: hello ", "history": true, "question": "input: pay",
				"approved": "completed: Done: paid 1", "denied": "completed: Done: Denied: yes",
				"edited": "completed: Done: (Not run as you asked: the approver changed the arguments to {\"invoice\":30})\npaid 30",
				"get":    "completed: Done: paid 4", "twice": true, "cancelled": "canceled: ",
				"cancelOver": prefix + "TaskNotCancelableError", "unknown": prefix + "TaskNotFoundError", "listed": 2.0,
			} {
				if got[name] != want {
					t.Errorf("%s: got %q, want %q", name, got[name], want)
				}
			}
			for name, want := range map[string]map[string]any{
				"stream":       {"answer": "Done: found Oslo", "seen": "task working completed"},
				"streamed":     {"answer": "Done: paid 4", "seen": "task working completed"},
				"subscribed":   {"answer": "Done: waited", "seen": "task completed"},
				"disconnected": {"answer": "Done: waited", "seen": "task completed"},
			} {
				if !reflect.DeepEqual(got[name], map[string]any(want)) {
					t.Errorf("%s: got %v, want %v", name, got[name], want)
				}
			}
			if n := w.paid.Load(); n != 4 {
				t.Errorf("%d payments, want 4", n)
			}
		})
	}
}

// a2aBearer adds a token to requests.
type a2aBearer string

func (b a2aBearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// The official Go client: what a token may do, whose tasks it sees, and the errors of the protocol.
func TestA2ATenants(t *testing.T) {
	w, h := a2aServer(t)
	card := a2aCardOf(t, h)
	if card.Name != "Clerk" || card.Description != "Pays invoices." || len(card.SecuritySchemes) != 1 ||
		strings.Contains(fmt.Sprint(card), "pay a") || card.SupportedInterfaces[0].URL != h.URL+"/a2a/clerk" {
		t.Errorf("the card is %+v", card)
	}
	as := func(token api.Token) *a2aclient.Client { return a2aAs(t, card, token) }
	ann, bob, eve := as(a2aTokens[0]), as(a2aTokens[1]), as(a2aTokens[2])
	say := a2aSay
	res, err := ann.SendMessage(t.Context(), say("pay 7"))
	if err != nil {
		t.Fatal(err)
	}
	task := res.(*a2a.Task)
	if task.Status.State != a2a.TaskStateInputRequired {
		t.Fatalf("the task is %+v", task)
	}
	_, err = bob.GetTask(t.Context(), &a2a.GetTaskRequest{ID: task.ID})
	if !errors.Is(err, a2a.ErrTaskNotFound) {
		t.Errorf("another tenant gets %v", err)
	}
	_, err = bob.CancelTask(t.Context(), &a2a.CancelTaskRequest{ID: task.ID})
	if !errors.Is(err, a2a.ErrTaskNotFound) {
		t.Errorf("another tenant cancels: %v", err)
	}
	asked := task.Status.Message.Parts[1].Data().(map[string]any)["pawl"].([]any)[0].(map[string]any)
	data := a2a.NewDataPart(map[string]any{
		"pawl": []any{map[string]any{"key": asked["key"], "digest": asked["digest"], "approve": true}}})
	yes := &a2a.SendMessageRequest{Message: a2a.NewMessageForTask(a2a.MessageRoleUser, task, data)}
	// a token without the scope decide has its question again
	res, err = eve.SendMessage(t.Context(), yes)
	if err != nil || res.(*a2a.Task).Status.State != a2a.TaskStateInputRequired || w.paid.Load() != 0 {
		t.Errorf("a token without the scope decides: %+v, %v, %d payments", res, err, w.paid.Load())
	}
	// the control: a token with it
	res, err = ann.SendMessage(t.Context(), yes)
	if err != nil || res.(*a2a.Task).Status.State != a2a.TaskStateCompleted || w.paid.Load() != 1 {
		t.Errorf("the approval: %+v, %v, %d payments", res, err, w.paid.Load())
	}
	for name, f := range map[string]struct {
		do   func() error
		want error
	}{
		"message to an ended task": {func() error {
			_, err := ann.SendMessage(t.Context(), yes)
			return err
		}, a2a.ErrUnsupportedOperation},
		"subscription to an ended task": {func() error {
			for _, err := range ann.SubscribeToTask(t.Context(), &a2a.SubscribeToTaskRequest{ID: task.ID}) {
				return err
			}
			return nil
		}, a2a.ErrUnsupportedOperation},
		"push": {func() error {
			_, err := ann.CreateTaskPushConfig(t.Context(), &a2a.PushConfig{TaskID: task.ID, URL: "https://example.com"})
			return err
		}, a2a.ErrPushNotificationNotSupported},
		"list of push": {func() error {
			_, err := ann.ListTaskPushConfigs(t.Context(), &a2a.ListTaskPushConfigRequest{TaskID: task.ID})
			return err
		}, a2a.ErrPushNotificationNotSupported},
		"get push": {func() error {
			_, err := ann.GetTaskPushConfig(t.Context(), &a2a.GetTaskPushConfigRequest{TaskID: task.ID, ID: "x"})
			return err
		}, a2a.ErrPushNotificationNotSupported},
		"delete push": {func() error {
			return ann.DeleteTaskPushConfig(t.Context(), &a2a.DeleteTaskPushConfigRequest{TaskID: task.ID, ID: "x"})
		}, a2a.ErrPushNotificationNotSupported},
		"no task": {func() error {
			_, err := ann.GetTask(t.Context(), &a2a.GetTaskRequest{ID: "run_x"})
			return err
		}, a2a.ErrTaskNotFound},
	} {
		if err := f.do(); !errors.Is(err, f.want) {
			t.Errorf("%s: got %v, want %v", name, err, f.want)
		}
	}
	res2, err := http.Post(h.URL+"/a2a/clerk", "application/json", strings.NewReader("{}"))
	if err != nil || res2.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %v, %v", res2, err)
	}
	res2.Body.Close()
}

func a2aCardOf(t *testing.T, h *httptest.Server) *a2a.AgentCard {
	t.Helper()
	return a2aCardAt(t, h.URL)
}

func a2aCardAt(t *testing.T, url string) *a2a.AgentCard {
	t.Helper()
	card, err := agentcard.DefaultResolver.Resolve(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return card
}

func a2aAs(t *testing.T, card *a2a.AgentCard, token api.Token) *a2aclient.Client {
	t.Helper()
	c, err := a2aclient.NewFromCard(t.Context(), card,
		a2aclient.WithJSONRPCTransport(&http.Client{Transport: a2aBearer(token.Token)}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func a2aSay(text string) *a2a.SendMessageRequest {
	return &a2a.SendMessageRequest{Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart(text))}
}

// A context is a conversation, text is the result of the only passive call, and a token that may
// start tasks gets their results although it may not read others.
func TestA2AConversation(t *testing.T) {
	w, h := a2aServer(t)
	c := a2aAs(t, a2aCardOf(t, h), a2aTokens[3])
	send := func(r *a2a.SendMessageRequest) *a2a.Task {
		t.Helper()
		res, err := c.SendMessage(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return res.(*a2a.Task)
	}
	answer := func(task *a2a.Task) string {
		t.Helper()
		if task.Status.State != a2a.TaskStateCompleted || len(task.Artifacts) != 1 {
			t.Fatalf("the task is %+v", task)
		}
		return task.Artifacts[0].Parts[0].Text()
	}
	first := send(a2aSay("hello"))
	for of, want := range map[string]string{first.ContextID: "3", "": "1", "another": "1"} {
		next := a2aSay("count")
		next.Message.ContextID = of
		if got := answer(send(next)); got != want {
			t.Errorf("a task of the context %q has %s messages before its answer, want %s", of, got, want)
		}
	}
	asked := send(a2aSay("ask"))
	if asked.Status.State != a2a.TaskStateInputRequired {
		t.Fatalf("the task is %+v", asked)
	}
	text := &a2a.SendMessageRequest{Message: a2a.NewMessageForTask(a2a.MessageRoleUser, asked, a2a.NewTextPart("Oslo"))}
	if got := answer(send(text)); got != "Done: Oslo" {
		t.Errorf("the answer is %q", got)
	}
	if _, err := c.GetTask(t.Context(), &a2a.GetTaskRequest{ID: asked.ID}); !errors.Is(err, a2a.ErrUnauthorized) {
		t.Errorf("the token without the scope read gets %v", err)
	}
	wait := a2aSay("wait")
	wait.Config = &a2a.SendMessageConfig{ReturnImmediately: true}
	busy := send(wait)
	text = &a2a.SendMessageRequest{Message: a2a.NewMessageForTask(a2a.MessageRoleUser, busy, a2a.NewTextPart("faster"))}
	if _, err := c.SendMessage(t.Context(), text); !errors.Is(err, a2a.ErrUnsupportedOperation) {
		t.Errorf("text for a task that asks nothing: %v", err)
	}
	w.gate <- struct{}{}
	twice := a2aSay("pay 1")
	twice.Message.ID = wait.Message.ID
	twice.Message.ContextID = busy.ContextID
	if _, err := c.SendMessage(t.Context(), twice); !errors.Is(err, a2a.ErrUnsupportedOperation) {
		t.Errorf("another message with the same ID: %v", err)
	}
	if got := answer(send(&a2a.SendMessageRequest{Message: wait.Message})); got != "Done: waited" {
		t.Errorf("the control, the same message again: %q", got)
	}
}

// Requests that are wrong get the error of the protocol, and start nothing.
func TestA2AWrongRequests(t *testing.T) {
	_, h := a2aServer(t)
	post := func(version, body string) (string, string) {
		t.Helper()
		req, _ := http.NewRequestWithContext(t.Context(), "POST", h.URL+"/a2a/clerk", strings.NewReader(body))
		req.Header.Set("A2A-Version", version)
		req.Header.Set("Content-Type", "application/json")
		res, err := (&http.Client{Transport: a2aBearer(a2aTokens[0].Token)}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var got struct {
			Error struct {
				Code    json.Number
				Message string
			}
		}
		if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
			t.Fatalf("%.100s: %v", body, err)
		}
		return got.Error.Code.String(), got.Error.Message
	}
	call := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
	}
	say := func(id, more string) string {
		return call("SendMessage", `{"message":{"messageId":"`+id+`","role":"ROLE_USER"`+more+`}}`)
	}
	for version, want := range map[string]string{"9.9": "-32009", "": "-32009", "0.3": "-32009", "1.0": "-32001", "1.0.2": "-32001"} {
		if got, _ := post(version, call("GetTask", `{"id":"a2a_x"}`)); got != want {
			t.Errorf("version %q: got %s, want %s", version, got, want)
		}
	}
	for name, test := range map[string]struct{ body, want string }{
		"not JSON":               {`{`, "-32700"},
		"too large":              {say("a", `,"parts":[{"text":"`+strings.Repeat("x", 5<<20)+`"}]`), "-32700"},
		"no method":              {`{"jsonrpc":"2.0","id":1}`, "-32600"},
		"an unknown method":      {call("Reset", `{}`), "-32601"},
		"params of another type": {call("GetTask", `{"id":[]}`), "-32602"},
		"no message":             {call("SendMessage", `{}`), "-32602"},
		"no messageId":           {say("", `,"parts":[{"text":"hello"}]`), "-32602"},
		"no parts":               {say("a", ``), "-32602"},
		"a long messageId":       {say(strings.Repeat("x", 300), `,"parts":[{"text":"hello"}]`), "-32602"},
		"a long contextId":       {say("a", `,"contextId":"`+strings.Repeat("x", 300)+`","parts":[{"text":"hello"}]`), "-32602"},
		"a URL of a file":        {say("a", `,"parts":[{"url":"file:///etc/passwd","mediaType":"image/png"}]`), "-32602"},
		"an answer to no task":   {say("a", `,"parts":[{"data":{"pawl":[]}}]`), "-32602"},
		"an unknown task":        {say("a", `,"taskId":"a2a_x","parts":[{"text":"hello"}]`), "-32001"},
		"the ID of no task":      {call("GetTask", `{"id":"../a2a_x"}`), "-32001"},
		"a push config": {call("SendMessage", `{"message":{"messageId":"a","role":"ROLE_USER","parts":[{"text":"hello"}]},`+
			`"configuration":{"taskPushNotificationConfig":{"url":"http://127.0.0.1"}}}`), "-32003"},
	} {
		if got, text := post("1.0", test.body); got != test.want || strings.Contains(text, "panic") {
			t.Errorf("%s: got %s %s, want %s", name, got, text, test.want)
		}
	}
	c := a2aAs(t, a2aCardOf(t, h), a2aTokens[0])
	if res, err := c.ListTasks(t.Context(), &a2a.ListTasksRequest{}); err != nil || len(res.Tasks) != 0 {
		t.Errorf("the wrong requests have started %+v, %v", res, err)
	}
	for range 7 { // the control, and pages: by ID they would be in order once in 5,040
		if _, err := c.SendMessage(t.Context(), a2aSay("hello")); err != nil {
			t.Fatal(err)
		}
	}
	seen, token, last := 0, "", time.Now().Add(time.Hour)
	for page := 0; page == 0 || token != ""; page++ {
		req := &a2a.ListTasksRequest{PageSize: 2, PageToken: token, Status: a2a.TaskStateCompleted}
		res, err := c.ListTasks(t.Context(), req)
		if err != nil || res.TotalSize != 7 || page > 3 {
			t.Fatalf("page %d is %+v, %v", page, res, err)
		}
		for _, task := range res.Tasks { // the last change first
			if task.Status.Timestamp.After(last) {
				t.Errorf("page %d: a task of %v follows one of %v", page, task.Status.Timestamp, last)
			}
			last = *task.Status.Timestamp
		}
		seen, token = seen+len(res.Tasks), res.NextPageToken
	}
	if seen != 7 {
		t.Errorf("%d tasks are listed, want 7", seen)
	}
}
