package server_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
)

// workers returns an agent whose only call waits for the gate, and appends the user's words to
// began when it starts. most is the largest number of calls at once.
type workers struct {
	gate  chan struct{}
	mu    sync.Mutex
	began []string
	now   int
	most  int
}

func (w *workers) agent() *pawl.Agent {
	work := pawl.Func("work", "Works.", func(ctx context.Context, in struct {
		On string `json:"on"`
	}) (string, error) {
		w.mu.Lock()
		w.began, w.now = append(w.began, in.On), w.now+1
		w.most = max(w.most, w.now)
		w.mu.Unlock()
		defer func() { w.mu.Lock(); w.now--; w.mu.Unlock() }()
		select {
		case <-w.gate:
			return "worked", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	work.Effect = pawl.EffectRead
	return &pawl.Agent{Name: "worker", Tools: []pawl.Toolset{work},
		Model: &script.Model{Turns: []script.Turn{script.Loop(script.Func(func(req *llm.Request) script.Turn {
			if script.Results(req) != nil {
				return script.Say("Done.")
			}
			return script.Call("work", map[string]string{"on": req.Messages[0].Text()})
		}))}}}
}

// as sends a request with a token, and returns the answer.
func as(t *testing.T, v *serving, token, method, path, body string) (said, int) {
	t.Helper()
	c := *v.client
	c.Transport = bearer{c.Transport, token}
	return ask(t, &c, method, strings.TrimPrefix(v.url, "http://"), path, body)
}

type bearer struct {
	http.RoundTripper
	token string
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.RoundTripper.RoundTrip(r)
}

// 1,000 runs begun at once are all taken: 4 execute, the others wait in the journal. Tenants take
// turns, and each tenant's runs start in their order. A second server, after a crash of the first,
// finds all of them.
func TestQueue(t *testing.T) {
	many, few := soak.N(90, 900), soak.N(10, 100)
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "pawl.db"), &sqlite.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	w := &workers{gate: make(chan struct{})}
	options := func(o *options) {
		o.Agents, o.Journal, o.Limits.Runs, o.Limits.Queue = []*pawl.Agent{w.agent()}, db, 4, 4*many
		for _, tenant := range []string{"many", "few"} {
			o.Access.Tokens = append(o.Access.Tokens, api.Token{Name: tenant, Token: tenant + strings.Repeat("-", 20),
				Scopes: []api.Scope{api.ScopeAll}, Tenant: tenant})
		}
	}
	v := serve(t, options)
	before := heap()
	for _, tenant := range []string{"many", "few"} {
		n := map[string]int{"many": many, "few": few}[tenant]
		token := tenant + strings.Repeat("-", 20)
		var wg sync.WaitGroup
		var taken atomic.Int64
		for i := range n {
			if i < 8 { // their order is known
				if got, status := as(t, v, token, "POST", "/v1/runs", start(tenant, i)); status != 201 {
					t.Errorf("%s %d: %d %+v", tenant, i, status, got)
				}
				taken.Add(1)
				continue
			}
			wg.Go(func() {
				if _, status := as(t, v, token, "POST", "/v1/runs", start(tenant, i)); status == 201 {
					taken.Add(1)
				}
			})
		}
		wg.Wait()
		if taken.Load() != int64(n) {
			t.Errorf("%s: %d of %d runs were taken", tenant, taken.Load(), n)
		}
	}
	if v.s.Queued() != many+few-4 {
		t.Errorf("%d runs wait, want %d", v.s.Queued(), many+few-4)
	}
	if grown := int64(heap()) - int64(before); grown > int64(many+few)*32<<10 {
		t.Errorf("the queue has %d bytes a run", grown/int64(many+few))
	}
	// few/1 waits behind many/4, few/0 and many/5
	got, _ := as(t, v, "few"+strings.Repeat("-", 20), "GET", "/v1/runs/few-1", "")
	if got.State != "queued" || got.Ahead != 3 {
		t.Errorf("got %+v", got)
	}
	if got, _ = as(t, v, "many"+strings.Repeat("-", 20), "POST", "/v1/runs/many-7/cancel", ""); got.State != "over" {
		t.Errorf("a waiting run was cancelled: %+v", got)
	}

	close(w.gate)
	settled(t, db, "few", few)
	order := w.order("few")
	if len(order) != few {
		t.Fatalf("%d of %d runs of the smaller tenant began", len(order), few)
	}
	for i := range 8 { // four at once may overtake one another
		if at := slices.Index(order, fmt.Sprint("few ", i)); at < i-4 || at > i+4 {
			t.Errorf("run %d of the smaller tenant began as its %dth", i, at)
		}
	}
	settled(t, db, "many", many)
	all := w.order("")
	last := slices.Index(all, order[len(order)-1])
	if last > 2*few+8 {
		t.Errorf("the last of the smaller tenant's %d runs began after %d others: they took no turns", few, last)
	}
	if w.most > 4 {
		t.Errorf("%d runs executed at once, want 4", w.most)
	}
	if slices.Contains(all, "many 7") || len(all) != many+few-1 {
		t.Errorf("%d runs began, want all but the cancelled one", len(all))
	}
}

func start(tenant string, i int) string {
	return fmt.Sprintf(`{"id":"%s-%d","input":"%s %d"}`, tenant, i, tenant, i)
}

func (w *workers) order(tenant string) (out []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, on := range w.began {
		if strings.HasPrefix(on, tenant) {
			out = append(out, on)
		}
	}
	return out
}

// settled waits until all runs of a tenant are over.
func settled(t *testing.T, db store.Journal, tenant string, n int) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(3 * time.Minute); ; {
		over, err := db.JournalRuns(t.Context(), store.Scope{Tenant: tenant}, store.JournalOver,
			store.Page{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if len(over) == n {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%d of %d runs of %s are over", len(over), n, tenant)
		}
	}
}

// Waiting runs outlive the server: the next one executes them. A stream of a waiting run stays
// open. The bound of the queue, half of it for a tenant among several, and the limit of a tenant
// hold.
func TestQueueOutlivesTheServer(t *testing.T) {
	journal, w := new(store.MemoryJournal), &workers{gate: make(chan struct{})}
	tenants := []string{"a", "b"}
	options := func(o *options) {
		o.Agents, o.Journal = []*pawl.Agent{w.agent()}, journal
		o.Limits.Runs, o.Limits.TenantRuns, o.Limits.Queue = 3, 2, 8
		o.Times.Beat, o.Times.Recover = time.Millisecond, 10*time.Millisecond
		for _, tenant := range tenants {
			o.Access.Tokens = append(o.Access.Tokens, api.Token{Name: tenant, Token: strings.Repeat(tenant, 20),
				Scopes: []api.Scope{api.ScopeAll}, Tenant: tenant})
		}
	}
	v := serve(t, options)
	want := map[string][]int{"a": {201, 201, 201, 201, 201, 201, 503, 503}, "b": {201, 201, 201, 201, 201, 503, 503, 503}}
	for _, tenant := range tenants { // a: 2 execute, 4 wait; b: 1 executes, 4 wait
		for i := range 8 {
			if got, status := as(t, v, strings.Repeat(tenant, 20), "POST", "/v1/runs", start(tenant, i)); status != want[tenant][i] {
				t.Errorf("%s %d: %d %+v", tenant, i, status, got)
			}
		}
	}
	if n := v.s.Queued(); n != 8 {
		t.Errorf("%d runs wait, want 8", n)
	}
	v.token = strings.Repeat("a", 20)
	var list api.Runs
	v.do("GET", "/v1/runs?state=queued", "", 200, &list)
	if len(list.Runs) != 4 || list.Runs[0].ID != "a-2" || list.Runs[0].State != "queued" {
		t.Errorf("got the list %+v", list)
	}
	stream := v.request("GET", "/v1/runs/a-5/events", "")
	comment := make([]byte, 2)
	if _, err := stream.Body.Read(comment); err != nil || comment[0] != ':' {
		t.Errorf("the stream of a waiting run has %q, %v", comment, err)
	}
	if err := v.s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rest := names(v.events(stream.Body, nil)); rest != "" {
		t.Errorf("the stream of a run that is handed over has %s", rest)
	}
	close(w.gate)
	listen(t, options)
	settled(t, journal, "a", 6)
	settled(t, journal, "b", 5)
}

// Two tenants take turns, whichever came first. The control has one tenant: it is served in order.
func TestTenantsTakeTurns(t *testing.T) {
	for _, tenants := range []int{2, 1} {
		journal, w := new(store.MemoryJournal), &workers{gate: make(chan struct{})}
		v := serve(t, func(o *options) {
			o.Agents, o.Journal, o.Limits.Runs, o.Limits.Queue = []*pawl.Agent{w.agent()}, journal, 1, 100
			for i, name := range []string{"x", "y"} {
				o.Access.Tokens = append(o.Access.Tokens, api.Token{Name: name, Token: strings.Repeat(name, 20),
					Scopes: []api.Scope{api.ScopeAll}, Tenant: fmt.Sprint(i % tenants)})
			}
		})
		for i := range 40 {
			name := "x"
			if i >= 30 {
				name = "y"
			}
			if got, status := as(t, v, strings.Repeat(name, 20), "POST", "/v1/runs", start(name, i)); status != 201 {
				t.Errorf("%s %d: %d %+v", name, i, status, got)
			}
		}
		close(w.gate)
		for i := range tenants {
			settled(t, journal, fmt.Sprint(i), map[int]int{1: 40, 2: 30 - 20*i}[tenants])
		}
		last := slices.Index(w.order(""), "y 39")
		if want := map[int]int{2: 20, 1: 39}[tenants]; last != want {
			t.Errorf("%d tenants: the last run of y is number %d, want %d: %v", tenants, last, want, w.order(""))
		}
	}
}
