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
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/durabletest"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
)

// TestMain is also the process that is killed: with PAWL_DURABLE_CHILD it only makes a run.
func TestMain(m *testing.M) {
	if path := os.Getenv("PAWL_DURABLE_CHILD"); path != "" {
		run := child
		if os.Getenv("PAWL_DURABLE_BACKGROUND") != "" {
			run = backgroundChild
		}
		if os.Getenv(sendingVariable) != "" {
			run = unsentChild
		}
		if err := run(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// suicidal is the journal of a process that kills itself with SIGKILL before or after one of its
// writes.
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
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		if err != nil {
			panic(err)
		}
		select {} // until the signal arrives
	}
}

func (j *suicidal) AppendJournal(ctx context.Context, l store.Lease, c *store.JournalChange,
	records ...store.Record) (int64, error) {
	j.point()
	defer j.point()
	return j.Journal.AppendJournal(ctx, l, c, records...)
}

// child makes or resumes the run that the environment names.
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
	run := ofCase(tool, 0)
	if c, ok := composed()[tool]; ok {
		run = c.drive
	}
	res, err := run(context.Background(), eng, durabletest.Remote{URL: os.Getenv("PAWL_DURABLE_WORLD")})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(res.Messages)
}

// receiver is the counting world, in this process. kill is called for each delivery, before and
// after it is counted.
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

// live runs the child once, and returns its output. killed reports that it was killed. The parent
// kills it at send number at, unless that is 0.
func (r *receiver) live(path, url, tool string, atWrite, atSend, ahead int) (out string, killed bool, err error) {
	exe, err := os.Executable()
	if err != nil {
		return "", false, err
	}
	cmd := exec.Command(exe)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), "PAWL_DURABLE_CHILD="+path, "PAWL_DURABLE_WORLD="+url, "PAWL_DURABLE_TOOL="+tool, "GORACE=atexit_sleep_ms=0", fmt.Sprintf("PAWL_DURABLE_AT=%d %d", atWrite, ahead))
	r.mu.Lock()
	r.n, r.kill = 0, func(n int) {
		if n == atSend {
			_ = cmd.Process.Kill() // it may be dead
		}
	}
	err = cmd.Start()
	r.mu.Unlock()
	if err != nil {
		return "", false, err
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return "", true, nil
	}
	if err != nil {
		err = fmt.Errorf("the child: %w: %s", err, stderr.String())
	}
	return stdout.String(), false, err
}

// served returns a receiver, and its server.
func served(t *testing.T) (*receiver, *httptest.Server) {
	r := &receiver{}
	srv := httptest.NewServer(durabletest.Serve(&r.Memory, r.tick))
	t.Cleanup(srv.Close)
	return r, srv
}

// alone makes the run of a tool in a process that is not killed.
func alone(t *testing.T, tool string) (want string, whole []durabletest.Delivery) {
	t.Helper()
	r, srv := served(t)
	want, _, err := r.live(filepath.Join(t.TempDir(), "whole.db"), srv.URL, tool, 0, 0, 0)
	if whole = r.All(); len(whole) == 0 || want == "" || err != nil {
		t.Fatalf("%s: nothing happened: %v", tool, err)
	}
	return want, whole
}

// Real processes over a real file are killed with SIGKILL at some of the points. It shows that the
// deaths of TestCrashPoints equal real ones.
func TestKill(t *testing.T) {
	want, whole := alone(t, "charge")
	places := [][2]int{{1, 0}, {2, 0}, {3, 0}, {4, 0}, {7, 0}, {8, 0}, {11, 0}, {14, 0}, {17, 0}, {20, 0},
		{23, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 8}, {0, 11}, {0, 15}, {0, 20}, {0, 24}, {0, 29}}
	if !soak.On() {
		places = [][2]int{{1, 0}, {4, 0}, {11, 0}, {0, 2}, {0, 8}, {0, 20}}
	}
	points := killedAt(t, "charge", places, want, whole)
	t.Logf("%d processes killed with SIGKILL, of %d", points, len(places))
	if points < soak.N(4, 15) {
		t.Errorf("only %d processes died", points)
	}
}

// killedAt makes the run of a tool once for each place, in a process that is killed at that write
// or send. Another process resumes it, and both are compared with the whole run. It returns the
// number of killed processes.
func killedAt(t *testing.T, tool string, places [][2]int, want string, whole []durabletest.Delivery) int {
	t.Helper()
	dir := t.TempDir()
	var died atomic.Int64
	var wg sync.WaitGroup
	slots := make(chan struct{}, 4)
	for i, at := range places {
		mine, srv := served(t)
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			path := filepath.Join(dir, fmt.Sprintf("%d.db", i))
			_, killed, err := mine.live(path, srv.URL, tool, at[0], at[1], 0)
			if killed {
				died.Add(1)
			}
			got, again, errAgain := mine.live(path, srv.URL, tool, 0, 0, 1)
			if bad := durabletest.Violations(mine.All(), whole, 1); err != nil || errAgain != nil || again ||
				len(bad) > 0 || got != want || want == "" {
				t.Errorf("%s: killed at write %d, send %d: %v, %v, %v\ngot  %swant %s", tool, at[0], at[1],
					bad, err, errAgain, got, want)
			}
		})
	}
	wg.Wait()
	return int(died.Load())
}
