package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

// watchList reads the stream of the list, one line per event: its name, and for a run the ID, the
// state and the number of requests.
func (v *serving) watchList(ctx context.Context) func() string {
	req, err := http.NewRequestWithContext(ctx, "GET", v.url+"/v1/runs", nil)
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	if v.token != "" {
		req.Header.Set("Authorization", "Bearer "+v.token)
	}
	res, err := v.client.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { res.Body.Close() })
	lines := bufio.NewScanner(res.Body)
	return func() string {
		name := ""
		for lines.Scan() {
			if s, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				name = s
			}
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var run api.Run
				if err := json.Unmarshal([]byte(data), &run); err != nil {
					v.t.Fatal(err)
				}
				if name == "run" {
					return strings.TrimSpace(strings.Join([]string{run.ID, run.State, string(run.Stop)}, " "))
				}
				return strings.TrimSpace(name + " " + run.ID)
			}
		}
		return "the stream ended"
	}
}

// until reads until a certain line and returns the lines before it.
func until(t *testing.T, next func() string, want string) (before []string) {
	t.Helper()
	for len(before) < 50 {
		line := next()
		if line == want {
			return before
		}
		before = append(before, line)
		if line == "the stream ended" {
			break
		}
	}
	t.Fatalf("%q did not come; there came %q", want, before)
	return nil
}

// A watcher of the list gets its content, then each change: of runs in this process, of runs in
// other processes, and of deleted runs. Each state is sent once.
func TestWatchTheList(t *testing.T) {
	stored := new(store.MemoryJournal)
	v := serve(t, func(o *options) { o.Journal = stored })
	v.do("POST", "/v1/runs", `{"id":"old","input":"hello","wait":true}`, 201, nil)
	next := v.watchList(t.Context())
	if before := until(t, next, "listed"); len(before) != 1 || before[0] != "old over answer" {
		t.Errorf("there was %q", before)
	}
	v.do("POST", "/v1/runs", `{"id":"w","input":"wait"}`, 201, nil)
	until(t, next, "w running")
	close(v.world.gate)
	until(t, next, "w over answer")

	elsewhere := &durable.Engine{Journal: stored}
	if _, err := runtest.Ended(elsewhere.Runner("far", clerk(v.world)).Run(t.Context(), llm.User("pay 5"))); err != nil {
		t.Fatal(err)
	}
	until(t, next, "far waiting pending")
	if err := stored.DeleteJournal(t.Context(), store.Scope{}, "old"); err != nil {
		t.Fatal(err)
	}
	if before := until(t, next, "gone old"); len(before) > 0 {
		t.Errorf("sent twice: %q", before)
	}
	v.do("POST", "/v1/runs/far/cancel", "", 200, nil)
	until(t, next, "far over cancelled")
	v.do("GET", "/v1/timeline", "", 404, nil)
	var tl journal.Timeline
	v.do("GET", "/v1/runs/w/timeline", "", 200, &tl)
	if len(tl.Spans) != 3 || tl.Ended.IsZero() {
		t.Errorf("the timeline of w: %+v", tl)
	}
}

// The list of one user contains no runs of another.
func TestWatchTheListOfOne(t *testing.T) {
	v := serve(t, func(o *options) {
		o.Access.Tokens = []api.Token{{Name: "a", Token: strings.Repeat("a", 16), Scopes: []api.Scope{api.ScopeAll},
			User: "a"}, {Name: "b", Token: strings.Repeat("b", 16), Scopes: []api.Scope{api.ScopeAll}, User: "b"}}
	})
	v.token = strings.Repeat("a", 16)
	next := v.watchList(t.Context())
	until(t, next, "listed")
	v.token = strings.Repeat("b", 16)
	v.do("POST", "/v1/runs", `{"id":"b1","input":"hello","wait":true}`, 201, nil)
	v.token = strings.Repeat("a", 16)
	v.do("POST", "/v1/runs", `{"id":"a1","input":"hello","wait":true}`, 201, nil)
	for _, line := range until(t, next, "a1 over answer") {
		if !strings.HasPrefix(line, "a1 ") {
			t.Errorf("a received %q", line)
		}
	}
}
