package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/durabletest"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/client"
	"github.com/pawl-go/pawl/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serving starts a server and returns its URL and the functions that stop it.
func serving(a *pawl.Agent, j store.Journal, tokens []api.Token,
	change func(http.Handler) http.Handler) (url string, carry http.RoundTripper, end func() error, err error) {
	s, err := server.New([]*pawl.Agent{a}, j, &server.Options{Access: server.Access{Tokens: tokens}})
	if err != nil {
		return "", nil, nil, err
	}
	var handler http.Handler = s
	if change != nil {
		handler = change(s)
	}
	h := httptest.NewServer(handler)
	transport := &http.Transport{}
	return h.URL, transport, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		err := s.Close(ctx)
		transport.CloseIdleConnections()
		h.Close()
		return err
	}, nil
}

func serve(t *testing.T, a *pawl.Agent, change func(http.Handler) http.Handler) (*client.Client, store.Journal) {
	t.Helper()
	j := new(store.MemoryJournal)
	url, carry, end, err := serving(a, j, nil, change)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	return client.New(url, &client.Options{HTTP: carry, Pause: time.Millisecond}), j
}

const token = "0123456789abcdef"

// A run through a server has the same outcome as a run without one. The test uses the suite that
// all engines must pass, with plans, agents as tools, questions and answers.
func TestConformance(t *testing.T) {
	durabletest.Conform(t, 60, func(ctx context.Context, id string, c *durabletest.Case,
		w durabletest.World) (*journal.Export, error) {
		j := new(store.MemoryJournal)
		// the name of the person who decides in the suite
		url, carry, end, err := serving(c.Agent(w), j,
			[]api.Token{{Name: "somebody", Token: token, Scopes: []api.Scope{api.ScopeAll}}}, nil)
		if err != nil {
			return nil, err
		}
		run := client.New(url, &client.Options{HTTP: carry, Token: token}).Runner(id, "main")
		err = drive(ctx, run, c.Messages(), w)
		if err = errors.Join(err, end()); err != nil {
			return nil, err
		}
		return (&durable.Engine{Journal: j}).Export(ctx, id)
	})
}

// drive executes a run and answers its pending calls.
func drive(ctx context.Context, run pawl.Runner, msgs []llm.Message, w durabletest.World) error {
	for range 50 {
		res, err := runtest.Ended(pawl.Collect(run.Stream(ctx, msgs...), nil))
		if err != nil || res.Stop != pawl.StopPending {
			return err
		}
		if msgs, err = durabletest.Answers(ctx, w, res.Pending); err != nil {
			return err
		}
	}
	return errors.New("it asks for ever")
}

func collect(run pawl.Runner, ctx context.Context, msgs ...llm.Message) (all []pawl.Event, err error) {
	for e, err := range run.Stream(ctx, msgs...) {
		if err != nil {
			return all, err
		}
		all = append(all, e)
	}
	return all, nil
}

func kinds(all []pawl.Event) string {
	var b strings.Builder
	for _, e := range all {
		b.WriteString(string(e.Kind) + " ")
	}
	return b.String()
}

func talker() *pawl.Agent {
	turn := script.Func(func(req *llm.Request) script.Turn {
		if strings.HasPrefix(req.Messages[len(req.Messages)-1].Text(), "fail") {
			return script.Fail(&llm.ProviderError{Provider: "test", Code: llm.CodeServer, Message: "no"})
		}
		return script.Say(strings.Repeat("One word after the other. ", 100))
	})
	return &pawl.Agent{Name: "talker", Model: &script.Model{Turns: []script.Turn{script.Loop(turn)}}}
}

// An agent emits the same events through a server as in this process, with the same positions.
func TestTheSameEvents(t *testing.T) {
	near, err := collect(talker(), t.Context(), llm.User("hello"))
	if err != nil {
		t.Fatal(err)
	}
	c, _ := serve(t, talker(), nil)
	far, err := collect(c.Runner("r", ""), t.Context(), llm.User("hello"))
	if err != nil {
		t.Fatal(err)
	}
	if kinds(near) != kinds(far) || len(near) < 20 {
		t.Errorf("here:  %s\nthere: %s", kinds(near), kinds(far))
	}
	for i := range far {
		if far[i].Seq != near[i].Seq || far[i].Text != near[i].Text {
			t.Errorf("event %d: got %+v, want %+v", i, far[i], near[i])
			break
		}
	}
	if got, want := far[len(far)-1].Result.Text(), near[len(near)-1].Result.Text(); got != want {
		t.Errorf("the answer: %q, want %q", got, want)
	}
}

// A connection that breaks after every few bytes is reopened, and no event is lost or repeated.
func TestABrokenStreamIsTakenUp(t *testing.T) {
	whole, _ := serve(t, talker(), nil)
	want, err := collect(whole.Runner("r", "talker"), t.Context(), llm.User("hello"))
	if err != nil {
		t.Fatal(err)
	}
	var broken atomic.Int32
	c, _ := serve(t, talker(), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(&breaking{ResponseWriter: w, broken: &broken}, r)
		})
	})
	got, err := collect(c.Runner("r", "talker"), t.Context(), llm.User("hello"))
	if err != nil {
		t.Fatal(err)
	}
	if kinds(got) != kinds(want) || int(broken.Load()) != len(breaks) {
		t.Errorf("broken %d times\ngot  %s\nwant %s", broken.Load(), kinds(got), kinds(want))
	}
}

// breaks lists the numbers of bytes after which connections break, in order, anywhere in an event.
// Later connections stay whole.
var breaks = []int{1000, 3000, 6000}

// breaking closes a connection after the number of bytes in breaks, however they are divided into
// writes.
type breaking struct {
	http.ResponseWriter
	sent   int
	broken *atomic.Int32
}

func (b *breaking) Write(p []byte) (int, error) {
	if n := int(b.broken.Load()); n < len(breaks) && b.sent+len(p) > breaks[n] {
		_, _ = b.ResponseWriter.Write(p[:breaks[n]-b.sent])
		_ = http.NewResponseController(b.ResponseWriter).Flush()
		b.broken.Add(1)
		panic(http.ErrAbortHandler)
	}
	b.sent += len(p)
	return b.ResponseWriter.Write(p)
}

// Unwrap returns the underlying writer for a ResponseController.
func (b *breaking) Unwrap() http.ResponseWriter { return b.ResponseWriter }

func TestErrorsOfTheServer(t *testing.T) {
	c, _ := serve(t, talker(), nil)
	_, err := collect(c.Runner("f", "talker"), t.Context(), llm.User("fail"))
	var said *client.Error
	if !errors.As(err, &said) || said.Code != "model_failed" {
		t.Errorf("got %v", err)
	}
	if _, err = collect(c.Runner("x", "nobody"), t.Context(), llm.User("hi")); !errors.As(err, &said) ||
		said.Code != "not_found" || said.Status != 404 {
		t.Errorf("got %v", err)
	}
	if _, err = collect(c.Runner("x", "talker"), t.Context()); !errors.As(err, &said) || said.Code != "not_found" {
		t.Errorf("got %v", err)
	}
	if _, err = collect(c.Runner("", "talker"), t.Context(), llm.User("hi")); err == nil {
		t.Error("a run without an id")
	}
	if _, err = collect(client.New("http://127.0.0.1:1", &client.Options{Retries: -1}).Runner("x", ""), t.Context(), llm.User("hi")); err == nil {
		t.Error("the server is not reachable")
	}
}

// A run cancelled with ErrCancelled is cancelled on the server, and its events arrive to the end.
// Any other end of the context lets it continue.
func TestCancelling(t *testing.T) {
	gate := make(chan struct{})
	wait := pawl.Func("wait", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
		select {
		case <-gate:
			return "waited", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	a := &pawl.Agent{Name: "waiter", Model: script.New(script.Call("wait", `{}`), script.Say("done")), Tools: []pawl.Toolset{wait}}
	c, j := serve(t, a, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var res *pawl.Result
	for e, err := range c.Runner("c", "").Stream(ctx, llm.User("wait")) {
		if err != nil {
			break
		}
		switch {
		case e.Kind == pawl.EventCallStarted:
			cancel(pawl.ErrCancelled)
		case e.Kind == pawl.EventRunEnded:
			res = e.Result
		}
	}
	if res == nil || res.Stop != pawl.StopCancelled {
		t.Errorf("cancelled: %+v", res)
	}
	cause := errors.New("the program ends")
	ctx, leave := context.WithCancelCause(t.Context())
	defer leave(nil)
	var last error
	for e, err := range c.Runner("l", "").Stream(ctx, llm.User("wait")) {
		if err != nil {
			last = err
		} else if e.Kind == pawl.EventCallStarted {
			leave(cause)
		}
	}
	if !errors.Is(last, cause) {
		t.Errorf("left: got %v", last)
	}
	close(gate)
	all, err := collect(c.Runner("l", ""), t.Context())
	if err != nil || all[len(all)-1].Result.Text() != "done" {
		t.Errorf("taken up: %v, %v", kinds(all), err)
	}
	if run, err := j.JournalRun(t.Context(), store.Scope{}, "l"); err != nil || run.State != store.JournalOver {
		t.Errorf("got %+v, %v", run, err)
	}
}

func Example() {
	agent := &pawl.Agent{Name: "clerk", Model: script.New(script.Say("It rains."))}
	s, err := server.New([]*pawl.Agent{agent}, new(store.MemoryJournal), nil)
	if err != nil {
		panic(err)
	}
	defer s.Close(context.Background())
	h := httptest.NewServer(s)
	defer h.Close()

	c := client.New(h.URL, &client.Options{HTTP: h.Client().Transport})
	for e, err := range c.Runner("oslo", "clerk").Stream(context.Background(), llm.User("How is the weather in Oslo?")) {
		if err != nil {
			panic(err)
		}
		if e.Kind == pawl.EventRunEnded {
			fmt.Println(e.Result.Text())
		}
	}
	// Output: It rains.
}

// A run whose provider is away is waited for, also if the server sends its client away.
func TestRunnerWaitsForAProvider(t *testing.T) {
	away := script.Fail(&llm.ProviderError{Provider: "openai", Status: 503, Code: llm.CodeServer, Retryable: true})
	a := &pawl.Agent{Name: "clerk", Model: &runtest.InTurn{Turns: []script.Turn{away, script.Say("Done.")}}}
	var streams atomic.Int32
	c, _ := serve(t, a, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
				streams.Add(1)
			}
			r.Header.Set("Prefer", "wait=0")
			h.ServeHTTP(w, r)
		})
	})

	run := c.Runner("r", "clerk")
	notices := 0
	for e, err := range run.Stream(t.Context(), llm.User("go")) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == pawl.EventNotice && e.Code == "outage" {
			notices++
			// A person does not wait for the next attempt of the server.
			go func() { _, _ = pawl.Collect(c.Runner("r", "clerk").Stream(context.Background()), nil) }()
		}
		if e.Kind == pawl.EventRunEnded && e.Result.Text() != "Done." {
			t.Errorf("the run ended with %+v", e.Result)
		}
	}
	if notices == 0 || streams.Load() < 3 {
		t.Errorf("%d notices in %d streams", notices, streams.Load())
	}
}
