package durable_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/durabletest"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
	"go.uber.org/goleak"
)

// TestMain is also the process that is killed: with PAWL_DURABLE_CHILD it makes a run, and nothing else.
func TestMain(m *testing.M) {
	if path := os.Getenv("PAWL_DURABLE_CHILD"); path != "" {
		if err := child(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// suicidal is the journal of a process that kills itself with SIGKILL before or after one of its writes.
type suicidal struct {
	store.Journal
	mu    sync.Mutex
	count int
	at    int
}

func (j *suicidal) point() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.count++; j.count == j.at {
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			panic(err)
		}
		select {} // it is on its way
	}
}

func (j *suicidal) AppendJournal(ctx context.Context, l store.Lease, c *store.JournalChange, records ...store.Record) (int64, error) {
	j.point()
	defer j.point()
	return j.Journal.AppendJournal(ctx, l, c, records...)
}

// child makes the run, or goes on with it, as told by the environment.
func child(path string) error {
	var at, ahead int
	if _, err := fmt.Sscan(os.Getenv("PAWL_DURABLE_AT"), &at, &ahead); err != nil {
		return err
	}
	db, err := sqlite.Open(path, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	eng := &durable.Engine{Journal: &suicidal{Journal: db, at: at}}
	eng.SetClock(func() time.Time { return time.Now().Add(time.Duration(ahead) * time.Hour) })
	tool := os.Getenv("PAWL_DURABLE_TOOL")
	run := ofCase(tool)
	if c, ok := composed()[tool]; ok {
		run = c.drive
	}
	res, err := run(context.Background(), eng, durabletest.Remote{URL: os.Getenv("PAWL_DURABLE_WORLD")})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(res.Messages)
}

// receiver is the world that counts, in this process. kill is called when a delivery comes, before and after it is counted.
type receiver struct {
	durabletest.Memory
	mu   sync.Mutex
	n    int
	kill func(n int)
}

func (r *receiver) tick() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	r.kill(r.n)
	return false
}

// live runs the child once, and returns what it printed; killed says that it died of it. The parent kills it at its at-th send, if that is not 0.
func (r *receiver) live(t *testing.T, path, url, tool string, atWrite, atSend, ahead int) (out string, killed bool) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), "PAWL_DURABLE_CHILD="+path, "PAWL_DURABLE_WORLD="+url, "PAWL_DURABLE_TOOL="+tool, fmt.Sprintf("PAWL_DURABLE_AT=%d %d", atWrite, ahead))
	r.mu.Lock()
	r.n, r.kill = 0, func(n int) {
		if n == atSend {
			_ = cmd.Process.Kill() // it may be dead
		}
	}
	err = cmd.Start()
	r.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return "", true
	}
	if err != nil {
		t.Fatalf("the child: %v: %s", err, stderr.String())
	}
	return stdout.String(), false
}

// served returns a receiver, and the server that it is.
func served(t *testing.T) (*receiver, *httptest.Server) {
	r := &receiver{}
	srv := httptest.NewServer(durabletest.Serve(&r.Memory, r.tick))
	t.Cleanup(srv.Close)
	return r, srv
}

// Real processes over a real file, killed with SIGKILL at some of the points: enough to see that what TestCrashPoints makes of a death is what a death is.
func TestKill(t *testing.T) {
	r, srv := served(t)
	dir := t.TempDir()
	var whole []durabletest.Delivery
	want, _ := r.live(t, filepath.Join(dir, "whole.db"), srv.URL, "charge", 0, 0, 0)
	if whole = r.All(); len(whole) == 0 || want == "" {
		t.Fatal("nothing happened")
	}
	points := 0
	for i, at := range [][2]int{{1, 0}, {2, 0}, {3, 0}, {4, 0}, {7, 0}, {8, 0}, {11, 0}, {14, 0}, {17, 0}, {20, 0}, {23, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 8}, {0, 11}, {0, 15}, {0, 20}, {0, 24}, {0, 29}} {
		mine, srv := served(t)
		path := filepath.Join(dir, fmt.Sprintf("%d.db", i))
		_, killed := mine.live(t, path, srv.URL, "charge", at[0], at[1], 0)
		if killed {
			points++
		}
		got, again := mine.live(t, path, srv.URL, "charge", 0, 0, 1)
		if again {
			t.Fatal("the second child died")
		}
		if bad := durabletest.Violations(mine.All(), whole, 1); len(bad) > 0 || got != want {
			t.Errorf("killed at write %d, send %d: %v\ngot  %swant %s", at[0], at[1], bad, got, want)
		}
	}
	t.Logf("%d processes killed with SIGKILL, of 21", points)
	if points < 15 {
		t.Errorf("only %d processes died", points)
	}
}
