package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/goleak"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/durabletest"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/internal/test/clustertest"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// server is Temporal's own dev server, shared by all tests of this package.
var server clustertest.Shared

// cluster returns the server's address. It skips the test if the server was not built.
func cluster(t *testing.T) string {
	t.Helper()
	return server.Address(t)
}

func TestMain(m *testing.M) {
	if addr := os.Getenv("PAWL_TEMPORAL_WORKER"); addr != "" {
		exit(worker(addr))
	}
	if os.Getenv("PAWL_WINDOW_WORKER") != "" {
		exit(windowWorker())
	}
	soak.Waits(6)
	code := m.Run()
	server.Stop()
	quiet.Stop()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// exit ends the process of a worker.
func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// dial returns an engine for a task queue of that server.
func dial(addr, queue string, blobs Blobs) (*Engine, error) {
	o := client.Options{HostPort: addr, DataConverter: Converter(blobs), Logger: silent{}}
	if os.Getenv("PAWL_TEMPORAL_REPEATS") != "" {
		o.Interceptors = append(o.Interceptors, &repeating{})
	}
	c, err := client.Dial(o)
	if err != nil {
		return nil, err
	}
	return &Engine{Client: c, Blobs: blobs, TaskQueue: queue, Heartbeat: 2 * time.Second,
		Poll: 50 * time.Millisecond}, nil
}

// repeating makes the SDK retry every activity, Writes included. It is a negative control, because
// the engine never does this.
type repeating struct{ interceptor.InterceptorBase }

// InterceptWorkflow is called for each workflow.
func (r *repeating) InterceptWorkflow(ctx workflow.Context,
	next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	in := &repeatingIn{}
	in.Next = next
	return in
}

type repeatingIn struct {
	interceptor.WorkflowInboundInterceptorBase
}

// Init receives the interceptor through which a workflow starts its activities.
func (r *repeatingIn) Init(out interceptor.WorkflowOutboundInterceptor) error {
	o := &repeatingOut{}
	o.Next = out
	return r.Next.Init(o)
}

type repeatingOut struct {
	interceptor.WorkflowOutboundInterceptorBase
}

// ExecuteActivity allows retries of the activity.
func (r *repeatingOut) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	o := workflow.GetActivityOptions(ctx)
	o.RetryPolicy = retries(tries)
	return r.Next.ExecuteActivity(workflow.WithActivityOptions(ctx, o), name, args...)
}

// worker is a process that works until it is killed. It has agents for several tools, each with a
// world of its own.
func worker(addr string) error {
	if os.Getenv("PAWL_TEMPORAL_COLD") != "" {
		sdkworker.SetStickyWorkflowCacheSize(0)
	}
	eng, err := dial(addr, os.Getenv("PAWL_TEMPORAL_QUEUE"), Dir(os.Getenv("PAWL_TEMPORAL_BLOBS")))
	if err != nil {
		return err
	}
	if s := os.Getenv("PAWL_TEMPORAL_HEARTBEAT"); s != "" {
		if eng.Heartbeat, err = time.ParseDuration(s); err != nil {
			return err
		}
	}
	w := eng.Worker(nil)
	tools := strings.Split(os.Getenv("PAWL_TEMPORAL_TOOL"), ";")
	for _, tool := range tools {
		world := durabletest.Remote{URL: os.Getenv("PAWL_TEMPORAL_WORLD")}
		if len(tools) > 1 {
			world.URL += worldPath(tool)
		}
		if err := w.Add(context.Background(), tool, agentFor(tool, world)); err != nil {
			return err
		}
	}
	return w.Run(context.Background())
}

// worldPath returns the path of a tool's world, among several.
func worldPath(tool string) string { return "/" + strings.ReplaceAll(tool, " ", "-") }

// planAway is a plan that an activity executes, as for all composing tools without Inline. Its
// calls return to the workflow.
const planAway = "plan away"

// caseOf returns durabletest's case for a tool.
func caseOf(tool string) *durabletest.Case {
	if tool == planAway {
		tool = "post"
	}
	return durabletest.ForEffect(tool)
}

// agentFor returns the agent of the case for a tool.
func agentFor(tool string, w durabletest.World) *pawl.Agent {
	if remote, ok := w.(durabletest.Remote); ok && tool == inBackground {
		return backgroundAgent(remote.URL)
	}
	a := caseOf(tool).Agent(w)
	if tool != planAway {
		return a
	}
	for i, set := range a.Tools {
		if t, ok := set.(*pawl.Tool); ok && t.Name == "plan" {
			t = t.Clone()
			t.Inline = false
			a.Tools[i] = t
		}
	}
	return a
}

// receiver is the counting world. It kills the worker at its at-th event. Each delivery has two
// events, one before and one after it is counted.
type receiver struct {
	durabletest.Memory
	mu    sync.Mutex
	n, at int
	kills int
	cmd   *exec.Cmd
}

// tick reports whether it killed the worker.
func (r *receiver) tick() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n++; r.n != r.at || r.cmd == nil {
		return false
	}
	r.kills++
	_ = r.cmd.Process.Kill() // SIGKILL
	return true
}

// work keeps a worker running until stop is called, and starts another one after each kill.
func (r *receiver) work(t *testing.T, env ...string) (stop func()) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	over, ended := make(chan struct{}), make(chan struct{})
	start := func() *exec.Cmd {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), env...)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Error(err)
			return nil
		}
		r.mu.Lock()
		r.cmd = cmd
		r.mu.Unlock()
		return cmd
	}
	go func() {
		defer close(ended)
		for cmd := start(); cmd != nil; cmd = start() {
			_ = cmd.Wait() // the worker was killed
			select {
			case <-over:
				return
			default:
			}
		}
	}()
	return func() {
		close(over)
		r.mu.Lock()
		if r.cmd != nil {
			_ = r.cmd.Process.Kill()
		}
		r.mu.Unlock()
		<-ended
	}
}

// made is the outcome of a run.
type made struct {
	result *pawl.Result
	export *journal.Export
	all    []durabletest.Delivery
	kills  int
	events int
	bytes  int64
}

// make makes the run for a tool, with a worker that is killed at the at-th event. 0 means that no
// worker is killed.
func makeRun(t *testing.T, addr, id, tool string, at int, env ...string) (m made) {
	t.Helper()
	r := &receiver{at: at}
	web := httptest.NewServer(durabletest.Serve(&r.Memory, r.tick))
	defer web.Close()
	dir := t.TempDir()
	stop := r.work(t, append(env, "PAWL_TEMPORAL_WORKER="+addr, "PAWL_TEMPORAL_QUEUE="+id, "PAWL_TEMPORAL_BLOBS="+dir, "PAWL_TEMPORAL_TOOL="+tool, "PAWL_TEMPORAL_WORLD="+web.URL)...)
	defer stop()
	eng, err := dial(addr, id, Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if m.result, err = drive(ctx, eng, id, tool, r); err != nil {
		s, why := eng.State(ctx, id)
		t.Fatalf("%s: %v; state %+v %v", id, err, s, why)
	}
	if m.export, err = eng.Export(ctx, id); err != nil {
		t.Fatal(err)
	}
	info, err := eng.Client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		t.Fatal(err)
	}
	m.events, m.bytes = int(info.WorkflowExecutionInfo.HistoryLength), info.WorkflowExecutionInfo.HistorySizeBytes
	r.mu.Lock()
	defer r.mu.Unlock()
	m.all, m.kills = r.All(), r.kills
	return m
}

// drive makes a run of the agent for a tool and answers its questions, also if the server is
// temporarily down.
func drive(ctx context.Context, eng *Engine, id, tool string, w durabletest.World) (*pawl.Result, error) {
	run, msgs := eng.Runner(id, tool), durabletest.ForEffect(tool).Messages()
	for asked := 0; asked < 50; asked++ {
		res, err := runtest.Ended(run.Run(ctx, msgs...))
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case unreachable(err):
			asked-- // as many attempts as the server needs to start
			continue
		case errors.Is(err, ErrNotAsked): // the server received the answer and died
			msgs = nil
			continue
		case err != nil || res.Stop != pawl.StopPending:
			return res, err
		}
		if msgs, err = durabletest.Answers(ctx, w, res.Pending); err != nil {
			return res, err
		}
	}
	return nil, errors.New("it asks for ever")
}

// Workers are killed with SIGKILL during runs. Each write happens exactly once, and the
// conversation is the same as without the kills.
func TestKill(t *testing.T) {
	t.Parallel()
	addr := cluster(t)
	tools := append(durabletest.Tools(), planAway)
	if !soak.On() {
		tools = []string{"post", planAway}
	}
	limit := make(chan struct{}, 3)
	for _, tool := range tools {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			limit <- struct{}{}
			defer func() { <-limit }()
			id := "kill-" + filepath.Base(t.TempDir()) + "-" + tool
			whole := makeRun(t, addr, id, tool, 0)
			if len(whole.all) == 0 || whole.result.Stop != pawl.StopAnswer {
				t.Fatalf("nothing happened: %+v", whole.result)
			}
			// a tool alone is killed after its effect; one among several, before
			for _, at := range []int{4, 2*len(whole.all) - 9} {
				got := makeRun(t, addr, fmt.Sprintf("%s-%d", id, at), tool, at)
				if got.kills != 1 {
					t.Errorf("at %d: %d workers were killed", at, got.kills)
				}
				if bad := durabletest.Violations(got.all, whole.all, got.kills); len(bad) > 0 {
					t.Errorf("at %d: %v", at, bad)
				}
				if diff := cmp.Diff(text(t, whole.result.Messages), text(t, got.result.Messages)); diff != "" {
					t.Errorf("at %d: the conversation differs (-whole +killed):\n%s", at, diff)
				}
			}
			t.Logf("%d deliveries; %d events, %d bytes of history", len(whole.all), whole.events, whole.bytes)
		})
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// inProcess runs a worker in this process until the test ends. nil for a means no agent. nil for
// opts means the defaults.
func inProcess(t *testing.T, eng *Engine, a *pawl.Agent, opts *WorkerOptions) *Worker {
	t.Helper()
	if opts == nil {
		opts = &WorkerOptions{Stop: time.Second}
	}
	w := eng.Worker(opts)
	if a != nil {
		if err := w.Add(t.Context(), "agent", a); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		eng.Client.Close()
	})
	return w
}

// A running call receives the cancellation of its run and reports its possible effects. Starting an
// existing run, or querying an unknown run, returns an error that says so.
// interval has a check that the workflow does not have.
type interval struct {
	From int `json:"from"`
	To   int `json:"to"`
}

func (i interval) Validate() error {
	if i.To < i.From {
		return errors.New("to must not be less than from")
	}
	return nil
}

// Into gives a run on the cluster its schema. An answer that the check of the type refuses goes
// back to the model in a run that follows, and both runs are found again.
func TestIntoOnTheCluster(t *testing.T) {
	t.Parallel()
	eng, err := dial(cluster(t), "into", new(memory))
	if err != nil {
		t.Fatal(err)
	}
	m := script.New(script.Say(`{"from":"x"}`), script.Say(`{"from":2,"to":1}`), script.Say(`{"from":1,"to":2}`))
	inProcess(t, eng, &pawl.Agent{Model: m}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	id := t.TempDir()
	for range 2 {
		got, res, err := pawl.Into[interval](ctx, eng.Runner(id, "agent"), ask...)
		if err != nil || got != (interval{1, 2}) || len(m.Requests()) != 3 {
			t.Errorf("%+v, %+v, %v after %d requests", got, res, err, len(m.Requests()))
		}
	}
}

func TestServer(t *testing.T) {
	t.Parallel()
	addr := cluster(t)
	eng, err := dial(addr, "server", new(memory))
	if err != nil {
		t.Fatal(err)
	}
	begun := make(chan struct{})
	slow := pawl.Func("slow", "takes its time", func(ctx context.Context, _ struct{}) (string, error) {
		close(begun)
		<-ctx.Done()
		return "", context.Cause(ctx)
	})
	inProcess(t, eng, &pawl.Agent{Model: script.New(script.Call("slow", nil)), Tools: []pawl.Toolset{slow}}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan *pawl.Result, 1)
	run := eng.Runner(t.TempDir(), "agent")
	go func() {
		res, err := runtest.Ended(run.Run(ctx, ask...))
		if err != nil {
			t.Error(err)
		}
		ended <- res
	}()
	<-begun
	if err := eng.Decide(ctx, run.ID, llm.Decision{Key: "run/1/0", Approve: true}); !errors.Is(err, ErrNotAsked) {
		t.Errorf("an answer that nobody asked for gave %v", err)
	}
	if err := eng.Cancel(ctx, run.ID); err != nil {
		t.Fatal(err)
	}
	res := <-ended
	if got := text(t, res.Messages); res.Stop != pawl.StopCancelled || !strings.Contains(got, "may have happened") {
		t.Errorf("stopped by %s: %s", res.Stop, got)
	}
	again, err := runtest.Ended(run.Run(ctx, ask...))
	if err != nil || text(t, again) != text(t, res) {
		t.Errorf("the run that is over came to %v, %v", again, err)
	}
	if _, err := eng.State(ctx, "nobody"); !errors.Is(err, ErrUnknownRun) {
		t.Errorf("the state of no run is %v", err)
	}
	if err := eng.Steer(ctx, "nobody", ask...); !errors.Is(err, ErrUnknownRun) {
		t.Errorf("a message to no run gave %v", err)
	}
	streamed, err := runtest.Ended(pawl.Collect(run.Stream(ctx), nil))
	if err != nil || streamed.Stop != pawl.StopCancelled {
		t.Errorf("the stream ended with %+v, %v", streamed, err)
	}
}
