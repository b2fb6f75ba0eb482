package durable_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/durabletest"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
)

// failing is a journal whose disk rejects every write after a number of them, until it is repaired.
type failing struct {
	store.Journal
	left atomic.Int64
	err  error
}

func (j *failing) AppendJournal(ctx context.Context, l store.Lease, c *store.JournalChange,
	records ...store.Record) (int64, error) {
	if j.left.Add(-1) < 0 {
		return 0, j.err
	}
	return j.Journal.AppendJournal(ctx, l, c, records...)
}

// With a full or read-only disk, no call starts that cannot be recorded. The run states why it
// stopped, and resumes when the disk works again.
func TestDiskFaults(t *testing.T) {
	for _, why := range []string{"no space left on device", "attempt to write a readonly database"} {
		for after := range 12 {
			var world durabletest.Memory
			j := &failing{Journal: new(store.MemoryJournal), err: errors.New(why)}
			j.left.Store(int64(after))
			eng := &durable.Engine{Journal: j}
			c := durabletest.ForEffect("post")
			_, err := durabletest.Drive(t.Context(), eng, "r", c, &world)
			if err == nil {
				if after < 9 {
					t.Fatalf("%s after %d writes: the run ended all the same", why, after)
				}
				continue
			}
			if !errors.Is(err, j.err) {
				t.Errorf("%s after %d writes: %v", why, after, err)
			}
			effects, err := eng.Effects(t.Context(), "r")
			if err != nil {
				t.Fatal(err)
			}
			if writes := deliveries(&world, "post"); writes > len(effects) {
				t.Errorf("%s after %d writes: %d calls began, %d are recorded", why, after, writes, len(effects))
			}
			j.left.Store(1000)
			if _, err := durabletest.Drive(t.Context(), eng, "r", c, &world); err != nil {
				t.Fatalf("%s after %d writes: resumed: %v", why, after, err)
			}
			if n := deliveries(&world, "post"); n != 10 {
				t.Errorf("%s after %d writes: %d writes happened, want 10", why, after, n)
			}
		}
	}
}

func deliveries(w *durabletest.Memory, tool string) (n int) {
	for _, d := range w.All() {
		if d.Tool == tool {
			n++
		}
	}
	return n
}

// slow is a disk with slow writes.
type slow struct {
	store.Journal
	takes time.Duration
	order *[]string
}

func (j slow) AppendJournal(ctx context.Context, l store.Lease, c *store.JournalChange,
	records ...store.Record) (int64, error) {
	time.Sleep(j.takes)
	for _, r := range records {
		*j.order = append(*j.order, r.Kind)
	}
	return j.Journal.AppendJournal(ctx, l, c, records...)
}

func (j slow) RenewJournal(ctx context.Context, l store.Lease, until time.Time) (store.JournalRun, error) {
	select {
	case <-time.After(j.takes):
		return j.Journal.RenewJournal(ctx, l, until)
	case <-ctx.Done():
		return store.JournalRun{}, ctx.Err()
	}
}

// A sync of two seconds delays the call, and the call does not start before it. A sync longer than
// the lease drops the run before the call starts.
func TestSlowDisk(t *testing.T) {
	for _, row := range []struct {
		takes time.Duration
		want  string
	}{{2 * time.Second, "tools reply intent call outcome reply end"}, {45 * time.Second, "tools reply intent"}} {
		synctest.Test(t, func(t *testing.T) {
			var order []string
			act := pawl.Func("act", "acts", func(context.Context, none) (string, error) { order = append(order, "call"); return "done", nil })
			a := &pawl.Agent{Model: script.New(script.Call("act", `{}`), script.Say("ok")), Tools: []pawl.Toolset{act}}
			j := slow{new(store.MemoryJournal), row.takes, &order}
			eng := &durable.Engine{Journal: j, Lease: 30 * time.Second}
			_, err := runtest.Ended(eng.Runner("r", a).Run(t.Context(), llm.User("go")))
			if got := strings.Join(order, " "); got != row.want {
				t.Errorf("%v: %s, want %s", row.takes, got, row.want)
			}
			if lost := row.takes > 30*time.Second; lost != errors.Is(err, durable.ErrLost) {
				t.Errorf("%v: %v", row.takes, err)
			}
		})
	}
}

// stopped is the journal of a process that is stopped (SIGSTOP) just before it writes an outcome,
// and continues later.
type stopped struct {
	store.Journal
	stops, wakes chan struct{}
	once         *sync.Once
}

func (j stopped) AppendJournal(ctx context.Context, l store.Lease, c *store.JournalChange,
	records ...store.Record) (int64, error) {
	for _, r := range records {
		if r.Kind == "outcome" {
			j.once.Do(func() { close(j.stops); <-j.wakes })
		}
	}
	return j.Journal.AppendJournal(ctx, l, c, records...)
}

// Of two owners, the first was stopped for longer than its lease, or the second has a clock ahead.
// The first is rejected when it continues, and the call happened once.
func TestTwoOwners(t *testing.T) {
	for _, jump := range []time.Duration{time.Minute, 24 * time.Hour} {
		var world durabletest.Memory
		j := new(store.MemoryJournal)
		s := stopped{j, make(chan struct{}), make(chan struct{}), new(sync.Once)}
		c := durabletest.ForEffect("post")
		first := make(chan error)
		go func() {
			_, err := durabletest.Drive(context.Background(), &durable.Engine{Journal: s}, "r", c, &world)
			first <- err
		}()
		<-s.stops
		if _, err := durabletest.Drive(t.Context(), &durable.Engine{Journal: j}, "r", c, &world); !errors.Is(err,
			durable.ErrLost) {
			t.Errorf("a second owner while the lease lasts: %v", err)
		}
		second := &durable.Engine{Journal: j}
		second.SetClock(func() time.Time { return time.Now().Add(jump) })
		res, err := durabletest.Drive(t.Context(), second, "r", c, &world)
		if err != nil || res.Text() != "done" {
			t.Errorf("the second owner: %+v, %v", res, err)
		}
		close(s.wakes)
		if err := <-first; !errors.Is(err, durable.ErrLost) {
			t.Errorf("the first owner when it wakes: %v", err)
		}
		if n := deliveries(&world, "post"); n != 10 {
			t.Errorf("%d writes happened, want 10", n)
		}
		if _, err := second.Verify(t.Context(), "r", nil); err != nil {
			t.Error(err)
		}
	}
}

// A process whose clock goes backward or forward makes the same run: only leases and the time to
// answer depend on the wall clock.
func TestClockJumps(t *testing.T) {
	var whole, world durabletest.Memory
	c := durabletest.ForEffect("post")
	if _, err := durabletest.Drive(t.Context(), &durable.Engine{Journal: new(store.MemoryJournal)}, "r",
		c, &whole); err != nil {
		t.Fatal(err)
	}
	var n atomic.Int64
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	eng.SetClock(func() time.Time {
		if n.Add(1)%2 == 0 {
			return time.Now().Add(-48 * time.Hour)
		}
		return time.Now().Add(48 * time.Hour)
	})
	if res, err := durabletest.Drive(t.Context(), eng, "r", c, &world); err != nil || res.Text() != "done" {
		t.Errorf("%+v, %v", res, err)
	}
	if bad := durabletest.Violations(world.All(), whole.All(), 0); len(bad) > 0 {
		t.Error(bad)
	}
}

// file is a database with a run of ten posts.
type file struct {
	path  string
	db    *sqlite.DB
	eng   *durable.Engine
	world durabletest.Memory
	res   *pawl.Result
}

// reopened opens the database at path, and closes it when the test ends.
func reopened(t *testing.T, path string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// posted makes the run "r" over a new file.
func posted(t *testing.T) *file {
	t.Helper()
	f := &file{path: filepath.Join(t.TempDir(), "pawl.db")}
	f.db = reopened(t, f.path)
	f.eng = &durable.Engine{Journal: f.db}
	var err error
	if f.res, err = durabletest.Drive(t.Context(), f.eng, "r", durabletest.ForEffect("post"), &f.world); err != nil {
		t.Fatal(err)
	}
	return f
}

// image copies the files of a database during use.
func image(t *testing.T, from string, cut func(wal []byte) []byte) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "image.db")
	for _, end := range []string{"", "-wal"} {
		b, err := os.ReadFile(from + end)
		if err != nil {
			t.Fatal(err)
		}
		if end == "-wal" {
			b = cut(b)
		}
		if err := os.WriteFile(to+end, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// torn records the length of the log before and after a write, and dies with the write.
type torn struct {
	store.Journal
	wal    string
	at     *int
	before int64
	after  int64
	kill   context.CancelCauseFunc
}

func (j *torn) AppendJournal(ctx context.Context, l store.Lease, c *store.JournalChange,
	records ...store.Record) (int64, error) {
	if *j.at--; *j.at < 0 {
		return 0, durabletest.ErrDead
	}
	j.before = size(j.wal)
	n, err := j.Journal.AppendJournal(ctx, l, c, records...)
	if *j.at == 0 {
		j.after = size(j.wal)
		j.kill(durabletest.ErrDead)
		return 0, durabletest.ErrDead
	}
	return n, err
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// A write that a power loss tears at any place counts as not started: nothing depends on it yet.
// The run resumes from there.
func TestTornWrites(t *testing.T) {
	soak.Sequential(t)
	c := durabletest.ForEffect("post")
	for _, at := range soak.N([]int{1, 4}, []int{1, 2, 3, 4, 6}) {
		for _, part := range []int64{0, 1, 2, 3, 4} {
			var world durabletest.Memory
			path := filepath.Join(t.TempDir(), "pawl.db")
			ctx, kill := context.WithCancelCause(t.Context())
			left := at
			j := &torn{Journal: reopened(t, path), wal: path + "-wal", at: &left, kill: kill}
			_, err := durabletest.Drive(ctx, &durable.Engine{Journal: j}, "r", c, &world)
			kill(nil)
			if err == nil {
				t.Fatal("the run did not die")
			}
			end := j.before + (j.after-j.before)*part/4
			eng := &durable.Engine{Journal: reopened(t, image(t, path, func(wal []byte) []byte { return wal[:end] }))}
			eng.SetClock(func() time.Time { return time.Now().Add(time.Hour) })
			res, err := durabletest.Drive(t.Context(), eng, "r", c, &world)
			if err != nil || res.Text() != "done" || deliveries(&world, "post") != 10 {
				t.Errorf("write %d torn after %d/4: %v; %d writes happened", at, part, err, deliveries(&world, "post"))
			}
		}
	}
}

// A journal truncated at its end is detected with a head that was stored elsewhere. Without a head
// it looks like a machine that died earlier.
func TestTruncatedLog(t *testing.T) {
	f := posted(t)
	was, err := f.eng.Verify(t.Context(), "r", nil)
	if err != nil {
		t.Fatal(err)
	}
	eng := &durable.Engine{Journal: reopened(t,
		image(t, f.path, func(wal []byte) []byte { return wal[:len(wal)*2/3] }))}
	if now, err := eng.Verify(t.Context(), "r", nil); err != nil || now.Records >= was.Records {
		t.Fatalf("the image has %+v, %v; nothing was cut off", now, err)
	}
	known := &durable.VerifyOptions{Heads: []string{was.Head}}
	if _, err := eng.Verify(t.Context(), "r", known); !errors.Is(err, durable.ErrCorrupt) {
		t.Errorf("with a head that was kept: %v", err)
	}
}

// A changed byte in the file is detected before it has an effect, or it has no effect.
func TestFlippedBytes(t *testing.T) {
	soak.Sequential(t)
	f := posted(t)
	f.db.Close() // moves everything into the file itself
	whole, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	found, same := 0, 0
	flipped := filepath.Join(t.TempDir(), "flipped.db")
	for at := 4099; at < len(whole); at += len(whole) / soak.N(50, 150) {
		b := append([]byte(nil), whole...)
		b[at] ^= 0x04
		if err := os.WriteFile(flipped, b, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := sqlite.Open(flipped, nil)
		if err != nil {
			found++
			continue
		}
		eng := &durable.Engine{Journal: db}
		res, err := eng.Runner("r", durabletest.ForEffect("post").Agent(&f.world)).Run(t.Context())
		switch {
		case err != nil:
			found++
		case asJSON(res.Messages) == asJSON(f.res.Messages):
			same++
		default:
			t.Errorf("byte %d is another, and so is the run: %s", at, asJSON(res.Messages))
		}
		db.Close()
		for _, end := range []string{"-wal", "-shm"} {
			if err := os.Remove(flipped + end); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d flips were found, %d changed nothing", found, same)
	if n := deliveries(&f.world, "post"); n != 10 {
		t.Errorf("%d writes happened, want 10", n)
	}
	if found == 0 {
		t.Error("no flip was found")
	}
}

// A changed record is detected in all cases, also where SQLite accepts it.
func TestTampering(t *testing.T) {
	soak.Sequential(t)
	for _, statement := range []string{
		`update records set body = replace(body, 'post 1', 'post 7') where seq = 5`, `update records set key = 'run/9/0' where seq = 5`, `update records set kind = 'reply' where seq = 5`,
		`update records set at = at + 1 where seq = 5`, `delete from records where seq = 5`, `delete from records where seq = (select max(seq) from records)`,
		`update records set hash = (select hash from records where seq = 4) where seq = 5`, `update journals set head = 'x'`,
	} {
		f := posted(t)
		if _, err := f.eng.Verify(t.Context(), "r", nil); err != nil {
			t.Fatal(err)
		}
		raw, err := sql.Open("sqlite", f.path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := raw.Exec(statement); err != nil {
			t.Fatal(err)
		}
		raw.Close()
		if _, err := f.eng.Verify(t.Context(), "r", nil); !errors.Is(err, durable.ErrCorrupt) {
			t.Errorf("%s: %v", statement, err)
		}
	}
}
