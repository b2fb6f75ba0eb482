package outside_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/outside"
)

// other is an agent of the SDK's own server. The first word of a message says what it does.
type other struct{ begun, cancelled atomic.Int32 }

func (o *other) Execute(ctx context.Context, x *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		o.begun.Add(1)
		text := x.Message.Parts[0].Text()
		status := func(s a2a.TaskState, text string) bool {
			m := a2a.NewMessageForTask(a2a.MessageRoleAgent, x, a2a.NewTextPart(text))
			return yield(a2a.NewStatusUpdateEvent(x, s, m), nil)
		}
		if x.StoredTask == nil && !yield(a2a.NewSubmittedTask(x, x.Message), nil) {
			return
		}
		switch word, rest, _ := strings.Cut(text, " "); word {
		case "ask":
			status(a2a.TaskStateInputRequired, "Which colour?")
		case "fail":
			status(a2a.TaskStateFailed, "no paint")
		case "wait":
			<-ctx.Done()
		default:
			yield(a2a.NewArtifactEvent(x, a2a.NewTextPart("painted "+rest), a2a.NewDataPart(map[string]any{"litres": 2})), nil)
			status(a2a.TaskStateCompleted, "")
		}
	}
}

func (o *other) Cancel(_ context.Context, x *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		o.cancelled.Add(1)
		yield(a2a.NewStatusUpdateEvent(x, a2a.TaskStateCanceled, nil), nil)
	}
}

// A tool of the A2A protocol against the server of the official SDK: results, a question and its
// answer, failures, and headers that go to the agent's own host only.
func TestA2ATool(t *testing.T) {
	t.Setenv("PAINTER_TOKEN", "s3cret-of-the-painter")
	o := new(other)
	var streams atomic.Bool
	streams.Store(true)
	rpc := a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(o))
	var address string
	card := &a2a.AgentCard{Name: "painter", Version: "1"}
	mux := http.NewServeMux()
	mux.HandleFunc(a2asrv.WellKnownAgentCardPath, func(w http.ResponseWriter, _ *http.Request) {
		card.Capabilities.Streaming = streams.Load()
		card.SupportedInterfaces = []*a2a.AgentInterface{a2a.NewAgentInterface(address, a2a.TransportProtocolJSONRPC)}
		_ = json.NewEncoder(w).Encode(card)
	})
	mux.HandleFunc("/rpc", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer s3cret-of-the-painter" {
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		rpc.ServeHTTP(w, r)
	})
	h := httptest.NewServer(mux)
	defer h.Close()
	address = h.URL + "/rpc"
	defs, err := outside.Parse([]byte("tools:\n  - a2a:\n      name: painter\n      description: Paints walls.\n      url: " + h.URL +
		"\n      headers: {Authorization: \"Bearer ${PAINTER_TOKEN}\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	set, err := outside.New(defs, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s := set.Secrets(); len(s) != 1 || s[0] != "s3cret-of-the-painter" {
		t.Errorf("the secrets are %q", s)
	}
	do := func(args map[string]string) llm.ToolResult {
		b, _ := json.Marshal(args) // strings always marshal
		return pawl.Toolsets{set}.Execute(t.Context(), llm.ToolCall{ID: "c", Name: "painter", Args: b}).Result
	}
	if got := do(map[string]string{"message": "paint the wall"}); got.IsError || got.Text() != "painted the wall\n{\"litres\":2}" {
		t.Errorf("the result is %+v", got)
	}
	asked := do(map[string]string{"message": "ask me"})
	var data struct{ Task, Context, State string }
	err = json.Unmarshal(asked.Data, &data)
	if err != nil || data.State != "input_required" || !strings.Contains(asked.Text(), "Which colour?") {
		t.Fatalf("the question is %+v, %v", asked, err)
	}
	if got := do(map[string]string{"message": "in blue", "task": data.Task, "context": data.Context}); got.IsError || !strings.HasPrefix(got.Text(), "painted blue") {
		t.Errorf("the answer is %+v", got)
	}
	if got := do(map[string]string{"message": "fail"}); !got.IsError || !strings.Contains(got.Text(), "no paint") {
		t.Errorf("the failure is %+v", got)
	}
	// an agent without streams, and a call that is cancelled: so is its task
	for _, with := range []bool{true, false} {
		streams.Store(with)
		if set, err = outside.New(defs, nil); err != nil {
			t.Fatal(err)
		}
		if got := do(map[string]string{"message": "paint the wall"}); got.IsError || !strings.HasPrefix(got.Text(), "painted the wall") {
			t.Errorf("streams %v: the result is %+v", with, got)
		}
		// a call may end before the client knows the task
		cancelled := false
		for d := 100 * time.Millisecond; !cancelled && d < 30*time.Second; d *= 2 {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			pawl.Toolsets{set}.Execute(ctx, llm.ToolCall{ID: "c", Name: "painter", Args: json.RawMessage(`{"message":"wait"}`)})
			cancel()
			cancelled = o.cancelled.Swap(0) > 0
		}
		if !cancelled {
			t.Errorf("streams %v: the task was not cancelled", with)
		}
	}
	// a card that sends the headers to another host
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another host was asked") }))
	defer other.Close()
	address = other.URL + "/rpc"
	if set, err = outside.New(defs, nil); err != nil {
		t.Fatal(err)
	}
	begun := o.begun.Load()
	if got := do(map[string]string{"message": "paint"}); !got.IsError || !strings.Contains(got.Text(), "names no address of") || o.begun.Load() != begun {
		t.Errorf("a card of another host: %+v", got)
	}
	for text, want := range map[string]string{
		"name: x":                       "description is empty",
		"name: x\n      description: y": "want a whole address",
		"name: x\n      description: y\n      url: http://{host}/": "no argument can stand in the host",
	} {
		defs, err := outside.Parse([]byte("tools:\n  - a2a:\n      " + text + "\n"))
		if err == nil {
			_, err = outside.New(defs, nil)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// A task that stays at work, also after its cancellation, ends its call at the timeout, and a
// later call is made as usual.
func TestA2AStaysWorking(t *testing.T) {
	done := make(chan struct{})
	var cancelled atomic.Int32
	mux := http.NewServeMux()
	h := httptest.NewServer(mux)
	mux.HandleFunc(a2asrv.WellKnownAgentCardPath, func(w http.ResponseWriter, _ *http.Request) {
		card := &a2a.AgentCard{Name: "painter", Version: "1"}
		card.SupportedInterfaces = []*a2a.AgentInterface{a2a.NewAgentInterface(h.URL+"/rpc", a2a.TransportProtocolJSONRPC)}
		_ = json.NewEncoder(w).Encode(card)
	})
	mux.HandleFunc("/rpc", func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&q)
		task := `{"id":"t1","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}`
		switch q.Method {
		case "SendMessage":
			task = `{"task":` + task + `}`
		case "CancelTask": // no answer
			cancelled.Add(1)
			<-done
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, task)
	})
	defer h.Close()
	defer close(done)

	set, err := outside.New([]outside.Definition{{A2A: &outside.A2A{
		Name:        "painter",
		Description: "Paints walls.",
		URL:         h.URL,
		Timeout:     outside.Duration(200 * time.Millisecond),
	}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		x := pawl.Toolsets{set}.Execute(t.Context(), llm.ToolCall{
			ID:   "c",
			Name: "painter",
			Args: json.RawMessage(`{"message":"paint"}`),
		})
		if x.Outcome != pawl.OutcomeTimeout || !strings.Contains(x.Result.Text(), "within 200ms") {
			t.Errorf("the call ended with %s: %s", x.Outcome, x.Result.Text())
		}
	}
	if cancelled.Load() == 0 {
		t.Error("the task was not cancelled")
	}
}
