package runs

// queue.go: queue, the order of the runs that wait for room.

import "slices"

// queue holds the runs that wait for room: in order for each tenant, and the tenants take turns. It
// is not safe for concurrent use.
type queue struct {
	waiting map[string][]*Live // by tenant
	turns   []string           // tenants with waiting runs; the first is next
	size    map[string]int     // runs by tenant, with those whose start is being stored
	total   int                // their sum
}

func newQueue() queue {
	return queue{waiting: map[string][]*Live{}, size: map[string]int{}}
}

// reserve counts a run of a tenant, which push adds later.
func (q *queue) reserve(tenant string) { q.count(tenant, 1) }

// count adds n to the number of runs of a tenant.
func (q *queue) count(tenant string, n int) {
	q.total += n
	q.size[tenant] += n
	if q.size[tenant] == 0 {
		delete(q.size, tenant)
	}
}

// push adds a run, for which reserve was called.
func (q *queue) push(l *Live) {
	tenant := l.scope.Tenant
	if len(q.waiting[tenant]) == 0 {
		q.turns = append(q.turns, tenant)
	}
	q.waiting[tenant] = append(q.waiting[tenant], l)
}

// first returns the first run of the first tenant that may have another one. Nil means that there
// is none.
func (q *queue) first(may func(tenant string) bool) *Live {
	i := slices.IndexFunc(q.turns, may)
	if i < 0 {
		return nil
	}
	return q.waiting[q.turns[i]][0]
}

// pop removes and returns first. Nil means that there is none.
func (q *queue) pop(may func(tenant string) bool) *Live {
	l := q.first(may)
	if l != nil {
		q.remove(l)
	}
	return l
}

// remove removes a run. Its tenant goes to the end of the turns.
func (q *queue) remove(l *Live) {
	tenant := l.scope.Tenant
	q.count(tenant, -1)
	i := slices.Index(q.waiting[tenant], l)
	rest := slices.Delete(q.waiting[tenant], i, i+1)
	q.waiting[tenant] = rest

	turn := slices.Index(q.turns, tenant)
	q.turns = slices.Delete(q.turns, turn, turn+1)
	if len(rest) > 0 {
		q.turns = append(q.turns, tenant)
	} else {
		delete(q.waiting, tenant)
	}
}

// ahead returns the number of runs that start before a run. It is 0 for a run that does not wait.
func (q *queue) ahead(l *Live) (n int) {
	tenant := l.scope.Tenant
	before := slices.Index(q.waiting[tenant], l) // of its own tenant
	if before < 0 {
		return 0
	}
	turn := slices.Index(q.turns, tenant)
	for i, other := range q.turns {
		most := before
		if i < turn { // this tenant has one more turn first
			most = before + 1
		}
		n += min(len(q.waiting[other]), most)
	}
	return n
}
