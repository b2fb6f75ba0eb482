package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
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
	"github.com/pawl-go/pawl/server"
)

var works = []server.Scope{server.ScopeRun, server.ScopeRead}

var a2aTokens = []server.Token{
	{Name: "ann", Token: strings.Repeat("a", 32), Tenant: "one", User: "ann", Scopes: append(works, server.ScopeDecide)},
	{Name: "bob", Token: strings.Repeat("b", 32), Tenant: "two", User: "bob", Scopes: append(works, server.ScopeDecide)},
	{Name: "eve", Token: strings.Repeat("e", 32), Tenant: "one", User: "ann", Scopes: works},
}

// a2aServer serves the clerk over A2A, with an address that lets its tool wait return.
func a2aServer(t *testing.T) (*world, *httptest.Server) {
	w := &world{gate: make(chan struct{}, 100)}
	v := serve(t, func(o *server.Options) {
		o.Agents, o.A2A, o.Tokens = []*pawl.Agent{clerk(w)}, &server.A2A{}, a2aTokens
		o.About = map[string]server.About{"clerk": {Title: "Clerk", Description: "Pays invoices."}}
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
	path, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat(filepath.Join("testdata", "a2a", "node_modules", "@a2a-js", "sdk", "package.json"))
	}
	if err != nil {
		t.Skipf("left out: the client is not installed (make test does it): %v", err)
	}
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
				"stream":     {"answer": "Done: found Oslo", "seen": "task working completed"},
				"streamed":   {"answer": "Done: paid 4", "seen": "task working completed"},
				"subscribed": {"answer": "Done: waited", "seen": "task working completed"},
			} {
				if !reflect.DeepEqual(got[name], map[string]any(want)) {
					t.Errorf("%s: got %v, want %v", name, got[name], want)
				}
			}
			if n := w.paid.Load(); n != 3 {
				t.Errorf("%d payments, want 3", n)
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
	card, err := agentcard.DefaultResolver.Resolve(t.Context(), h.URL)
	if err != nil {
		t.Fatal(err)
	}
	if card.Name != "Clerk" || card.Description != "Pays invoices." || len(card.SecuritySchemes) != 1 ||
		strings.Contains(fmt.Sprint(card), "pay a") || card.SupportedInterfaces[0].URL != h.URL+"/a2a/clerk" {
		t.Errorf("the card is %+v", card)
	}
	as := func(token server.Token) *a2aclient.Client {
		c, err := a2aclient.NewFromCard(t.Context(), card,
			a2aclient.WithJSONRPCTransport(&http.Client{Transport: a2aBearer(token.Token)}))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	ann, bob, eve := as(a2aTokens[0]), as(a2aTokens[1]), as(a2aTokens[2])
	say := func(text string) *a2a.SendMessageRequest {
		return &a2a.SendMessageRequest{Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart(text))}
	}
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
		"no task": {func() error {
			_, err := ann.GetTask(t.Context(), &a2a.GetTaskRequest{ID: "run_x"})
			return err
		}, a2a.ErrTaskNotFound},
	} {
		if err := f.do(); !errors.Is(err, f.want) {
			t.Errorf("%s: got %v, want %v", name, err, f.want)
		}
	}
	for version, want := range map[string]string{"9.9": "-32009", "": "-32009", "0.3": "-32009", "1.0": "-32001", "1.0.2": "-32001"} {
		body := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"a2a_x"}}`)
		req, _ := http.NewRequestWithContext(t.Context(), "POST", h.URL+"/a2a/clerk", body)
		req.Header.Set("A2A-Version", version)
		req.Header.Set("Content-Type", "application/json")
		res, err := (&http.Client{Transport: a2aBearer(a2aTokens[0].Token)}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Error struct{ Code json.Number } }
		if err := json.NewDecoder(res.Body).Decode(&got); err != nil || got.Error.Code.String() != want {
			t.Errorf("version %q: got %v, %v, want %s", version, got, err, want)
		}
		res.Body.Close()
	}
	res2, err := http.Post(h.URL+"/a2a/clerk", "application/json", strings.NewReader("{}"))
	if err != nil || res2.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %v, %v", res2, err)
	}
	res2.Body.Close()
}
