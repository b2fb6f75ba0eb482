package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/internal/test/clustertest"
	"github.com/pawl-go/pawl/internal/test/longwork"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/openai"
)

const smallWindow = 32_768 // tokens

// longSurvey is the survey that a worker works on.
func longSurvey() *longwork.Survey {
	return &longwork.Survey{Pages: 200, Facts: 10, Least: 2_000, Most: 8_000, Window: smallWindow}
}

// longWindow returns the window of the survey's agent.
func longWindow() pawl.Middleware {
	return history.Window(&history.WindowOptions{Tokens: smallWindow, Reserve: 4_096})
}

// dialWindow returns an engine over the cluster that the environment of a worker names.
func dialWindow(ctx context.Context, get func(string) string) (*Engine, error) {
	e, err := Cluster{Address: get("PAWL_WINDOW_WORKER")}.Dial(ctx, Dir(get("PAWL_WINDOW_BLOBS")))
	if err != nil {
		return nil, err
	}
	e.TaskQueue = get("PAWL_WINDOW_QUEUE")
	e.Heartbeat = 2 * time.Second
	e.Poll = 50 * time.Millisecond
	return e, nil
}

// windowWorker is the process of a worker, which runs until it is killed.
func windowWorker() error {
	ctx := context.Background()
	e, err := dialWindow(ctx, os.Getenv)
	if err != nil {
		return err
	}

	m := openai.NewChat("gpt-5-mini",
		&openai.Options{BaseURL: os.Getenv("PAWL_WINDOW_URL"), Key: "none", Retries: -1})
	w := e.Worker(nil)
	if err := w.Add(ctx, "agent", longSurvey().Agent(m, longWindow())); err != nil {
		return err
	}
	return w.Run(ctx)
}

// employed starts a worker, and another one after each that dies, until stop is called. kill ends
// the present one with SIGKILL.
func employed(t *testing.T, env ...string) (kill, stop func()) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	kills, over, ended := make(chan chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			cmd := exec.Command(exe)
			cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return
			}
			last, done := false, chan struct{}(nil)
			select {
			case <-over:
				last = true
			case done = <-kills:
			}
			_ = cmd.Process.Kill() // SIGKILL
			_ = cmd.Wait()         // it says that it was killed
			if done != nil {
				close(done)
			}
			if last {
				return
			}
		}
	}()
	kill = func() {
		done := make(chan struct{})
		kills <- done
		<-done
	}
	return kill, func() { close(over); <-ended }
}

// Workers of a run with a history.Window are killed with SIGKILL while the provider has a request.
// Each restart replays the workflow. The control is the run in this process: the requests are the
// same, byte for byte.
func TestWindowKilled(t *testing.T) {
	soak.Only(t, "a run of 200 pages on a cluster takes longer than 10 seconds")
	soak.Sequential(t)
	server, err := clustertest.Start("")
	if errors.Is(err, clustertest.ErrAbsent) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer server.Kill()
	whole := longSurvey()
	want, err := whole.Agent(whole.Provider(t, "chat"), longWindow()).Run(t.Context(), llm.User("Survey the mill."))
	if err != nil || whole.Meter.Refused > 0 || whole.Known(want) != whole.Facts {
		t.Fatalf("%v, %+v, %d facts", err, whole.Meter, whole.Known(want))
	}
	for _, at := range [][]int{nil, {5, 40, 41, 120, 190}} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			s := longSurvey()
			s.Provider(t, "chat")
			env := map[string]string{"PAWL_WINDOW_WORKER": server.Addr, "PAWL_WINDOW_URL": s.URL,
				"PAWL_WINDOW_BLOBS": t.TempDir(), "PAWL_WINDOW_QUEUE": fmt.Sprint("window-", len(at))}
			var list []string
			for k, v := range env {
				list = append(list, k+"="+v)
			}
			kill, stop := employed(t, list...)
			defer stop()
			s.Asked = func() {
				if slices.Contains(at, s.Meter.Requests) {
					kill()
				}
			}
			e, err := dialWindow(t.Context(), func(k string) string { return env[k] })
			if err != nil {
				t.Fatal(err)
			}
			defer e.Client.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			start := time.Now()
			id := "survey-" + env["PAWL_WINDOW_QUEUE"]
			got, err := e.Runner(id, "agent").Run(ctx, llm.User("Survey the mill."))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d requests, %d kills in %v", s.Meter.Requests, len(at), time.Since(start))
			sameRun(t, s, whole, got, want, len(at))

			// Another worker replays the whole history, without a request.
			before, err := e.Export(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			sent := s.Meter.Requests
			kill()
			after, err := e.Export(ctx, id)
			for err != nil && ctx.Err() == nil { // the cluster still waits for the dead worker
				after, err = e.Export(ctx, id)
			}
			if err != nil || asText(t, before) != asText(t, after) || s.Meter.Requests != sent {
				t.Errorf("the replay differs: %v, %d requests more", err, s.Meter.Requests-sent)
			}
		})
	}
}

func asText(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// sameRun compares a run whose workers were killed with a run that lived.
func sameRun(t *testing.T, s, whole *longwork.Survey, got, want *pawl.Result, kills int) {
	t.Helper()
	digests := slices.Compact(slices.Clone(s.Digests))
	if !slices.Equal(digests, whole.Digests) {
		n := 0
		for n < min(len(digests), len(whole.Digests)) && digests[n] == whole.Digests[n] {
			n++
		}
		t.Errorf("%d and %d requests, which differ from request %d on", len(digests), len(whole.Digests), n)
	}
	if twice := len(s.Digests) - len(digests); twice != kills {
		t.Errorf("%d requests are sent twice after %d kills", twice, kills)
	}
	if a, b := got.Spent.Usage, want.Spent.Usage; a.Input != b.Input || a.Output != b.Output {
		t.Errorf("tokens %d and %d, want %d and %d", a.Input, a.Output, b.Input, b.Output)
	}
	if s.Known(got) != whole.Facts || !strings.Contains(asText(t, got.Messages), "All is read.") ||
		asText(t, got.Messages) != asText(t, want.Messages) {
		t.Errorf("the transcript differs, or has %d of %d facts", s.Known(got), whole.Facts)
	}
}
