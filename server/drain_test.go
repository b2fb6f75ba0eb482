package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

// payer returns an agent that pays twice, one Write after the other. Each payment says that it is
// under way, and waits for the gate.
func payer(paid *atomic.Int32, under chan<- struct{}, gate <-chan struct{}) *pawl.Agent {
	pay := pawl.Func("pay", "Pays.", func(ctx context.Context, _ struct{}) (string, error) {
		under <- struct{}{}
		select {
		case <-gate:
			paid.Add(1)
			return "paid", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	return &pawl.Agent{Name: "payer", Tools: []pawl.Toolset{pay},
		Model: script.New(script.Call("pay", nil), script.Call("pay", nil), script.Say("Paid."))}
}

// unknown counts the unknown effects of the runs r0, r1 and so on.
func unknown(t *testing.T, j store.Journal, runs int) (n int) {
	t.Helper()
	for i := range runs {
		effects, err := (&durable.Engine{Journal: j}).Effects(t.Context(), fmt.Sprint("r", i))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range effects {
			if e.State == journal.EffectUnknown {
				n++
			}
		}
	}
	return n
}

// A server that ends lets its Writes end, begins nothing, says so at /v1/ready, and hands its runs
// over: the next server makes the second payments at once. No effect is unknown. Without the time
// to drain, each is.
func TestServeDrains(t *testing.T) {
	const runs = 10
	for _, drain := range []time.Duration{0, -1} { // 30 s, and none
		var paid atomic.Int32
		under, gate, journal := make(chan struct{}, 2*runs), make(chan struct{}), new(store.MemoryJournal)
		options := func(o *options) {
			o.Agents, o.Journal, o.Times.Drain = []*pawl.Agent{payer(&paid, under, gate)}, journal, drain
		}
		l := listen(t, options)
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		for i := range runs {
			if _, status := ask(t, c, "POST", l.addr, "/v1/runs", fmt.Sprintf(`{"id":"r%d","input":"Pay."}`, i)); status != 201 {
				t.Fatalf("status %d", status)
			}
			<-under
		}
		if body, status := ask(t, c, "GET", l.addr, "/v1/ready", ""); status != 200 || body.Status != "ready" {
			t.Errorf("before: %d %+v", status, body)
		}
		ended := make(chan struct{})
		go func() { defer close(ended); l.stop() }()
		if drain < 0 {
			<-ended
			if n := unknown(t, journal, runs); n != runs {
				t.Errorf("control: %d effects are unknown, want %d", n, runs)
			}
			continue
		}
		for {
			if body, status := ask(t, c, "GET", l.addr, "/v1/ready", ""); status == 503 {
				if body.Status != "draining" {
					t.Errorf("got %+v", body)
				}
				break
			}
		}
		if body, status := ask(t, c, "POST", l.addr, "/v1/runs", `{"input":"Pay."}`); status != 503 || body.Error.Code != "busy" {
			t.Errorf("a new run: %d %+v", status, body)
		}
		if _, status := ask(t, c, "GET", l.addr, "/v1/runs/r1", ""); status != 200 {
			t.Errorf("GET of a run: %d", status)
		}
		close(gate)
		<-ended
		if n := unknown(t, journal, runs); n != 0 || paid.Load() != runs {
			t.Errorf("%d effects are unknown, %d payments; want 0 and %d", n, paid.Load(), runs)
		}
		for i := range runs {
			head, err := journal.JournalRun(t.Context(), store.Scope{}, fmt.Sprint("r", i))
			if err != nil || head.State != store.JournalOpen || head.Owner != "" {
				t.Errorf("got %+v, %v; want it open and without a lease", head, err)
			}
		}
		next := serve(t, options)
		for i := range runs {
			if all := names(next.events(next.request("GET", fmt.Sprintf("/v1/runs/r%d/events", i), "").Body, nil)); !strings.HasSuffix(all, "run_ended") {
				t.Errorf("the next server sends %s", all)
			}
		}
		if paid.Load() != 2*runs {
			t.Errorf("%d payments, want %d", paid.Load(), 2*runs)
		}
	}
}

type said struct {
	Status string    `json:"status"`
	State  string    `json:"state"`
	Ahead  int       `json:"ahead"`
	Error  api.Error `json:"error"`
}

// ask sends a request, and wants Retry-After with each 503.
func ask(t *testing.T, c *http.Client, method, addr, path, body string) (got said, status int) {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode == 503 && res.Header.Get("Retry-After") == "" {
		t.Errorf("%s %s: 503 without Retry-After", method, path)
	}
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	return got, res.StatusCode
}

// away is a journal whose database does not answer, with an error that has an address.
type away struct {
	store.Journal
	off atomic.Bool
}

func (j *away) JournalRun(ctx context.Context, s store.Scope, id string) (store.JournalRun, error) {
	if j.off.Load() {
		return store.JournalRun{}, fmt.Errorf("%w: dial tcp 10.1.2.3:5432: connection refused", store.ErrUnavailable)
	}
	return j.Journal.JournalRun(ctx, s, id)
}

func (j *away) JournalRecords(ctx context.Context, s store.Scope, id string, after int64) ([]store.Record, error) {
	if j.off.Load() {
		return nil, fmt.Errorf("%w: dial tcp 10.1.2.3:5432: connection refused", store.ErrUnavailable)
	}
	return j.Journal.JournalRecords(ctx, s, id, after)
}

// While the database does not work, requests are answered with 503 and Retry-After, in words
// without an address, which the log has.
func TestDatabaseAway(t *testing.T) {
	j, log := &away{Journal: new(store.MemoryJournal)}, new(bytes.Buffer)
	v := serve(t, func(o *options) { o.Journal, o.Log = j, slog.New(slog.NewTextHandler(log, nil)) })
	addr := strings.TrimPrefix(v.url, "http://")
	j.off.Store(true)
	if got, status := ask(t, v.client, "GET", addr, "/v1/ready", ""); status != 503 || got.Status != "no_store" {
		t.Errorf("ready: %d %+v", status, got)
	}
	if _, status := ask(t, v.client, "GET", addr, "/v1/health", ""); status != 200 {
		t.Errorf("health: %d", status)
	}
	got, status := ask(t, v.client, "POST", addr, "/v1/runs", `{"id":"r","input":"Pay."}`)
	if said := fmt.Sprint(got); status != 503 || got.Error.Code != "unavailable" || strings.Contains(said, "10.1.2.3") {
		t.Errorf("%d %s", status, said)
	}
	if !strings.Contains(log.String(), "10.1.2.3") {
		t.Errorf("the log has no address: %s", log)
	}
	// It is unknown whether the item exists.
	refers := `{"model":"clerk","input":[{"type":"item_reference","id":"msg_7"}]}`
	if got, status := ask(t, v.client, "POST", addr, "/v1/responses", refers); status != 503 {
		t.Errorf("an item: %d %+v", status, got)
	}
	j.off.Store(false)
	v.do("POST", "/v1/runs", `{"id":"r","input":"look Oslo"}`, 201, nil)
}
