package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
)

// mode is how the calls of a batch are ordered.
type mode int

const (
	byEffect  mode = iota // the default
	bySerial              // the tools are Concurrent and have Serial keys
	unordered             // the tools are Concurrent: the control
)

// toy is a store of logs by key. It has no lock, so that the race detector reports two calls that
// use one key at the same time. Where the test removes the order on purpose, guard is set.
type toy struct {
	guard *sync.Mutex
	cells map[string]*[]string
}

func newToy(guarded bool) *toy {
	s := &toy{cells: map[string]*[]string{}}
	for _, key := range toyKeys {
		s.cells[key] = new([]string)
	}
	if guarded {
		s.guard = new(sync.Mutex)
	}
	return s
}

var toyKeys = func() []string {
	keys := []string{"a", "b", "c"}
	for i := range maxActs {
		keys = append(keys, fmt.Sprintf("p%d/a", i), fmt.Sprintf("p%d/b", i))
	}
	return keys
}()

const maxActs = 7 // of one reply

func (s *toy) at(key string) (value []string) {
	if s.guard != nil {
		s.guard.Lock()
		defer s.guard.Unlock()
	}
	return *s.cells[key]
}

func (s *toy) put(key string, value []string) {
	if s.guard != nil {
		s.guard.Lock()
		defer s.guard.Unlock()
	}
	*s.cells[key] = value
}

func (s *toy) logs() map[string][]string {
	out := map[string][]string{}
	for key, cell := range s.cells {
		if len(*cell) > 0 {
			out[key] = *cell
		}
	}
	return out
}

// act is one call of the store: the text of the model and its meaning.
type act struct {
	Op    string `json:"op"` // the name of the tool: get, add, once, sum, plan
	Key   string `json:"key,omitempty"`
	Mark  string `json:"mark,omitempty"`
	Pause int    `json:"pause,omitempty"`
	Plan  []act  `json:"plan,omitempty"`
}

func (a act) call(id string) llm.ToolCall {
	b, err := json.Marshal(a)
	if err != nil {
		panic(err)
	}
	return llm.ToolCall{ID: id, Name: a.Op, Args: b}
}

// do executes a on s. pause is called between reading and writing; inner executes the acts of a
// plan.
func (a act) do(s *toy, pause func(int), inner func([]act) []string) string {
	switch a.Op {
	case "get":
		pause(a.Pause)
		return fmt.Sprint(s.at(a.Key))
	case "add", "once":
		was := s.at(a.Key)
		pause(a.Pause)
		s.put(a.Key, append(was[:len(was):len(was)], a.Mark))
		return fmt.Sprint(a.Mark, " is the ", len(was))
	case "plan":
		return fmt.Sprint(inner(a.Plan))
	}
	pause(a.Pause)
	return a.Mark + "!"
}

// serially executes acts one after another without a runtime. Its result is the expected result.
func serially(s *toy, acts []act) (told []string) {
	for _, a := range acts {
		told = append(told, a.do(s, func(int) {}, func(plan []act) []string { return serially(s, plan) }))
	}
	return told
}

// drawActs draws the calls of one reply. A plan works below a key of its own, which is its Serial
// key. Two plans of a reply have the same key only where Serial orders them.
func drawActs(rnd *rand.Rand, m mode, below string, mark *int, depth int) (acts []act) {
	for i := range 1 + rnd.IntN(maxActs) {
		*mark++
		a := act{Op: []string{"get", "add", "add", "once", "sum", "plan"}[rnd.IntN(6)], Mark: strconv.Itoa(*mark), Pause: rnd.IntN(5)}
		switch {
		case a.Op == "sum":
		case a.Op == "plan" && depth == 0:
			if m != byEffect {
				i = rnd.IntN(2)
			}
			a.Key = "p" + strconv.Itoa(i) + "/"
			a.Plan = drawActs(rnd, m, a.Key, mark, depth+1)
		case a.Op == "plan":
			a.Op = "get"
			fallthrough
		case below != "":
			a.Key = below + string(rune('a'+rnd.IntN(2)))
		default:
			a.Key = string(rune('a' + rnd.IntN(3)))
		}
		acts = append(acts, a)
	}
	return acts
}

// toyTools returns the tools of s.
func toyTools(s *toy, m mode) (set []pawl.Toolset) {
	for op, effect := range map[string]pawl.Effect{"get": pawl.EffectRead, "add": pawl.EffectWrite,
		"once": pawl.EffectIdempotent, "sum": pawl.EffectPure, "plan": pawl.EffectCompose} {
		t := does(op, func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
			var a act
			if err := json.Unmarshal(c.Args, &a); err != nil {
				return llm.ToolResult{}, err
			}
			var fault error
			text := a.do(s, func(n int) { time.Sleep(time.Duration(n) * ms) }, func(plan []act) (told []string) {
				calls := make([]llm.ToolCall, len(plan))
				for i, p := range plan {
					calls[i] = p.call("")
				}
				xs, err := pawl.InvocationFrom(ctx).Do(ctx, calls...)
				fault = err
				for _, x := range xs {
					told = append(told, x.Result.Text())
				}
				return told
			})
			return llm.TextResult(text), fault
		})
		t.Effect, t.Concurrent = effect, m != byEffect
		if m == bySerial && op != "sum" {
			t.Serial = func(args json.RawMessage) string {
				var a act
				if json.Unmarshal(args, &a) != nil {
					return ""
				}
				return a.Key
			}
		}
		set = append(set, t)
	}
	return set
}

// batches runs the calls that the seed draws, and returns the difference from serial execution. ""
// means no difference.
func batches(t *testing.T, seed uint64, m mode) (diff string, sooner bool) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		s, want := newToy(m == unordered), newToy(false)
		var replies []written
		var told []string
		mark := 0
		for step := range 1 + rnd.IntN(2) {
			acts := drawActs(rnd, m, "", &mark, 0)
			w := written{After: []time.Duration{0}}
			for i, a := range acts {
				w.Parts = append(w.Parts, a.call(fmt.Sprint("c", step, "_", i)))
				w.After = append(w.After, time.Duration(rnd.IntN(3))*ms)
			}
			replies = append(replies, w)
			told = append(told, serially(want, acts)...)
		}
		a := &pawl.Agent{Model: slowly(replies...), Tools: toyTools(s, m),
			Limits: pawl.Limits{LoopThreshold: -1}, Parallel: pawl.Parallel{Limit: 1 + rnd.IntN(5)}}
		var res *pawl.Result
		var err error
		if seed%2 == 0 { // streamed, with early start
			whole := map[int]time.Time{}
			for e, fault := range a.Stream(t.Context(), llm.User("go")) {
				switch {
				case fault != nil:
					err = fault
				case e.Kind == pawl.EventResponseReceived:
					whole[e.Step] = time.Now()
				case e.Kind == pawl.EventCallCompleted:
					sooner = sooner || e.Execution.Started.Before(whole[e.Step])
				case e.Kind == pawl.EventRunEnded:
					res = e.Result
				}
			}
		} else {
			res, err = a.Run(t.Context(), llm.User("go"))
		}
		if err != nil || res.Stop != pawl.StopAnswer {
			diff = fmt.Sprintf("got %v, %s", err, res.Stop)
			return
		}
		var got []string
		for _, step := range res.Steps {
			for _, x := range step.Executions {
				got = append(got, x.Result.Text())
			}
		}
		diff = cmp.Diff(s.logs(), want.logs()) + cmp.Diff(got, told)
	})
	return diff, sooner
}

// The calls of one reply have the effects and the results of serial execution, also in plans and
// with early start: any calls without Serial keys, and calls of Concurrent tools with one Serial
// key. PAWL_SEEDS is the number of batches of each kind; the default is 500, in make soak 10,000.
func TestBatchesEqualTheirSerialExecution(t *testing.T) {
	seeds := soak.N[uint64](500, 10_000)
	if n, err := strconv.ParseUint(os.Getenv("PAWL_SEEDS"), 10, 64); err == nil {
		seeds = n
	}
	begin, early := time.Now(), [2]int{}
	for m := range early {
		for seed := range seeds {
			diff, sooner := batches(t, seed, mode(m))
			if diff != "" {
				t.Fatalf("mode %d, seed %d: got -, one after another +\n%s", m, seed, diff)
			}
			if sooner {
				early[m]++
			}
		}
	}
	differ := 0
	for seed := range uint64(200) { // the control: the clock decides the order
		if diff, _ := batches(t, seed, unordered); diff != "" {
			differ++
		}
	}
	t.Logf("2 times %d batches in %v, in %v calls began early; unordered, %d of 200 differ", seeds, time.Since(begin).Round(time.Second), early, differ)
	if differ < 50 || min(early[0], early[1]) < int(seeds/20) {
		t.Error("the batches are too tame")
	}
}
