package server_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

// queried is a journal that counts the looks at heads.
type queried struct {
	store.Journal
	heads atomic.Int64
}

func (j *queried) JournalRun(ctx context.Context, s store.Scope, id string) (store.JournalRun, error) {
	j.heads.Add(1)
	return j.Journal.JournalRun(ctx, s, id)
}

// ask sends a question, and returns how many heads the server looked at.
func (j *queried) ask(v *serving, headers ...string) int {
	before := j.heads.Load()
	v.do("POST", "/v1/chat/completions", chatOf("ping", ""), 200, nil, headers...)
	return int(j.heads.Load() - before)
}

// Equal requests, such as the requests of a probe, are runs of their own, and each costs the same.
func TestEqualRequestsCostTheSame(t *testing.T) {
	n := soak.N(60, 1000)
	j := &queried{Journal: new(store.MemoryJournal)}
	v := front(t, j, new(world), nil)
	first := j.ask(v)
	most := 0
	for range n - 1 {
		most = max(most, j.ask(v))
	}
	if most > first {
		t.Errorf("an equal request looks at %d heads, the first at %d", most, first)
	}
	t.Logf("%d requests: the first looks at %d heads, a later one at most at %d", n, first, most)

	// A second server finds the next free number by few looks, and then knows it.
	second := front(t, j, new(world), nil)
	counted := []string{"X-Stainless-Retry-Count", "0"}
	found := j.ask(second, counted...)
	if limit := first + 25; found > limit {
		t.Errorf("the first request at a second server looks at %d heads, want at most %d", found, limit)
	}
	if again := j.ask(second, counted...); again > first {
		t.Errorf("the next request there looks at %d heads, want at most %d", again, first)
	}
	if got := count(t, v); got != min(n+2, 100) {
		t.Errorf("%d runs, want one a request", got)
	}
}

// Two servers that get equal requests in turn start a run for each.
func TestEqualRequestsAtTwoServers(t *testing.T) {
	j := new(store.MemoryJournal)
	servers := []*serving{front(t, j, new(world), nil), front(t, j, new(world), nil)}
	ids := map[string]bool{}
	for i := range 12 {
		var reply struct{ ID string }
		servers[i%2].do("POST", "/v1/chat/completions", chatOf("ping", ""), 200, &reply, "X-Stainless-Retry-Count", "0")
		ids[reply.ID] = true
	}
	var list api.Runs
	servers[0].do("GET", "/v1/runs", "", 200, &list)
	if len(ids) != 12 || len(list.Runs) != 12 {
		t.Errorf("12 requests have %d replies and %d runs", len(ids), len(list.Runs))
	}
}

// A stated repetition finds its run in the journal of many equal ones, after a restart.
func TestARepetitionAmongEqualRequests(t *testing.T) {
	j := &queried{Journal: new(store.MemoryJournal)}
	v := front(t, j, new(world), nil)
	var last struct{ ID string }
	for range 30 {
		v.do("POST", "/v1/chat/completions", chatOf("ping", ""), 200, &last, "X-Stainless-Retry-Count", "0")
	}

	restarted := front(t, j, new(world), nil)
	var again struct{ ID string }
	looks := j.heads.Load()
	restarted.do("POST", "/v1/chat/completions", chatOf("ping", ""), 200, &again, "X-Stainless-Retry-Count", "1")
	if again.ID != last.ID || again.ID == "" {
		t.Errorf("the repetition got %q, want the last reply %q", again.ID, last.ID)
	}
	if looks = j.heads.Load() - looks; looks > 25 {
		t.Errorf("it looked at %d heads", looks)
	}
	if got := count(t, v); got != 30 {
		t.Errorf("%d runs, want 30", got)
	}
}

// The runs of equal requests are numbered anew in each span of ten minutes, so that a repetition in
// a later one finds its run, too.
func TestEqualRequestsOfTwoSpans(t *testing.T) {
	const span = 10 * time.Minute
	boundary := time.Now().Truncate(span)
	now := boundary.Add(-time.Second)
	j := new(store.MemoryJournal)
	change := func(o *options) { o.Now = func() time.Time { return now } }
	ask := func(v *serving, attempt string) (id string) {
		var reply struct{ ID string }
		v.do("POST", "/v1/chat/completions", chatOf("ping", ""), 200, &reply, "X-Stainless-Retry-Count", attempt)
		return reply.ID
	}

	v := front(t, j, new(world), change)
	for range 3 {
		ask(v, "0")
	}
	now = boundary.Add(time.Second)
	last := ask(v, "0")
	if again := ask(front(t, j, new(world), change), "1"); again != last {
		t.Errorf("the repetition got %q, want the last reply %q", again, last)
	}
}
