package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/pawl-go/pawl/internal/test/clustertest"
	"github.com/pawl-go/pawl/internal/test/pgtest"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

func TestMain(m *testing.M) {
	testscript.Main(unleaked{m}, map[string]func(){"pawl": hasty})
}

// hasty is main. A process with the race detector waits for a second at its end, unless GORACE says
// otherwise. MCP clients start programs without that variable, so hasty executes itself with it.
func hasty() {
	const name, value = "GORACE", "atexit_sleep_ms=0"
	if raced() && os.Getenv(name) == "" {
		if self, err := os.Executable(); err == nil {
			_ = syscall.Exec(self, os.Args, append(os.Environ(), name+"="+value)) // else it waits
		}
	}
	main()
}

// writer returns a function that writes a file into dir and returns its path.
func writer(t *testing.T, dir string) func(name, text string) string {
	return func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
}

// raced reports whether the build has the race detector.
func raced() bool {
	b, ok := debug.ReadBuildInfo()
	return ok && slices.ContainsFunc(b.Settings, func(s debug.BuildSetting) bool {
		return s.Key == "-race" && s.Value == "true"
	})
}

var (
	postgres = pgtest.Postgres()
	cluster  clustertest.Shared
)

// unleaked fails tests that leave goroutines behind.
type unleaked struct{ *testing.M }

func (m unleaked) Run() int {
	soak.Waits(4)
	status := m.M.Run()
	postgres.Stop()
	cluster.Stop()
	if err := goleak.Find(); status == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

// TestManual runs the scripts of testdata, which read as the manual of the command. They have these
// commands of their own:
//
//	simulate FILE [KEY] starts a provider on loopback that replies with the turns of FILE, sets
//	                    OPENAI_BASE_URL and SIMULATOR; with KEY it requires that key
//	received FILE       writes the bodies that the provider received, one a line
//	status N pawl …     runs pawl and expects the exit status N
//	serve FOLDER        serves the files of FOLDER at $SERVER, and replaces SERVER in their text;
//	                    /echo replies with the request
//	due DB ID TASK [N]  stores a schedule that is due, or N schedules
//	collect [FILE]      starts an OpenTelemetry collector at $COLLECTOR; with FILE it writes the
//	                    received requests, one a line
//	database            starts PostgreSQL, at $PG
//	cluster             starts a Temporal server, and sets TEMPORAL_ADDRESS
//	killed pawl …       runs pawl, and kills it during its first call of $SERVER/pay, which has
//	                    then happened and has no answer; $SERVER/payments counts the calls
//	drained pawl …      presses Ctrl-C during that call, which is answered then; wants status 130
//	interrupt pawl …    runs pawl, presses Ctrl-C after the first request, and expects status 130
//
// $EXAMPLES is the folder of the examples. The conditions [postgres] and [temporal] mean that these
// servers are installed.
func TestManual(t *testing.T) {
	soak.Sequential(t)
	testscript.Run(t, testscript.Params{
		Condition: func(name string) (bool, error) {
			switch name {
			case "postgres":
				_, err := postgres.Start()
				return !errors.Is(err, pgtest.ErrAbsent), nil
			case "temporal":
				_, err := cluster.Start()
				return !errors.Is(err, clustertest.ErrAbsent), nil
			}
			return false, fmt.Errorf("there is no condition %s", name)
		},
		Dir:                "testdata",
		RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("OPENAI_API_KEY", "test-key")
			examples, err := filepath.Abs("../../examples")
			if err != nil {
				return err
			}
			e.Setenv("EXAMPLES", examples)
			// without it, each process with the race detector waits for a second at its end
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			e.Values[simulatorKey{}] = new(*pawltest.Simulator)
			e.Values[paymentsKey{}] = new(*payments)
			e.Values[collectorKey{}] = new(collector)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"simulate": simulate, "received": received, "status": status, "interrupt": interrupt, "serve": startServing, "due": due, "killed": killed, "drained": drained, "collect": collect,
			"database": func(ts *testscript.TestScript, neg bool, args []string) { ts.Setenv("PG", postgres.URL(t)) },
			"cluster": func(ts *testscript.TestScript, neg bool, args []string) {
				ts.Setenv("TEMPORAL_ADDRESS", cluster.Address(t))
			},
		},
	})
}

type simulatorKey struct{}

// turn is a reply in the words of a test.
type turn struct {
	Say    string                       `json:"say"`
	Think  string                       `json:"think"`
	Call   []map[string]json.RawMessage `json:"call"`   // each {"name": args}
	Echo   bool                         `json:"echo"`   // say what the results were
	Status int                          `json:"status"` // fail with this error
	Cut    bool                         `json:"cut"`
	Hang   bool                         `json:"hang"`  // stream this text without end
	Loop   bool                         `json:"loop"`  // repeat this turn
	Asked  string                       `json:"asked"` // part of the user's last message
	First  []turn                       `json:"first"` // the first matching turn
}

func (w turn) script() script.Turn {
	if w.First != nil {
		var all []script.Turn
		for _, t := range w.First {
			all = append(all, t.script())
		}
		return script.First(all...)
	}
	if asked := w.Asked; asked != "" {
		w.Asked = ""
		return script.Expect(w.script(), script.Asked(asked))
	}
	if w.Echo {
		return script.Func(func(req *llm.Request) script.Turn {
			var all []string
			for _, r := range script.Results(req) {
				all = append(all, r.Text())
			}
			return script.Say(w.Say + strings.Join(all, " | "))
		})
	}
	var parts []script.Turn
	if w.Think != "" {
		parts = append(parts, script.Think(w.Think))
	}
	if w.Say != "" {
		parts = append(parts, script.Say(w.Say))
	}
	for _, c := range w.Call {
		for name, args := range c {
			parts = append(parts, script.Call(name, args))
		}
	}
	if w.Status != 0 {
		parts = append(parts, script.Fail(&llm.ProviderError{Status: w.Status, Message: "made to fail"}))
	}
	t := script.Together(parts...)
	if w.Cut {
		t = script.Cut(t)
	}
	if w.Hang {
		t.Hold = make(chan struct{})
	}
	if w.Loop {
		t = script.Loop(t)
	}
	return t
}

func simulate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: simulate FILE [KEY]")
	}
	opts := new(pawltest.SimulatorOptions)
	if len(args) == 2 {
		opts.Key = args[1]
	}
	var turns []turn
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &turns); err != nil {
		ts.Fatalf("%s: %v", args[0], err)
	}
	m := new(script.Model)
	for _, t := range turns {
		m.Turns = append(m.Turns, t.script())
	}
	sim, err := pawltest.NewSimulator(m, opts)
	ts.Check(err)
	ts.Defer(func() { sim.Close() })
	*ts.Value(simulatorKey{}).(**pawltest.Simulator) = sim
	ts.Setenv("OPENAI_BASE_URL", sim.URL)
	ts.Setenv("SIMULATOR", sim.URL) // for providers with another variable
}

func received(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: received FILE")
	}
	var all strings.Builder
	for _, r := range (*ts.Value(simulatorKey{}).(**pawltest.Simulator)).Received() {
		fmt.Fprintf(&all, "%s %s\n", r.Path, r.Body)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(all.String()), 0o644))
}

func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N pawl …")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("got exit status %d, want %d", got, want)
	}
}

func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: interrupt pawl …")
	}
	sim := *ts.Value(simulatorKey{}).(**pawltest.Simulator)
	before := len(sim.Received())
	cmd, out, done := begin(ts, args)
	wait(ts, done, out, func() bool { return len(sim.Received()) > before })
	ts.Check(cmd.Process.Signal(os.Interrupt))
	err := <-done
	ts.Logf("%s", out.String())
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != cli.StatusInterrupted {
		ts.Fatalf("got %v, want exit status %d", err, cli.StatusInterrupted)
	}
}

// begin starts pawl in the folder of the script. out has its output; done is closed after its end.
func begin(ts *testscript.TestScript, args []string) (cmd *exec.Cmd, out *output, done chan error) {
	cmd = exec.Command(args[0], args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "OPENAI_BASE_URL", "OPENAI_API_KEY", "GORACE", "TEMPORAL_ADDRESS",
		"PAWL_BLOBS"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	out = new(output)
	cmd.Stdout, cmd.Stderr = out, out
	ts.Check(cmd.Start())
	done = make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	return cmd, out, done
}

// output is what a process has written so far.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// wait returns when the condition so holds, and fails if pawl ends before, or after two minutes.
func wait(ts *testscript.TestScript, done chan error, out *output, so func() bool) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(2 * time.Minute)
	for !so() {
		select {
		case <-late:
			ts.Fatalf("it does not happen within two minutes:\n%s", out.String())
		case err := <-done:
			ts.Fatalf("it ended too early: %v\n%s", err, out.String())
		case <-tick.C:
		}
	}
}
