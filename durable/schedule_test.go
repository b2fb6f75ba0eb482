package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/durabletest"
	"github.com/pawl-go/pawl/internal/runerr"
	"github.com/pawl-go/pawl/internal/test/pgtest"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/postgres"
	"github.com/pawl-go/pawl/store/sqlite"
)

// broken is the breaks of R9 that a control puts back, by the letters of the issue.
type broken struct {
	waits   bool // (a) a stop with questions is stored as waiting, also if they are answered
	misfit  bool // (b) an answer that does not fit is stored, and hides its question
	late    bool // (c) an old question takes no approval, and is not asked again
	changed bool // (d) a run whose agent has changed stays open, and its end is not stored
	lease   bool // (e) the lease of a dead process does not end
}

// schedule is the random life of one run: its processes die, the database fails, other versions of
// the agent are deployed, and its questions get all kinds of answers, also while a process works.
type schedule struct {
	t     *testing.T
	r     *rand.Rand
	db    store.Journal
	who   store.Scope
	wrong broken
	c     *durabletest.Case
	world *durabletest.Memory

	mu      sync.Mutex
	ahead   time.Duration // of the clock
	version int           // of the agent
	asked   []pawl.PendingCall
	hidden  map[llm.Key]bool // questions that a control hides
	log     []string
}

const lasts = time.Hour // the validity of some approvals

// What the schedules contain.
const (
	misfits  = true // answers with arguments that do not fit the tool
	expiries = true // approvals that are valid for a time
	deploys  = true // other versions of the agent
)

func (s *schedule) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

func (s *schedule) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.ahead)
}

func (s *schedule) later(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead += d
}

func (s *schedule) engine(j store.Journal) *durable.Engine {
	e := &durable.Engine{Journal: j, Retry: -1}
	e.SetClock(s.now)
	return e
}

// outside returns the engine of clients.
func (s *schedule) outside() *durable.Engine { return s.engine(oddJournal{Journal: s.db, s: s}) }

// agent returns the agent of the present version.
func (s *schedule) agent(w durabletest.World) *pawl.Agent {
	a := s.c.Agent(w)
	a.Middleware = []pawl.Middleware{pawl.Approve(func(_ context.Context, c llm.ToolCall,
		_ *pawl.Tool) (pawl.Approval, error) {
		if c.Name != "pay" {
			return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
		}
		if expiries && len(c.Args)%2 == 0 {
			return pawl.Approval{Verdict: pawl.VerdictAsk, ValidFor: lasts}, nil
		}
		return pawl.Approval{Verdict: pawl.VerdictAsk, ValidFor: -1}, nil
	})}
	switch s.version % 3 {
	case 1:
		a.Instructions += " Be careful."
	case 2:
		for i, set := range a.Tools {
			if tool, ok := set.(*pawl.Tool); ok && tool.Name == "pay" {
				tool = tool.Clone()
				tool.Input = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},` +
					`"why":{"type":"string"}},"required":["why"]}`)
				a.Tools[i] = tool
			}
		}
	}
	return a
}

// oddJournal is the journal of one process: it fails at one write, before or after it is stored,
// and calls during at another one. Lists have the run of the schedule only.
type oddJournal struct {
	store.Journal
	s      *schedule
	count  *atomic.Int64 // nil means a client, which has no faults
	fails  int64
	after  bool
	asks   int64
	during func()
	err    error
	blind  bool // the search for waiting runs of earlier versions finds none
}

func (j oddJournal) AppendJournal(ctx context.Context, l store.Lease, c *store.JournalChange,
	records ...store.Record) (int64, error) {
	n := j.count.Add(1)
	if n == j.asks {
		j.during()
	}
	if n == j.fails && !j.after {
		return 0, j.err
	}
	if c != nil {
		change := *c
		if c = &change; j.s.wrong.waits && strings.Contains(string(c.Summary), `"stop":"pending"`) {
			c.State, c.Seen = store.JournalWaiting, 0
		}
		if j.s.wrong.changed && c.State == store.JournalFailed {
			c.State = store.JournalOpen
		}
	}
	last, err := j.Journal.AppendJournal(ctx, l, c, records...)
	if n == j.fails {
		return 0, j.err
	}
	return last, err
}

func (j oddJournal) ClaimJournal(ctx context.Context, s store.Scope, id, owner string, now,
	until time.Time) (store.Lease, error) {
	if head, err := j.JournalRun(ctx, s, id); j.s.wrong.lease && err == nil && head.Owner != "" {
		return store.Lease{}, store.ErrConflict
	}
	return j.Journal.ClaimJournal(ctx, s, id, owner, now, until)
}

func (j oddJournal) DueRuns(ctx context.Context, d store.DueQuery) ([]store.JournalRun, error) {
	d.Limit = 1000
	all, err := j.Journal.DueRuns(ctx, d)
	var own []store.JournalRun
	for _, r := range all {
		if r.Scope == j.s.who {
			own = append(own, r)
		}
	}
	return own, err
}

func (j oddJournal) UnendedRuns(ctx context.Context) iter.Seq2[store.JournalRun, error] {
	return func(yield func(store.JournalRun, error) bool) {
		for r, err := range j.Journal.UnendedRuns(ctx) {
			if !j.blind && (err != nil || r.Scope == j.s.who) && !yield(r, err) {
				return
			}
		}
	}
}

// work is the life of one process: it starts the run or resumes it, until the run stops or the
// process dies. lives means that the process has no faults.
func (s *schedule) work(ctx context.Context, lives bool) {
	ctx, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	l := &life{kill: kill}
	odd := oddJournal{Journal: s.db, s: s, count: new(atomic.Int64), blind: s.wrong.waits}
	if !lives {
		switch s.r.IntN(4) {
		case 0, 1:
			l.at = 1 + s.r.IntN(24)
		case 2:
			odd.fails, odd.after = int64(1+s.r.IntN(10)), s.r.IntN(2) == 0
			odd.err = fmt.Errorf("the disk is full: %w", store.ErrUnavailable)
		}
		odd.asks, odd.during = int64(1+s.r.IntN(10)), func() { s.answer(ctx) }
	}
	s.note("process: dies at %d, fails at %d (after it %t), version %d", l.at, odd.fails, odd.after, s.version)
	eng := s.engine(mortalJournal{odd, l, 0, new(faultyJournal)})
	agent := s.agent(mortalWorld{s.world, l})
	_, err := s.db.JournalRun(ctx, s.who, "run")
	if errors.Is(err, store.ErrNotFound) {
		_, err = eng.Runner("run", agent).Run(ctx, s.c.Messages()...)
	} else {
		_, err = eng.Recover(ctx, 0, func(store.JournalRun) (pawl.Runner, error) { return agent, nil })
	}
	s.note("it ended: dead %t, %v", l.dead, runerr.Cause(err))
}

// answer gives a random answer to one question, or to an earlier one.
func (s *schedule) answer(ctx context.Context) {
	eng := s.outside()
	ctx = context.WithoutCancel(ctx)
	open, err := eng.Pending(ctx, "run")
	if err != nil {
		return // the run has not begun
	}
	s.mu.Lock()
	s.asked = append(s.asked, open...)
	all := s.asked
	s.mu.Unlock()
	if len(all) == 0 {
		return
	}
	q := all[s.r.IntN(len(all))]
	if len(open) > 0 && s.r.IntN(4) > 0 {
		q = open[s.r.IntN(len(open))]
	}
	right, err := s.right(ctx, q)
	if err != nil {
		s.t.Error(err)
		return
	}
	ds, kind := []llm.Decision{right}, s.r.IntN(8)
	switch approves := !q.Passive && q.Outcome != pawl.OutcomeUnknown; {
	case kind == 0:
		ds = append(ds, right)
	case kind == 1:
		ds[0].Digest = strings.Repeat("0", len(right.Digest))
	case kind == 2:
		ds[0].Key += "0"
	case kind == 3 && approves:
		ds[0] = q.Edit("somebody", json.RawMessage(`{"n":7}`))
	case kind == 4 && approves && misfits:
		ds[0] = q.Edit("somebody", json.RawMessage(`{"n":"seven"}`))
		if s.wrong.misfit && len(open) > 0 {
			s.mu.Lock()
			s.hidden[q.Key] = true
			s.mu.Unlock()
		}
	}
	for _, d := range ds {
		err := s.decide(ctx, eng, q, d)
		s.note("answer %d to %s: %v", kind, q.Key, err)
	}
}

func (s *schedule) decide(ctx context.Context, eng *durable.Engine, q pawl.PendingCall, d llm.Decision) error {
	// the run is old
	if s.wrong.late && d.Approve && q.ValidFor > 0 && s.now().After(time.Now().Add(q.ValidFor)) {
		return store.ErrConflict
	}
	return eng.Decide(ctx, "run", d)
}

// right returns the answer of a careful person.
func (s *schedule) right(ctx context.Context, q pawl.PendingCall) (llm.Decision, error) {
	msgs, err := durabletest.Answers(ctx, s.world, []pawl.PendingCall{q})
	if err != nil {
		return llm.Decision{}, err
	}
	return msgs[0].Parts[0].(llm.Decision), nil
}

// alone leaves the run to a living process, until no run is left to resume.
func (s *schedule) alone(ctx context.Context) {
	for range 3 {
		s.later(31 * time.Second)
		s.work(ctx, true)
	}
}

// stuck returns why the run breaks R9, apart from Engine.CheckLiveness. Empty means that it does
// not. over means that nothing will happen any more.
func (s *schedule) stuck(ctx context.Context) (why string, open []pawl.PendingCall, over bool) {
	head, err := s.db.JournalRun(ctx, s.who, "run")
	if err != nil {
		return err.Error(), nil, true
	}
	all, err := s.outside().Pending(ctx, "run")
	if err != nil {
		return err.Error(), nil, true
	}
	for _, q := range all {
		if !s.hidden[q.Key] {
			open = append(open, q)
		}
	}
	var sum durable.Summary
	_ = json.Unmarshal(head.Summary, &sum)
	switch {
	case head.State == store.JournalOver:
		return "", nil, true
	case head.State == store.JournalFailed && sum.Cause != "":
		return "", nil, true
	case head.State == store.JournalWaiting && len(open) > 0:
		return "", open, false
	}
	return fmt.Sprintf("its state is %s, %d questions are open, and no process works on it", head.State,
		len(open)), open, true
}

// violation makes the schedule, and returns how the run breaks R9. Empty means that it does not.
func (s *schedule) violation(ctx context.Context) string {
	for range 2 + s.r.IntN(7) {
		switch s.r.IntN(8) {
		case 0:
			s.later(2 * lasts)
		case 1:
			if v := s.r.IntN(3); deploys {
				s.version = v
			}
		case 2, 3, 4:
			s.answer(ctx)
		}
		s.later(31 * time.Second)
		s.work(ctx, false)
	}
	for range 60 {
		s.alone(ctx)
		why, open, over := s.stuck(ctx)
		list, err := s.outside().CheckLiveness(ctx)
		switch {
		case err != nil:
			return err.Error()
		case len(list) > 0 && why == "":
			return "only CheckLiveness says: " + list[0].Why
		case why != "" && len(list) == 0:
			return why + "; CheckLiveness does not list it"
		case why != "":
			return why
		case over:
			return ""
		}
		for _, q := range open { // a person sees it, and answers
			d, err := s.right(ctx, q)
			if err == nil {
				err = s.decide(ctx, s.outside(), q, d)
			}
			if err != nil {
				return "the question that is shown takes no answer: " + err.Error()
			}
		}
	}
	return "it asks for ever"
}

// writes returns the Writes that happened more than once.
func (s *schedule) writes() (bad []string) {
	n := map[llm.Key]int{}
	for _, d := range s.world.All() {
		if d.Effect == pawl.EffectWrite {
			if n[d.Place]++; n[d.Place] == 2 {
				bad = append(bad, fmt.Sprintf("%s, a write of %s, happened twice", d.Place, d.Tool))
			}
		}
	}
	return bad
}

// schedules makes n schedules, eight at a time, and returns the violations. A control ends with the
// first one.
func schedules(t *testing.T, n int, wrong broken, open func() store.Journal) (bad []string) {
	t.Helper()
	var next atomic.Uint64
	var found atomic.Bool
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for seed := next.Add(1) - 1; seed < uint64(n) && !found.Load(); seed = next.Add(1) - 1 {
				s := &schedule{t: t, r: rand.New(rand.NewPCG(seed, 11)), db: open(), wrong: wrong,
					c: durabletest.Random(seed), who: store.Scope{Tenant: fmt.Sprint("t", seed)},
					world: new(durabletest.Memory), hidden: map[llm.Key]bool{}}
				why := s.violation(store.WithScope(t.Context(), s.who))
				all := s.writes()
				if why != "" {
					all = append(all, why)
				}
				if (wrong != broken{}) && why != "" {
					found.Store(true)
				}
				mu.Lock()
				for _, b := range all {
					bad = append(bad, fmt.Sprintf("seed %d: %s\n\t%s", seed, b, strings.Join(s.log, "\n\t")))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return bad
}

// No run breaks R9 in any schedule, and no Write happens twice: over each journal.
func TestSchedules(t *testing.T) {
	soak.Sequential(t)
	check := func(t *testing.T, n int, open func() store.Journal) {
		bad := schedules(t, n, broken{}, open)
		t.Logf("%d schedules, %d violations", n, len(bad))
		for _, b := range bad[:min(2, len(bad))] {
			t.Error(b)
		}
	}
	t.Run("memory", func(t *testing.T) {
		check(t, soak.N(60, 3000), func() store.Journal { return new(store.MemoryJournal) })
	})
	t.Run("sqlite", func(t *testing.T) {
		db, err := sqlite.Open(filepath.Join(t.TempDir(), "pawl.db"), &sqlite.Options{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		check(t, soak.N(10, 300), func() store.Journal { return db })
	})
	t.Run("postgres", func(t *testing.T) {
		soak.Only(t, "it starts a server of its own")
		server := pgtest.Postgres()
		defer server.Stop()
		url := server.URL(t)
		// Leases end by the clock of a process, which is ahead of the server's.
		db, err := postgres.Open(t.Context(), url, &postgres.Options{Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		check(t, 300, func() store.Journal { return db })
	})
}

// Each known break of R9, put back, is found. CheckLiveness lists the breaks that a journal can
// show.
func TestSchedulesControls(t *testing.T) {
	soak.Sequential(t)
	for _, row := range []struct {
		name   string
		wrong  broken
		listed bool
		made   bool // the schedules contain what breaks
	}{
		{"a: a stop with answered questions waits", broken{waits: true}, true, true},
		{"b: an answer that does not fit hides its question", broken{misfit: true}, false, misfits},
		{"c: an old question takes no answer", broken{late: true}, false, expiries},
		{"d: a run with a changed agent stays open", broken{changed: true}, true, deploys},
		{"e: the lease of a dead process does not end", broken{lease: true}, true, true},
	} {
		if !row.made {
			continue
		}
		bad := schedules(t, 300, row.wrong, func() store.Journal { return new(store.MemoryJournal) })
		if len(bad) == 0 {
			t.Errorf("%s: it is not found in 300 schedules", row.name)
			continue
		}
		why, _, _ := strings.Cut(bad[0], "\n")
		t.Logf("%s: %s", row.name, why)
		if row.listed && strings.Contains(why, "CheckLiveness does not") {
			t.Errorf("%s: %s", row.name, why)
		}
	}
}
