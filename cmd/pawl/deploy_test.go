package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

// till counts payments, which take a second each, by their idempotency key.
type till struct {
	mu   sync.Mutex
	paid map[string]int
	now  int // payments under way
}

func (p *till) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	p.mu.Lock()
	p.paid[r.Header.Get("Idempotency-Key")]++
	p.now++
	p.mu.Unlock()
	<-time.After(time.Second)
	p.mu.Lock()
	p.now--
	p.mu.Unlock()
	fmt.Fprint(w, "paid")
}

// under returns the number of payments under way, and of all.
func (p *till) under() (now, all int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now, len(p.paid)
}

const payerFile = `agent: payer
model: openai-chat:sim
approve: {allow: [pay]}
tools:
  - http: {name: pay, description: Pays., method: POST, url: "BANK/pay", input: {type: object}}
`

// fleet is some pawl serve over one database.
type fleet struct {
	t     *testing.T
	dir   string
	env   []string
	flags []string
	bank  *till

	mu    sync.Mutex
	there []*replica
}

type replica struct {
	url  string
	cmd  *exec.Cmd
	said *bytes.Buffer
	over chan struct{}
}

func newFleet(t *testing.T, flags ...string) *fleet {
	t.Helper()
	f := &fleet{t: t, dir: t.TempDir(), bank: &till{paid: map[string]int{}}, flags: flags}
	turn := func(req *llm.Request) script.Turn {
		if n := len(req.Messages); n > 4 { // the task, and two payments with their results
			return script.Say("Paid.")
		}
		return script.Call("pay", nil)
	}
	sim, err := pawltest.NewSimulator(&script.Model{Turns: []script.Turn{script.Loop(script.Func(turn))}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sim.Close() })
	hall := httptest.NewServer(f.bank)
	t.Cleanup(hall.Close)
	file := []byte(strings.ReplaceAll(payerFile, "BANK", hall.URL))
	if err := os.WriteFile(filepath.Join(f.dir, "payer.yaml"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(f.dir, "pawl")); err != nil {
		t.Fatal(err)
	}
	f.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.dir, "OPENAI_BASE_URL=" + sim.URL, "OPENAI_API_KEY=test-key",
		"GORACE=atexit_sleep_ms=0"}
	t.Cleanup(func() {
		for _, r := range f.there {
			f.end(r)
		}
	})
	return f
}

// start starts another server.
func (f *fleet) start() *replica {
	f.t.Helper()
	r := &replica{said: new(bytes.Buffer), over: make(chan struct{})}
	r.cmd = exec.Command(filepath.Join(f.dir, "pawl"), append([]string{"serve", "payer.yaml", "--http", ":0"}, f.flags...)...)
	r.cmd.Dir, r.cmd.Env = f.dir, f.env
	said, err := r.cmd.StderrPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	lines := bufio.NewReader(io.TeeReader(said, r.said))
	line, _ := lines.ReadString('\n') // checked below
	go func() { defer close(r.over); io.Copy(io.Discard, lines) }()
	_, r.url, _ = strings.Cut(strings.TrimSpace(line), "serving payer on ")
	if r.url == "" {
		f.t.Fatalf("pawl serve says %q", line)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.there = append(f.there, r)
	return r
}

// end sends SIGTERM to a server, and waits for it.
func (f *fleet) end(r *replica) {
	f.t.Helper()
	if r.cmd.ProcessState != nil {
		return
	}
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	<-r.over
	if err := r.cmd.Wait(); err != nil {
		f.t.Errorf("pawl serve: %v\n%s", err, r.said)
	}
}

// ask sends a request to the servers in turn, until one answers it. Only 503 may be repeated.
func (f *fleet) ask(method, path, body string, into any) int {
	f.t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for n := 0; time.Now().Before(deadline); n++ {
		f.mu.Lock()
		r := f.there[len(f.there)-1-n%min(3, len(f.there))]
		f.mu.Unlock()
		req, err := http.NewRequest(method, r.url+path, strings.NewReader(body))
		if err != nil {
			f.t.Error(err)
			return 0
		}
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil { // it has ended
			continue
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		switch {
		case err != nil, res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Retry-After") != "":
			continue
		case res.StatusCode >= 400:
			f.t.Errorf("%s %s: %d %s", method, path, res.StatusCode, b)
		case json.Unmarshal(b, into) != nil:
			f.t.Errorf("%s %s: %s", method, path, b)
		}
		return res.StatusCode
	}
	f.t.Errorf("%s %s: no server answers", method, path)
	return 0
}

func (f *fleet) begin(i int) {
	var run struct{ ID string }
	f.ask("POST", "/v1/runs", fmt.Sprintf(`{"id":"r%d","input":"Pay twice."}`, i), &run)
}

// unknown counts the effects of a run with an unknown outcome, and its completed effects.
func (f *fleet) unknown(i int) (unknown, completed int) {
	var got struct{ Effects []struct{ State string } }
	f.ask("GET", fmt.Sprintf("/v1/runs/r%d/effects", i), "", &got)
	for _, e := range got.Effects {
		switch e.State {
		case "unknown":
			unknown++
		case "completed":
			completed++
		}
	}
	return unknown, completed
}

// Three pawl serve over PostgreSQL are restarted one after the other, twice, while runs with Writes
// of a second begin and execute: no effect is unknown, none is lost or repeated, and no request is
// answered with an error that its client does not repeat. In the control the calls get no time, and
// effects are unknown.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	soak.Sequential(t)
	url := postgres.URL(t)
	runs := soak.N(30, 200)
	// Other tests use the default schema.
	f := newFleet(t, "--db", url+"?search_path=deploy", "--max-runs", "40")
	var old []*replica
	for range 3 {
		old = append(old, f.start())
	}
	var load sync.WaitGroup
	tick, begin := time.NewTicker(10*time.Millisecond), time.NewTicker(100*time.Millisecond)
	defer tick.Stop()
	defer begin.Stop()
	load.Go(func() {
		for i := range runs {
			<-begin.C
			load.Go(func() { f.begin(i) })
		}
	})
	for range soak.N(1, 2) {
		for i, r := range old {
			for now, all := f.bank.under(); now == 0 && all < 2*runs; now, all = f.bank.under() {
				<-tick.C
			}
			old[i] = f.start()
			f.end(r)
		}
	}
	load.Wait()
	for i := range runs {
		for {
			var run struct{ State string }
			if f.ask("GET", fmt.Sprint("/v1/runs/r", i), "", &run); run.State == "over" || run.State == "waiting" || t.Failed() {
				break
			}
			<-tick.C
		}
		if unknown, completed := f.unknown(i); unknown != 0 || completed != 2 {
			t.Errorf("run r%d has %d unknown and %d completed effects, want 0 and 2", i, unknown, completed)
		}
	}
	if len(f.bank.paid) != 2*runs {
		t.Errorf("%d payments arrived, want %d", len(f.bank.paid), 2*runs)
	}
	for key, n := range f.bank.paid {
		if n != 1 {
			t.Errorf("the payment %s arrived %d times", key, n)
		}
	}

	c := newFleet(t, "--db", filepath.Join(t.TempDir(), "pawl.db"), "--drain", "0")
	only := c.start()
	for i := range 10 {
		c.begin(i)
	}
	for now := 0; now < 10; now, _ = c.bank.under() {
		<-tick.C
	}
	c.end(only)
	c.start()
	lost := 0
	for i := range 10 {
		unknown, _ := c.unknown(i)
		lost += unknown
	}
	if lost == 0 {
		t.Error("control: without time to drain no effect is unknown")
	}
	t.Logf("%d runs, %d payments; control: %d of 10 effects are unknown", runs, len(f.bank.paid), lost)
}
