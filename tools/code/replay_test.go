package code_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/tools/code"
)

// several makes eight calls in six rounds, three of them writes. Its calls depend on results of
// earlier calls, on the order of a set and, with Python, on random numbers.
func several(in code.Interpreter) string {
	text := `
for o in call_tool("orders_list", {"page": 1})["items"]:
    if o["status"] == "late":
        call_tool("order_update", {"id": o["id"], "status": "refunded"})
got = call_tools_parallel([("weather", {"city": c}) for c in ["Oslo", "Atlantis", "Lima"]])
call_tool("mail_send", {"to": "ann", "text": str(len([w for w in got if not isinstance(w, ToolError)]))})
order = [c for c in set(["b", "c", "a"])]
call_tool("file_write", {"path": "out", "content": "".join(order)})
call_tool("add", {"a": 1, "b": number})
set_result([order, number])
`
	if in.Name() == "python" {
		return "import random, uuid, os\nnumber = random.randint(0, 10**9)\norder_id = str(uuid.uuid4()) + os.urandom(4).hex()\n" + strings.Replace(text, `"path": "out"`, `"path": order_id`, 1)
	}
	return "number = 7\n" + text
}

func agentOf(w *world, tool *pawl.Tool, program string, policy ...pawl.Middleware) *pawl.Agent {
	args, err := json.Marshal(object{"code": program})
	if err != nil {
		panic(err)
	}
	return &pawl.Agent{Model: script.New(script.Call("execute_code", string(args)), script.Say("done")),
		Tools: []pawl.Toolset{w.tools(), tool}, Executor: new(pawltest.Kept), Middleware: policy}
}

// storing returns the context of runs of a whose executor, a *pawltest.Kept, stores their calls.
func storing(ctx context.Context, a *pawl.Agent) context.Context {
	return pawl.WithRunOptions(ctx, pawl.RunOptions{Engine: a.Executor.(*pawltest.Kept).Engine()})
}

// untilStopped runs or resumes a, and stops it as a shutdown does when n calls of the program have
// ended. 0 means never.
func untilStopped(t *testing.T, a *pawl.Agent, from *pawl.Result, n int) *pawl.Result {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	stream := a.Stream(storing(ctx, a), llm.User("go"))
	if from != nil {
		stream = a.ResumeStream(storing(ctx, a), from)
	}
	var res *pawl.Result
	for e, err := range stream {
		if _, err := runtest.Ended(res, err); err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
		if e.Kind == pawl.EventCallCompleted && strings.Contains(string(e.Path), "/s") {
			if n--; n == 0 {
				cancel(errors.New("shutdown"))
			}
		}
		if e.Result != nil {
			res = e.Result
		}
	}
	return res
}

func resultOf(t *testing.T, res *pawl.Result) string {
	t.Helper()
	for _, s := range res.Steps {
		for _, x := range s.Executions {
			if x.Call.Name == "execute_code" && x.Outcome.Settled() && x.Outcome != pawl.OutcomeCancelled {
				var d data
				if err := json.Unmarshal(x.Result.Data, &d); err != nil {
					t.Fatalf("%v: %s", err, x.Result.Text())
				}
				return d.Outcome + " " + string(d.Result)
			}
		}
	}
	return "none"
}

// A program that is stopped after any of its calls and executed again gives the same result, and no
// write is repeated.
func TestStoppedAtEveryCall(t *testing.T) {
	for _, in := range interpreters(t) {
		tool := newTool(t, in, nil)
		whole := newWorld()
		res := untilStopped(t, agentOf(whole, tool, several(in)), nil, 0)
		want := resultOf(t, res)
		calls := len(whole.calls)
		if !strings.HasPrefix(want, "ok [") || calls != 8 {
			t.Fatalf("%s: got %s, %d calls", in.Name(), want, calls)
		}
		check := func(how string, w *world, res *pawl.Result) {
			t.Helper()
			if got := resultOf(t, res); res.Stop != pawl.StopAnswer || got != want {
				t.Errorf("%s, %s: got %s %s, want %s", in.Name(), how, res.Stop, got, want)
			}
			if w.state() != whole.state() {
				t.Errorf("%s, %s: the world is\n%s, want\n%s", in.Name(), how, w.state(), whole.state())
			}
			if got, want := sorted(writes(w)), sorted(writes(whole)); !slices.Equal(got, want) {
				t.Errorf("%s, %s: writes %q, want %q", in.Name(), how, got, want)
			}
		}
		for n := 1; n <= calls; n++ {
			w := newWorld()
			a := agentOf(w, tool, several(in))
			res := untilStopped(t, a, nil, n)
			if n == calls && resultOf(t, res) != "none" {
				continue // after the last call it may already have ended
			}
			if resultOf(t, res) != "none" {
				t.Errorf("%s: was not stopped at call %d", in.Name(), n)
			}
			check(fmt.Sprintf("stopped at call %d", n), w, untilStopped(t, a, res, 0))
		}
		// Stopped repeatedly: each time one more call has ended.
		w := newWorld()
		a := agentOf(w, tool, several(in))
		res = untilStopped(t, a, nil, 1)
		for n := 2; n < calls; n++ {
			if res = untilStopped(t, a, res, n); resultOf(t, res) != "none" {
				t.Errorf("%s: was not stopped at call %d", in.Name(), n)
			}
		}
		check("stopped at each call in turn", w, untilStopped(t, a, res, 0))
	}
}

// A Python program that is executed again reads the same times from every clock, and so makes the
// same calls. The time is also correct.
func TestClock(t *testing.T) {
	in := python(t, nil)
	const program = `
import time, uuid
from datetime import datetime, date, timezone
import datetime as dt
def times():
    time.sleep(0.002)
    return [time.time(), time.time_ns(), time.monotonic(), time.perf_counter_ns(), time.ctime(), time.strftime("%H:%M:%S"), time.gmtime(), str(datetime.now()),
        str(dt.datetime.now(timezone.utc)), str(datetime.utcnow()), str(date.today()), str(datetime.today().date()), str(uuid.uuid1())[:18]]
assert isinstance(datetime.now(), dt.date) and isinstance(datetime.now() - dt.timedelta(days=1), datetime) and issubclass(datetime, date)
first = time.time_ns()
call_tool("file_write", {"path": "one", "content": str(times())})
call_tool("file_write", {"path": "two", "content": str(times())})
assert times()[1] > first + 4_000_000
call_tool("add", {"a": 1, "b": 1})
set_result(first)
`
	tool := newTool(t, in, nil)
	for n := 1; n <= 2; n++ {
		before := time.Now()
		w := newWorld()
		a := agentOf(w, tool, program)
		res := untilStopped(t, a, nil, n)
		if resultOf(t, res) != "none" {
			t.Fatalf("stopped at call %d: it was not", n)
		}
		between := time.Now()
		res = untilStopped(t, a, res, 0)
		first, err := strconv.ParseInt(strings.TrimPrefix(resultOf(t, res), "ok "), 10, 64)
		if err != nil {
			t.Fatalf("stopped at call %d: %s", n, resultOf(t, res))
		}
		if at := time.Unix(0, first); at.Before(before) || at.After(between) {
			t.Errorf("stopped at call %d: the program read %v, and was begun first between %v and %v", n, at, before, between)
		}
	}
}

func writes(w *world) (list []string) {
	for _, c := range w.calls {
		if name, _, _ := strings.Cut(c, " "); strings.Contains("order_update mail_send file_write", name) {
			list = append(list, c)
		}
	}
	return list
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// A program that differs when it is executed again ends as diverged and does nothing.
func TestDiverged(t *testing.T) {
	soak.Sequential(t)
	for _, in := range interpreters(t) {
		tool := newTool(t, in, nil)
		for name, change := range map[string][2]string{
			"another tool":      {`call_tool("mail_send", {"to": "ann", "text": `, `call_tool("file_write", {"path": "ann", "content": `},
			"another argument":  {`"status": "refunded"`, `"status": "lost"`},
			"another order":     {`["Oslo", "Atlantis", "Lima"]`, `["Lima", "Atlantis", "Oslo"]`},
			"one call more":     {`got = call`, "call_tool(\"now\")\ngot = call"},
			"one call less":     {`call_tool("mail_send"`, `str("mail_send"`},
			"all calls at once": {`call_tool("orders_list", {"page": 1})`, `call_tools_parallel([("orders_list", {"page": 1}), ("now", {})])[0]`},
		} {
			if name == "one call less" {
				change[0], change[1] = `call_tool("mail_send", {"to": "ann", "text": str(len([w for w in got if not isinstance(w, ToolError)]))})`, "pass"
			}
			w := newWorld()
			a := agentOf(w, tool, several(in))
			res := untilStopped(t, a, nil, 7) // after the mail
			before := w.state()
			changed := strings.Replace(several(in), change[0], change[1], 1)
			if changed == several(in) {
				t.Fatalf("%s changes nothing", name)
			}
			args, _ := json.Marshal(object{"code": changed})
			last := &res.Messages[len(res.Messages)-1]
			for last.Role != llm.RoleAssistant {
				last = &res.Messages[len(res.Messages)-2]
			}
			for i, p := range last.Parts {
				if c, ok := p.(llm.ToolCall); ok {
					c.Args = args
					last.Parts[i] = c
				}
			}
			res = untilStopped(t, a, res, 0)
			x := res.Steps[0].Executions[0]
			if got := resultOf(t, res); !strings.HasPrefix(got, "diverged") || !x.Result.IsError ||
				!strings.Contains(x.Result.Text(), "made a different call than before") {
				t.Errorf("%s, %s: got %s: %s", in.Name(), name, got, x.Result.Text())
			}
			if w.state() != before {
				t.Errorf("%s, %s: the world was changed: %s, before %s", in.Name(), name, w.state(), before)
			}
		}
	}
}

func asksFor(names ...string) pawl.Middleware {
	return pawl.Approve(func(_ context.Context, c llm.ToolCall, _ *pawl.Tool) (pawl.Approval, error) {
		if slices.Contains(names, c.Name) {
			return pawl.Approval{Verdict: pawl.VerdictAsk, Reason: "it goes out"}, nil
		}
		return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
	})
}

// A call of a program waits for a person if the executor replays. The program ends and gives the
// same result once there is an answer. The approval of the program itself is not requested again.
func TestCallOfAProgramWaits(t *testing.T) {
	for _, in := range interpreters(t) {
		tool := newTool(t, in, nil)
		w := newWorld()
		a := agentOf(w, tool, several(in), asksFor("execute_code", "mail_send"))
		res, err := runtest.Ended(a.Run(storing(t.Context(), a), llm.User("go")))
		var asked []string
		for err == nil && res.Stop == pawl.StopPending && len(asked) < 5 {
			asked = append(asked, res.Pending[0].Call.Name)
			res, err = runtest.Ended(a.Resume(storing(t.Context(), a), res,
				llm.DecisionMessage(res.Pending[0].Approve("ann"))))
		}
		if err != nil || res.Stop != pawl.StopAnswer || !slices.Equal(asked, []string{"execute_code", "mail_send"}) {
			t.Fatalf("%s: got %v, %+v; asked for %q", in.Name(), err, res, asked)
		}
		if got := resultOf(t, res); !strings.HasPrefix(got, "ok [") || len(w.Mails) != 1 || len(w.calls) != 8 {
			t.Errorf("%s: got %s; mails %q, %d calls", in.Name(), got, w.Mails, len(w.calls))
		}
		if res.Spent.Calls != 9 {
			t.Errorf("%s: spent %+v", in.Name(), res.Spent)
		}

		// A rejection is an error of that call, which the program can handle.
		w = newWorld()
		a = agentOf(w, tool, `set_result(try_call("mail_send", {"to": "ann", "text": "x"})["error"])`, asksFor("mail_send"))
		if res, err = runtest.Ended(a.Run(storing(t.Context(), a), llm.User("go"))); err != nil ||
			res.Stop != pawl.StopPending {
			t.Fatalf("%s: got %v, %+v", in.Name(), err, res)
		}
		res, err = a.Resume(storing(t.Context(), a), res, llm.DecisionMessage(res.Pending[0].Deny("ann", "not today")))
		if err != nil || resultOf(t, res) != `ok "Denied: not today"` || len(w.Mails) != 0 {
			t.Errorf("%s: got %v, %s", in.Name(), err, resultOf(t, res))
		}

		// Without an engine nothing can be pending: the program gets an error.
		w = newWorld()
		a = agentOf(w, tool, `set_result(try_call("mail_send", {"to": "ann", "text": "x"}))`, asksFor("mail_send"))
		a.Executor = nil
		res, err = a.Run(t.Context(), llm.User("go"))
		if err != nil || res.Stop != pawl.StopAnswer ||
			!strings.Contains(resultOf(t, res), "cannot wait for one here") || !strings.Contains(resultOf(t, res), `"outcome":"denied"`) {
			t.Errorf("%s: got %v, %s", in.Name(), err, resultOf(t, res))
		}
	}
}

// The calls of a program count towards the run's limits, take its slots, and emit events with keys
// below the program's key.
func TestCallsAreTheRuns(t *testing.T) {
	for _, in := range interpreters(t) {
		w := newWorld()
		a := agentOf(w, newTool(t, in, nil), `
out = []
for i in range(6):
    out.append(try_call("add", {"a": i, "b": 1})["ok"])
set_result(out)`)
		a.Limits.Calls = 4
		var keys []string
		var res *pawl.Result
		for e, err := range a.Stream(storing(t.Context(), a), llm.User("go")) {
			if _, err := runtest.Ended(res, err); err != nil {
				t.Fatal(err)
			}
			if e.Kind == pawl.EventCallStarted {
				keys = append(keys, string(e.Path))
			}
			if e.Result != nil {
				res = e.Result
			}
		}
		if got := resultOf(t, res); got != "ok [true,true,true,false,false,false]" {
			t.Errorf("%s: got %s", in.Name(), got)
		}
		if want := []string{"run/1/0", "run/1/0/s0", "run/1/0/s1", "run/1/0/s2"}; !slices.Equal(keys, want) {
			t.Errorf("%s: keys %q, want %q", in.Name(), keys, want)
		}

		w = newWorld()
		a = agentOf(w, newTool(t, in, nil), `set_result(call_tools_parallel([("add", {"a": i, "b": 1}) for i in range(40)]))`)
		a.Parallel = pawl.Parallel{Limit: 1} // a program that held a slot would wait for ever
		if res, err := a.Run(t.Context(), llm.User("go")); err != nil || len(w.calls) != 40 ||
			!strings.HasPrefix(resultOf(t, res), "ok [1,2,3") {
			t.Errorf("%s: got %v, %d calls", in.Name(), err, len(w.calls))
		}
	}
}

// A cancelled run ends its program and says that its effects may have happened.
func TestCancelled(t *testing.T) {
	for _, in := range interpreters(t) {
		if in.Name() == "embedded" {
			in = code.Embedded(&code.EmbeddedOptions{Steps: 1 << 60})
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		w := newWorld()
		a := agentOf(w, newTool(t, in, nil), "call_tool('now')\nx = 0\nwhile True:\n  x += 1")
		var res *pawl.Result
		for e, err := range a.Stream(storing(ctx, a), llm.User("go")) {
			if _, err := runtest.Ended(res, err); err != nil {
				t.Fatal(err)
			}
			if e.Kind == pawl.EventCallCompleted && e.Path == "run/1/0/s0" {
				cancel(pawl.ErrCancelled)
			}
			if e.Result != nil {
				res = e.Result
			}
		}
		if res.Stop != pawl.StopCancelled || len(res.Steps) != 1 ||
			res.Steps[0].Executions[0].Outcome != pawl.OutcomeCancelled {
			t.Errorf("%s: got %+v", in.Name(), res)
		}
		cancel(nil)
	}
}
