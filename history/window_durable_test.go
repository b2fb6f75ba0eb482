package history_test

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/internal/test/longwork"
	"github.com/pawl-go/pawl/internal/test/pgtest"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/postgres"
)

var errKilled = errors.New("the process was killed")

// mortal is the journal of a process that dies at its write number at.
type mortal struct {
	store.Journal
	ahead time.Duration // so that the leases of dead processes have expired
	kill  context.CancelCauseFunc

	mu        sync.Mutex
	at, count int
	dead      bool
}

func (j *mortal) point() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.count++; j.count == j.at {
		j.dead = true
		j.kill(errKilled)
	}
	if j.dead {
		return errKilled
	}
	return nil
}

func (j *mortal) AppendJournal(ctx context.Context, l store.Lease, c *store.JournalChange,
	records ...store.Record) (int64, error) {
	if err := j.point(); err != nil {
		return 0, err
	}
	return j.Journal.AppendJournal(ctx, l, c, records...)
}

func (j *mortal) ClaimJournal(ctx context.Context, s store.Scope, id, owner string, now,
	until time.Time) (store.Lease, error) {
	return j.Journal.ClaimJournal(ctx, s, id, owner, now.Add(j.ahead), until.Add(j.ahead))
}

func (j *mortal) RenewJournal(ctx context.Context, l store.Lease, until time.Time) (store.JournalRun, error) {
	if j.mu.Lock(); j.dead {
		j.mu.Unlock()
		return store.JournalRun{}, errKilled
	}
	j.mu.Unlock()
	if !until.IsZero() {
		until = until.Add(j.ahead)
	}
	return j.Journal.RenewJournal(ctx, l, until)
}

// live makes the run in one process after the other, until it ends. kills has the write at which
// each of them dies.
func live(t *testing.T, s *longwork.Survey, journal store.Journal, kills []int, ws ...pawl.Middleware) *pawl.Result {
	t.Helper()
	model := s.Provider(t, cmp.Or(s.Wire, "chat"), durable.Transport(nil))
	for n := 0; ; n++ {
		ctx, kill := context.WithCancelCause(context.Background())
		j := &mortal{Journal: journal, kill: kill, ahead: time.Duration(n) * time.Hour}
		if n < len(kills) {
			j.at = kills[n]
		}
		e := &durable.Engine{Journal: j}
		r := e.Runner("survey", s.Agent(model, ws...))
		var res *pawl.Result
		var err error
		if n == 0 {
			res, err = r.Run(ctx, llm.User("Survey the mill."))
		} else {
			res, err = r.Run(ctx)
		}
		kill(nil)
		if err == nil {
			return res
		}
		if n >= len(kills) || !errors.Is(err, errKilled) && !errors.Is(err, context.Canceled) {
			t.Fatalf("process %d: %v", n, err)
		}
	}
}

// A durable run that is killed again and again sends the same requests as a run that lives; at each
// kill at most one is sent twice. A replay sends nothing and finds the same bytes.
func TestWindowKilled(t *testing.T) {
	soak.Sequential(t)
	pages := soak.N(60, 2_000)
	make := func() *longwork.Survey {
		return &longwork.Survey{Pages: pages, Facts: pages / 20, Least: 2_000, Most: 8_000, Window: small}
	}
	o := options()
	whole := make()
	journal := new(store.MemoryJournal)
	start := time.Now()
	res := live(t, whole, journal, nil, history.Window(&o))
	t.Logf("%d requests in %v", whole.Meter.Requests, time.Since(start))
	if whole.Meter.Refused > 0 || whole.Known(res) != whole.Facts {
		t.Fatalf("%+v, %d facts", whole.Meter, whole.Known(res))
	}
	e := &durable.Engine{Journal: journal}
	agent := whole.Agent(whole.Provider(t, "chat", durable.Transport(nil)), history.Window(&o))
	played, err := e.Replay(context.Background(), "survey", agent)
	if err != nil || played.Bytes != whole.Meter.Requests {
		t.Errorf("replay: %v, %d requests compared of %d", err, played.Bytes, whole.Meter.Requests)
	}
	r := rand.New(rand.NewPCG(1, 2))
	var random []int
	for range soak.N(5, 20) {
		random = append(random, 1+r.IntN(4*pages/soak.N(5, 20)))
	}
	alike(t, make(), whole, res, random, &o)
}

// The same on PostgreSQL, with 200 pages.
func TestWindowKilledPostgres(t *testing.T) {
	soak.Only(t, "it starts a server of its own")
	soak.Sequential(t)
	make := func() *longwork.Survey {
		return &longwork.Survey{Pages: 200, Facts: 10, Least: 2_000, Most: 8_000, Window: small}
	}
	open := func() store.Journal {
		server := pgtest.Postgres()
		t.Cleanup(server.Stop)
		// Leases end by the clock of a process, which is ahead of the server's.
		db, err := postgres.Open(t.Context(), server.URL(t), &postgres.Options{Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}
	o := options()
	whole, journal := make(), open()
	res := live(t, whole, journal, nil, history.Window(&o))
	e := &durable.Engine{Journal: journal}
	agent := whole.Agent(whole.Provider(t, "chat", durable.Transport(nil)), history.Window(&o))
	played, err := e.Replay(t.Context(), "survey", agent)
	if err != nil || played.Bytes != whole.Meter.Requests {
		t.Errorf("replay: %v, %d requests compared of %d", err, played.Bytes, whole.Meter.Requests)
	}
	alikeOn(t, open(), make(), whole, res, []int{50, 120, 33, 200, 77}, &o)
}

// The same for one kill at each write of a run with edits and a fold.
func TestWindowKilledAnywhere(t *testing.T) {
	soak.Sequential(t)
	make := func() *longwork.Survey {
		return &longwork.Survey{Pages: 60, Facts: 5, Least: 2_000, Most: 8_000, Window: small}
	}
	o := options()
	whole := make()
	journal := &mortal{Journal: new(store.MemoryJournal), kill: func(error) {}}
	res := live(t, whole, journal, nil, history.Window(&o))
	for at := 1; at <= journal.count; at += soak.N(61, 1) {
		alike(t, make(), whole, res, []int{at}, &o)
	}
}

// alike makes the run of s, which is killed, and compares its requests with the run that lived.
func alike(t *testing.T, s, whole *longwork.Survey, want *pawl.Result, kills []int, o *history.WindowOptions) {
	t.Helper()
	alikeOn(t, new(store.MemoryJournal), s, whole, want, kills, o)
}

func alikeOn(t *testing.T, journal store.Journal, s, whole *longwork.Survey, want *pawl.Result, kills []int,
	o *history.WindowOptions) {
	t.Helper()
	got := live(t, s, journal, kills, history.Window(o))
	digests := slices.Compact(slices.Clone(s.Digests))
	if !slices.Equal(digests, whole.Digests) {
		t.Errorf("kills %v: the requests differ from the run without a kill: %d and %d", kills, len(digests), len(whole.Digests))
	}
	if twice := len(s.Digests) - len(digests); twice > len(kills) {
		t.Errorf("kills %v: %d requests are sent twice", kills, twice)
	}
	if a, b := got.Spent.Usage, want.Spent.Usage; a.Input != b.Input || a.Output != b.Output {
		t.Errorf("kills %v: tokens %d and %d, want %d and %d", kills, a.Input, a.Output, b.Input, b.Output)
	}
}
