package runs

import (
	"slices"
	"testing"

	"github.com/pawl-go/pawl/store"
)

func waiting(q *queue, tenant, id string) *Live {
	l := &Live{place: place{store.Scope{Tenant: tenant}, id}}
	q.reserve(tenant)
	q.push(l)
	return l
}

func anyTenant(string) bool { return true }

// Tenants take turns, and the runs of one tenant keep their order. ahead agrees with pop.
func TestQueueTurns(t *testing.T) {
	q := newQueue()
	var all []*Live
	for _, id := range []string{"a1", "a2", "a3", "a4", "b1", "c1", "b2"} {
		all = append(all, waiting(&q, id[:1], id))
	}
	want := []string{"a1", "b1", "c1", "a2", "b2", "a3", "a4"}
	for _, l := range all {
		if got := q.ahead(l); got != slices.Index(want, l.id) {
			t.Errorf("%d runs are ahead of %s, want %d", got, l.id, slices.Index(want, l.id))
		}
	}

	var got []string
	for l := q.pop(anyTenant); l != nil; l = q.pop(anyTenant) {
		got = append(got, l.id)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if q.total != 0 || len(q.size) != 0 || len(q.turns) != 0 || len(q.waiting) != 0 {
		t.Errorf("the empty queue still has %+v", q)
	}
}

// A tenant that may have no other run keeps its turn.
func TestQueueSkipsATenant(t *testing.T) {
	q := newQueue()
	a := waiting(&q, "a", "a1")
	b := waiting(&q, "b", "b1")
	if got := q.pop(func(tenant string) bool { return tenant != "a" }); got != b {
		t.Errorf("got %v, want b1", got)
	}
	if got := q.pop(func(string) bool { return false }); got != nil {
		t.Errorf("got %v, want none", got)
	}
	if got := q.pop(anyTenant); got != a {
		t.Errorf("got %v, want a1", got)
	}
}

// A run that is removed leaves no gap, and a run that does not wait has no run ahead of it.
func TestQueueRemove(t *testing.T) {
	q := newQueue()
	waiting(&q, "a", "a1")
	second := waiting(&q, "a", "a2")
	third := waiting(&q, "a", "a3")
	q.remove(second)
	if got := q.ahead(third); got != 1 {
		t.Errorf("%d runs are ahead of a3, want 1", got)
	}
	if got := q.ahead(second); got != 0 {
		t.Errorf("%d runs are ahead of a run that does not wait, want 0", got)
	}
	if q.total != 2 || q.size["a"] != 2 {
		t.Errorf("the queue counts %d runs, %d of a, want 2", q.total, q.size["a"])
	}
}
