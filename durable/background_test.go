package durable_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/longreply"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
)

// background returns an agent whose model asks the simulator at url for replies in the background.
func background(url string) *pawl.Agent {
	return longreply.Agent(url, time.Millisecond, durable.Transport(&http.Transport{DisableKeepAlives: true}))
}

// forgetful asks again in place of fetching a reply.
type forgetful struct{ llm.Model }

func (m forgetful) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	again := *req
	again.Background = nil
	return m.Model.Stream(ctx, &again)
}

// backgroundChild makes or resumes a run in a process that is killed.
func backgroundChild(path string) error {
	var at int
	if _, err := fmt.Sscan(os.Getenv("PAWL_DURABLE_AT"), &at); err != nil {
		return err
	}
	db, err := sqlite.Open(path, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	eng := &durable.Engine{Journal: &suicidal{Journal: db, at: at}}
	if at == 0 { // the lease of the killed process is over
		eng.SetClock(func() time.Time { return time.Now().Add(time.Hour) })
	}
	agent := background(os.Getenv("PAWL_DURABLE_BACKGROUND"))
	if os.Getenv("PAWL_DURABLE_FORGETS") != "" {
		agent.Model = forgetful{agent.Model}
	}
	r := eng.Runner("r", agent)
	var res *pawl.Result
	if os.Getenv("PAWL_DURABLE_STREAM") == "true" {
		res, err = pawl.Collect(r.Stream(context.Background(), llm.User("go")), nil)
	} else {
		res, err = r.Run(context.Background(), llm.User("go"))
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(res.Messages)
}

// process runs backgroundChild, and reports whether it was killed.
func process(t *testing.T, path, url string, stream bool, at int) (out string, killed bool) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), "PAWL_DURABLE_CHILD="+path, "PAWL_DURABLE_BACKGROUND="+url,
		fmt.Sprint("PAWL_DURABLE_STREAM=", stream), fmt.Sprint("PAWL_DURABLE_AT=", at), "GORACE=atexit_sleep_ms=0")
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return "", true
	}
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	return stdout.String(), false
}

// A process is killed before and after each write of a conversation of six replies in the
// background. The next process fetches the reply that is recorded: the provider is asked again only
// if the kill came between its first answer and the record of it.
func TestBackgroundKilled(t *testing.T) {
	soak.Sequential(t)
	step := soak.N(3, 1)
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprint("stream ", stream), func(t *testing.T) {
			kills, repeated, want := 0, 0, ""
			for at := 0; ; at += step {
				s, err := pawltest.NewSimulator(longreply.Talker(), nil)
				if err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(t.TempDir(), "runs.db")
				out, killed := process(t, path, s.URL, stream, at)
				asked, _, _ := longreply.Counted(s)
				recorded := 0
				if killed {
					kills++
					recorded = recordedReplies(t, path)
					out, _ = process(t, path, s.URL, stream, 0)
				} else if at > 0 {
					s.Close()
					break
				}
				lost := 0
				if killed {
					lost = asked - recorded
				}
				repeated += lost
				want = cmp.Or(want, out)
				if out != want {
					t.Errorf("killed at write %d: the transcript is %s, want %s", at, out, want)
				}
				asked, _, cancelled := longreply.Counted(s)
				if asked != longreply.Turns+lost || lost > 1 || cancelled != 0 {
					t.Errorf("killed at write %d: the provider was asked %d times, want %d; %d replies were not recorded, %d cancelled",
						at, asked, longreply.Turns+lost, lost, cancelled)
				}
				s.Close()
			}
			t.Logf("%d kills, %d requests repeated", kills, repeated)
			if kills < 5 {
				t.Errorf("%d kills are too few", kills)
			}
		})
	}
}

// The negative control: a model that ignores the recorded reply asks again, and the counts show it.
func TestBackgroundKilledControl(t *testing.T) {
	for at := 1; ; at++ {
		s, err := pawltest.NewSimulator(longreply.Talker(), nil)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "runs.db")
		_, killed := process(t, path, s.URL, false, at)
		if asked, _, _ := longreply.Counted(s); killed && (asked == 0 || asked != recordedReplies(t, path)) {
			s.Close()
			continue
		}
		t.Setenv("PAWL_DURABLE_FORGETS", "true")
		process(t, path, s.URL, false, 0)
		if asked, _, _ := longreply.Counted(s); !killed || asked != longreply.Turns+1 {
			t.Errorf("killed %v at write %d: the provider was asked %d times, want %d", killed, at, asked, longreply.Turns+1)
		}
		s.Close()
		return
	}
}

// recordedReplies returns the number of replies in the background that the journal names.
func recordedReplies(t *testing.T, path string) (n int) {
	t.Helper()
	db, err := sqlite.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	records, err := db.JournalRecords(t.Context(), store.Scope{}, "r", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.Kind == "background" {
			n++
		}
	}
	return n
}

// A process that stops leaves the reply at the provider. A cancelled run, and a run whose time is
// over, cancel it.
func TestBackgroundEnds(t *testing.T) {
	stop := errors.New("the process stops")
	for _, c := range []struct {
		name      string
		end       func(eng *durable.Engine, cancel context.CancelCauseFunc)
		limit     time.Duration
		cancelled int
	}{
		{"the process stops", func(_ *durable.Engine, cancel context.CancelCauseFunc) { cancel(stop) }, 0, 0},
		{"the run is cancelled", func(_ *durable.Engine, cancel context.CancelCauseFunc) { cancel(pawl.ErrCancelled) }, 0, 1},
		{"the run is cancelled from outside", func(eng *durable.Engine, cancel context.CancelCauseFunc) {
			if err := eng.Cancel(context.Background(), "r"); err != nil {
				panic(err)
			}
			cancel(stop) // the next process finds the record
		}, 0, 1},
		{"its time is over", func(*durable.Engine, context.CancelCauseFunc) {}, time.Second / 4, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			eng := &durable.Engine{Journal: new(store.MemoryJournal)}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			polled := 0
			busy := func(string, int) bool {
				if polled++; polled == 3 {
					c.end(eng, cancel)
				}
				return polled < 1000
			}
			s, err := pawltest.NewSimulator(longreply.Talker(), &pawltest.SimulatorOptions{Background: busy})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			agent := background(s.URL)
			agent.Limits.Time = c.limit
			res, err := eng.Runner("r", agent).Run(ctx, llm.User("go"))
			if err == nil {
				t.Fatalf("the run has an answer: %+v", res)
			}
			if c.name == "the run is cancelled from outside" {
				res, _ = eng.Runner("r", agent).Run(t.Context())
				if res == nil || res.Stop != pawl.StopCancelled {
					t.Errorf("the run stopped with %+v, want cancelled", res)
				}
			}
			if asked, _, cancelled := longreply.Counted(s); asked != 1 || cancelled != c.cancelled {
				t.Errorf("asked %d times, want 1; cancelled %d replies, want %d", asked, cancelled, c.cancelled)
			}
			if c.cancelled > 0 {
				return
			}
			polled = 1000
			res, err = eng.Runner("r", agent).Run(t.Context())
			if err != nil || res.Text() != "That is all." {
				t.Fatalf("%+v, %v", res, err)
			}
			if asked, _, _ := longreply.Counted(s); asked != longreply.Turns {
				t.Errorf("asked %d times, want %d", asked, longreply.Turns)
			}
			p, err := eng.Replay(t.Context(), "r", agent)
			if err != nil || p.Bytes != longreply.Turns {
				t.Errorf("%d requests were compared with their bytes, want %d: %v", p.Bytes, longreply.Turns, err)
			}
		})
	}
}
