package durable_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/durabletest"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/store"
)

// life is one process: it counts the points at which it can die, and dies at one of them. Nothing
// that it does afterwards reaches the journal or the world, as for a killed process.
type life struct {
	mu    sync.Mutex
	at    int // 0 means that it lives
	count int
	dead  bool
	kill  context.CancelCauseFunc
}

// point returns an error if the process is dead, or dies here.
func (l *life) point() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.dead {
		if l.count++; l.count == l.at {
			l.dead = true
			l.kill(durabletest.ErrDead)
		}
	}
	if l.dead {
		return durabletest.ErrDead
	}
	return nil
}

// mortalJournal is the journal as a process sees it: the process can die before and after each
// write. Writes that it started earlier are on disk.
type mortalJournal struct {
	store.Journal
	life *life
	// Clocks of later processes are ahead, so that leases of dead ones have expired.
	ahead  time.Duration
	faulty *faultyJournal
}

// faulty is the faults of a journal, for the controls.
type faulty struct {
	late bool // intents are written together with later records
	lazy bool // records reported as stored are written with the next write only
}

type faultyJournal struct {
	faulty
	mu      sync.Mutex
	waiting []store.Record // not written yet
}

func (j mortalJournal) AppendJournal(ctx context.Context, l store.Lease, c *store.JournalChange,
	records ...store.Record) (int64, error) {
	if err := j.life.point(); err != nil {
		return 0, err
	}
	records = j.faulty.written(c, records)
	n, err := j.Journal.AppendJournal(ctx, l, c, records...)
	return n, cmp.Or(err, j.life.point())
}

// written returns the records, new or waiting, that are written now.
func (f *faultyJournal) written(c *store.JournalChange, records []store.Record) (now []store.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, f.waiting = f.waiting, nil
	for _, r := range records {
		if c == nil && (f.lazy || f.late && r.Kind == "intent") {
			f.waiting = append(f.waiting, r)
		} else {
			now = append(now, r)
		}
	}
	return now
}

func (j mortalJournal) BeginJournal(ctx context.Context, s store.Scope, r store.JournalRun, owner string,
	until time.Time, first ...store.Record) (store.Lease, error) {
	if err := j.life.point(); err != nil {
		return store.Lease{}, err
	}
	l, err := j.Journal.BeginJournal(ctx, s, r, owner, until, first...)
	return l, cmp.Or(err, j.life.point())
}

func (j mortalJournal) AppendOutside(ctx context.Context, s store.Scope, id, state string,
	records ...store.Record) error {
	if err := j.life.point(); err != nil {
		return err
	}
	err := j.Journal.AppendOutside(ctx, s, id, state, records...)
	return cmp.Or(err, j.life.point())
}

func (j mortalJournal) ClaimJournal(ctx context.Context, s store.Scope, id, owner string, now,
	until time.Time) (store.Lease, error) {
	if err := j.life.point(); err != nil {
		return store.Lease{}, err
	}
	l, err := j.Journal.ClaimJournal(ctx, s, id, owner, now.Add(j.ahead), until.Add(j.ahead))
	return l, cmp.Or(err, j.life.point())
}

func (j mortalJournal) RenewJournal(ctx context.Context, l store.Lease, until time.Time) (store.JournalRun, error) {
	j.life.mu.Lock()
	dead := j.life.dead
	j.life.mu.Unlock()
	if dead {
		return store.JournalRun{}, durabletest.ErrDead
	}
	if !until.IsZero() {
		until = until.Add(j.ahead)
	}
	return j.Journal.RenewJournal(ctx, l, until)
}

// mortalWorld is the world as a process sees it: the process can die before and after each send.
type mortalWorld struct {
	*durabletest.Memory
	life *life
}

func (w mortalWorld) Deliver(ctx context.Context, d durabletest.Delivery) error {
	if err := w.life.point(); err != nil {
		return err
	}
	return cmp.Or(w.Memory.Deliver(ctx, d), w.life.point())
}

// made is the outcome of a case.
type made struct {
	messages, spent string
	delivered       []durabletest.Delivery
	points          int // of the life that did not die
	err             error
}

// drive makes or resumes a run on an engine until it has ended or fails.
type drive func(ctx context.Context, eng *durable.Engine, w durabletest.World) (*pawl.Result, error)

// ofCase drives a case. Each call of it is a process without knowledge of the earlier ones.
func ofCase(tool string, shape int) drive {
	return func(ctx context.Context, eng *durable.Engine, w durabletest.World) (*pawl.Result, error) {
		return durabletest.Drive(ctx, eng, "the-run", durabletest.Shapes(tool)[shape], w)
	}
}

// makeRun makes a run over j. Its processes die at the given points, one after another. The last
// one lives.
func makeRun(ctx context.Context, j store.Journal, run drive, wrong faulty, dieAt ...int) (m made) {
	world := new(durabletest.Memory)
	defer func() { m.delivered = world.All() }()
	for n, at := range append(dieAt, 0) {
		ctx, kill := context.WithCancelCause(ctx)
		l := &life{at: at, kill: kill}
		f := &faultyJournal{faulty: wrong} // its waiting records are lost with the process
		eng := &durable.Engine{Journal: mortalJournal{j, l, time.Duration(n) * time.Hour, f}}
		res, err := run(ctx, eng, mortalWorld{world, l})
		kill(nil)
		if l.dead {
			continue
		}
		m.points, m.err = l.count, err
		if err == nil && res.Stop != pawl.StopAnswer {
			m.err = fmt.Errorf("it stopped with %s: %s", res.Stop, res.Cause)
		}
		if res != nil {
			m.messages, m.spent = asJSON(res.Messages), asJSON(res.Spent)
		}
		return m
	}
	return m
}

// violations returns what is wrong with a run that had crashes.
func (m made) violations(whole made, crashes int) []string {
	bad := durabletest.Violations(m.delivered, whole.delivered, crashes)
	switch {
	case m.err != nil:
		bad = append(bad, m.err.Error())
	case m.messages != whole.messages:
		bad = append(bad, "the transcript is another one: "+m.messages)
	case m.spent != whole.spent:
		bad = append(bad, "other amounts were spent: "+m.spent+", not "+whole.spent)
	}
	return bad
}

// enumerate kills the run's process at its points 1, 1+every and so on, and at each that three
// divides its successor, too. It returns how many points there are and what was violated.
func enumerate(t *testing.T, j store.Journal, tool string, run drive, f faulty, every int) (points int, bad []string) {
	t.Helper()
	in := func(point int) context.Context { // the same run, in a scope of its own
		return store.WithScope(t.Context(), store.Scope{Tenant: fmt.Sprint(tool, point)})
	}
	whole := makeRun(in(0), j, run, faulty{})
	if whole.err != nil {
		t.Fatal(whole.err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	next := make(chan int)
	for range 16 { // they wait for the disk, and for each other's syncs
		wg.Go(func() {
			for at := range next {
				dies := []int{at}
				if at%3 == 0 {
					dies = append(dies, 1+at%17)
				}
				m := makeRun(in(at), j, run, f, dies...)
				mu.Lock()
				for _, b := range m.violations(whole, len(dies)) {
					bad = append(bad, fmt.Sprintf("%s: killed at %v: %s", tool, dies, b))
				}
				mu.Unlock()
			}
		})
	}
	for at := 1; at <= whole.points; at += every {
		next <- at
	}
	close(next)
	wg.Wait()
	return whole.points, bad
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// The process is killed before and after every write to the journal and every send to the world,
// and at a third of those points its successor too. In the end the run and the world are the same
// as without crashes.
func TestCrashPoints(t *testing.T) {
	soak.Sequential(t)
	file, memory := open(t), new(store.MemoryJournal)
	effects := map[string]pawl.Effect{"look": pawl.EffectRead, "calc": pawl.EffectPure, "put": pawl.EffectIdempotent, "post": pawl.EffectWrite,
		"pay": pawl.EffectWrite, "charge": pawl.EffectWrite}
	total := map[pawl.Effect]int{}
	every := soak.N(15, 1) // at which crash points a process is killed
	for _, tool := range durabletest.Tools() {
		for shape, c := range durabletest.Shapes(tool) {
			over, on := store.Journal(file), "on disk"
			if shape > 0 {
				over, on = memory, "in memory"
			}
			if shape > 0 && (tool == "pay" || tool == "charge") {
				continue // post is a Write, too
			}
			points, bad := enumerate(t, over, c.Name, ofCase(tool, shape), faulty{}, every)
			t.Logf("%-16s %3d crash points, one in %d tried, %d violations (%s)", c.Name, points, every, len(bad), on)
			for _, b := range bad[:min(3, len(bad))] {
				t.Error(b)
			}
			total[effects[tool]] += points
		}
	}
	for effect, n := range total {
		t.Logf("%-10s %d crash points", effect, n)
		least := 200
		if effect == pawl.EffectRead || effect == pawl.EffectPure { // their calls have no intents
			least = 170
		}
		if n <= least {
			t.Errorf("%s: %d crash points are not over %d", effect, n, least)
		}
	}
}

// Two journals break their promises: the test must detect it.
func TestCrashPointsControls(t *testing.T) {
	soak.Sequential(t)
	for name, f := range map[string]faulty{"writes dropped, as without fsync": {lazy: true}, "the intent written after the call": {late: true}} {
		_, bad := enumerate(t, new(store.MemoryJournal), "post", ofCase("post", 0), f, soak.N(3, 1))
		t.Logf("%s: %d violations", name, len(bad))
		if !slices.ContainsFunc(bad, func(b string) bool { return strings.Contains(b, "a write of post, happened 2 times") }) {
			t.Errorf("%s: no write that happened twice is found in %d violations", name, len(bad))
		}
	}
}
