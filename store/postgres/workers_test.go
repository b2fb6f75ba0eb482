package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	process "os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/durabletest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/postgres"
)

// works is the process that is killed: it resumes abandoned runs and answers their pending calls,
// until all runs have ended.
func works(at, world string) error {
	ctx := context.Background()
	db, err := postgres.Open(ctx, at, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	eng := &durable.Engine{Journal: db, Lease: time.Second}
	of := func(id string) durabletest.World { return durabletest.Remote{URL: world + "/" + id} }
	for {
		_, err := eng.Recover(ctx, 0, func(r store.JournalRun) (pawl.Runner, error) {
			tool, _, _ := strings.Cut(r.ID, "-")
			return durabletest.ForEffect(tool).Agent(of(r.ID)), nil
		})
		if err != nil {
			return err
		}
		runs, err := db.JournalRuns(ctx, store.Scope{}, "", store.Page{Limit: 1000})
		if err != nil {
			return err
		}
		left := 0
		for _, r := range runs {
			if r.State == store.JournalOver {
				continue
			}
			left++
			if err := answer(ctx, eng, of(r.ID), r.ID); err != nil {
				return err
			}
		}
		if left == 0 {
			return nil
		}
		time.Sleep(20 * time.Millisecond) // polls like a real worker, because nothing notifies it
	}
}

// answer answers a run's pending calls as a person would. Another process may be faster.
func answer(ctx context.Context, eng *durable.Engine, w durabletest.World, id string) error {
	open, err := eng.Pending(ctx, id)
	if err != nil || len(open) == 0 {
		return err
	}
	msgs, err := durabletest.Answers(ctx, w, open)
	if err != nil {
		return err
	}
	for _, m := range msgs {
		if err := eng.Decide(ctx, id, m.Parts[0].(llm.Decision)); err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return nil
}

// crew is a group of processes that share one database. After every few deliveries one of them is
// killed, and another takes its place.
type crew struct {
	t     *testing.T
	start func() *process.Cmd

	mu     sync.Mutex
	all    []*process.Cmd
	sent   int
	killed int
}

func (c *crew) hire() {
	cmd := c.start()
	if err := cmd.Start(); err != nil {
		c.t.Error(err)
		return
	}
	c.all = append(c.all, cmd)
}

// tick is called before and after each delivery is counted.
func (c *crew) tick() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sent++; c.sent%17 == 0 && c.killed < 12 {
		_ = c.all[len(c.all)-1-c.killed%3].Process.Kill() // it may have exited already
		c.killed++
		c.hire()
	}
	return false
}

// Three processes share a database with abandoned runs. They are killed with SIGKILL, a dozen times
// in all, during their calls, and others resume their runs. In the end all runs have ended, and no
// write happened twice.
func TestWorkersAreKilled(t *testing.T) {
	at := server.URL(t)
	at = fresh(t, at)
	db := open(t, at)
	defer db.Close()
	eng := &durable.Engine{Journal: db}
	worlds, whole := map[string]*durabletest.Memory{}, map[string]*durabletest.Memory{}
	mux := http.NewServeMux()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(mux)
	defer srv.Close()
	c := &crew{t: t, start: func() *process.Cmd {
		cmd := process.Command(exe)
		cmd.Env = append(os.Environ(), "PAWL_WORKER="+at, "PAWL_WORLD="+srv.URL, "GORACE=atexit_sleep_ms=0")
		cmd.Stderr = os.Stderr
		return cmd
	}}
	for _, tool := range durabletest.Tools() {
		whole[tool] = new(durabletest.Memory)
		if _, err := durabletest.Drive(t.Context(), &durable.Engine{Journal: new(store.MemoryJournal)}, tool,
			durabletest.ForEffect(tool), whole[tool]); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			id, kase := fmt.Sprintf("%s-%d", tool, i), durabletest.ForEffect(tool)
			worlds[id] = new(durabletest.Memory)
			mux.Handle("/"+id+"/", http.StripPrefix("/"+id, durabletest.Serve(worlds[id], c.tick)))
			ctx, leave := context.WithCancel(t.Context())
			a := kase.Agent(worlds[id])
			a.Model = script.New(script.Func(func(*llm.Request) script.Turn { leave(); return script.Fail(ctx.Err()) }))
			// started, and abandoned
			if _, err := eng.Runner(id, a).Run(ctx, kase.Messages()...); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
	}
	c.mu.Lock()
	for range 3 {
		c.hire()
	}
	c.mu.Unlock()
	for n := 0; ; n++ { // also runs that are added while we wait
		c.mu.Lock()
		if n == len(c.all) {
			c.mu.Unlock()
			break
		}
		cmd := c.all[n]
		c.mu.Unlock()
		if err := cmd.Wait(); err != nil && cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Errorf("a worker: %v", err)
		}
	}
	for id, world := range worlds {
		tool, _, _ := strings.Cut(id, "-")
		head, err := db.JournalRun(t.Context(), store.Scope{}, id)
		if err != nil || head.State != store.JournalOver {
			t.Errorf("%s: %+v, %v", id, head, err)
		}
		if bad := durabletest.Violations(world.All(), whole[tool].All(), c.killed); len(bad) > 0 {
			t.Errorf("%s: %v", id, bad)
		}
		if _, err := eng.Verify(t.Context(), id, nil); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d runs are over; %d of %d processes were killed", len(worlds), c.killed, len(c.all))
	if c.killed < 8 {
		t.Errorf("only %d processes were killed", c.killed)
	}
}
