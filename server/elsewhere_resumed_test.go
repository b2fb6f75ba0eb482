package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

// A reader of a run that waits for an answer sees what another server does after the answer: the
// next question too, and the end.
func TestAReaderSeesTheQuestionsOfAnotherServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := func() *pawl.Agent {
			pay := pawl.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) { return "paid", nil })
			return &pawl.Agent{
				Name:       "payer",
				Model:      script.New(script.Call("pay", struct{}{}), script.Call("pay", struct{}{}), script.Say("Settled")),
				Tools:      []pawl.Toolset{pay},
				Middleware: []pawl.Middleware{pawl.Approve(asks)},
			}
		}
		journal := new(store.MemoryJournal)
		start := func() *server.Server {
			s, err := server.New([]*pawl.Agent{agent()}, journal, nil)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		near, far := start(), start()
		defer near.Close(t.Context())
		defer far.Close(t.Context())
		ask := func(s http.Handler, method, path, body string) (run api.Run) {
			t.Helper()
			w := httptest.NewRecorder()
			s.ServeHTTP(w, request(t, method, "http://127.0.0.1"+path, body))
			if w.Code >= 300 {
				t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
			}
			if err := json.Unmarshal(w.Body.Bytes(), &run); err != nil {
				t.Fatal(err)
			}
			return run
		}

		ask(near, "POST", "/v1/runs", `{"id":"r","input":"pay","wait":true}`)
		w := httptest.NewRecorder()
		read := make(chan bool)
		go func() {
			defer close(read)
			near.ServeHTTP(w, request(t, "GET", "http://127.0.0.1/v1/runs/r/events", ""))
		}()
		for range 2 {
			time.Sleep(time.Minute)
			run := ask(far, "GET", "/v1/runs/r", "")
			if len(run.Pending) != 1 {
				t.Fatalf("%d questions, want one", len(run.Pending))
			}
			call := run.Pending[0]
			ask(far, "POST", "/v1/runs/r/approve", `{"key":"`+string(call.Key)+`","digest":"`+call.Digest+`"}`)
		}
		time.Sleep(time.Minute)
		<-read

		body := w.Body.String()
		if n := strings.Count(body, "event: run_ended"); n != 3 {
			t.Errorf("the reader saw %d ends, want two with a question and the last one, in\n%s", n, body)
		}
		if !strings.Contains(body, "Settled") {
			t.Errorf("the reader did not see the answer")
		}
	})
}

// tallied counts the records that are read from a journal.
type tallied struct {
	store.Journal
	records atomic.Int64
}

// JournalRecords counts what it returns.
func (j *tallied) JournalRecords(ctx context.Context, s store.Scope, id string, after int64) ([]store.Record, error) {
	all, err := j.Journal.JournalRecords(ctx, s, id, after)
	j.records.Add(int64(len(all)))
	return all, err
}

// A server that follows a long run of another one reads each record once.
func TestAFollowerReadsWhatIsNew(t *testing.T) {
	const steps = 100
	synctest.Test(t, func(t *testing.T) {
		look := pawl.Func("look", "Looks.", func(context.Context, struct{ N int }) (string, error) {
			time.Sleep(time.Second)
			return time.Now().String(), nil
		})
		agent := func() *pawl.Agent {
			var turns []script.Turn
			for n := range steps {
				turns = append(turns, script.Call("look", struct{ N int }{n}))
			}
			return &pawl.Agent{Name: "looker", Limits: pawl.Limits{Rounds: 2 * steps},
				Model: script.New(append(turns, script.Say("Settled"))...),
				Tools: []pawl.Toolset{look}, Middleware: []pawl.Middleware{pawl.Approve(allow)}}
		}
		journal := new(store.MemoryJournal)
		near, err := server.New([]*pawl.Agent{agent()}, journal, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer near.Close(t.Context())
		j := &tallied{Journal: journal}
		far, err := server.New([]*pawl.Agent{agent()}, j, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer far.Close(t.Context())

		near.ServeHTTP(httptest.NewRecorder(), request(t, "POST", "http://127.0.0.1/v1/runs", `{"id":"r","input":"look"}`))
		w := httptest.NewRecorder()
		far.ServeHTTP(w, request(t, "GET", "http://127.0.0.1/v1/runs/r/events", ""))
		if n := strings.Count(w.Body.String(), "event: step\n"); n != steps+1 {
			t.Errorf("the reader saw %d steps, want %d", n, steps+1)
		}

		// The beginning of the run is read once more, for the extras of its client.
		head, err := journal.JournalRun(t.Context(), store.Scope{}, "r")
		if read := j.records.Load(); err != nil || read > 2*head.Records {
			t.Errorf("%d records were read of a run with %d, %v", read, head.Records, err)
		}
	})
}
