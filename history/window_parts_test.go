package history_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/artifact"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/internal/test/longwork"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// spying stores the record in the last request that has one.
type spying struct {
	llm.Model
	last *string
}

func (s *spying) Unwrap() llm.Model { return s.Model }

func (s *spying) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	for _, m := range req.Messages {
		if text := m.Text(); m.Role == llm.RoleUser && strings.HasPrefix(text, "[A record of earlier steps") {
			*s.last = text
		}
	}
	return s.Model.Stream(ctx, req)
}

// burst reads many pages in each of a few rounds.
type burst struct {
	*longwork.Survey
	calls int
}

func (b *burst) run(t *testing.T, w pawl.Middleware) (*pawl.Result, error) {
	t.Helper()
	rounds := 0
	m := pawl.Middleware{Model: func(m llm.Model) llm.Model {
		return modelFunc(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
			return func(yield func(llm.Delta, error) bool) {
				resp, err := llm.Complete(ctx, m, req) // counts the request
				if err != nil {
					yield(llm.Delta{}, err)
					return
				}
				rounds++
				resp.Message.Parts = nil
				for i := range b.calls {
					if rounds < 4 {
						resp.Message.Parts = append(resp.Message.Parts, llm.ToolCall{ID: fmt.Sprint("c", i), Name: "page_read",
							Args: []byte(fmt.Sprintf(`{"page":%d}`, i))})
					}
				}
				if rounds >= 4 {
					resp.Message.Parts = []llm.Part{llm.Text{Text: "done"}}
				}
				resp.Finish = llm.FinishReasonStop
				resp.Deltas()(yield)
			}
		})
	}}
	return b.Agent(b.Provider(t, "chat"), w, m).Run(context.Background(), llm.User("Read."))
}

type modelFunc func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error]

func (f modelFunc) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return f(ctx, req)
}

// Three files that do not fit into the window together are read in turn, without an end. The model
// is warned, and the run stops with the cause. Other seeds read other sizes in other orders.
func TestWindowThrash(t *testing.T) {
	soak.Sequential(t)
	for seed := range soak.N(8, 200) {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		files := []string{}
		for i := range 3 {
			size := small * 34 / 10 * (30 + r.IntN(20)) / 100 // 40 % of the window
			files = append(files, strings.Repeat(fmt.Sprintf("line of file %d. ", i), size/16))
		}
		read := pawl.Func("read", "Reads a file.", func(_ context.Context, in struct {
			File int `json:"file"`
		}) (string, error) {
			return files[in.File], nil
		})
		read.Effect, read.MaxResult = pawl.EffectRead, -1
		n, warned := 0, false
		s := &longwork.Survey{Window: small}
		m := s.Provider(t, "chat")
		loop := pawl.Middleware{Model: func(llm.Model) llm.Model {
			return modelFunc(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
				return func(yield func(llm.Delta, error) bool) {
					resp, err := llm.Complete(ctx, m, req) // counts the request, and refuses it
					if err != nil {
						yield(llm.Delta{}, err)
						return
					}
					for _, m := range req.Messages {
						for _, p := range m.Parts {
							if r, ok := p.(llm.ToolResult); ok && strings.Contains(r.Text(), "otherwise this run ends") {
								warned = true
							}
						}
					}
					k := n % 3
					if seed > 0 {
						k = r.IntN(3)
					}
					n++
					resp.Message.Parts = []llm.Part{llm.ToolCall{ID: "c", Name: "read", Args: []byte(fmt.Sprintf(`{"file":%d}`, k))}}
					resp.Finish = llm.FinishReasonStop
					resp.Deltas()(yield)
				}
			})
		}}
		o := options()
		a := &pawl.Agent{Model: m, Tools: []pawl.Toolset{read, artifact.Reader{}},
			Middleware: []pawl.Middleware{history.Window(&o), loop},
			Limits:     pawl.Limits{Rounds: 200, LoopThreshold: -1}}
		res, err := a.Run(context.Background(), llm.User("Compare the files."))
		var stop *pawl.StopError
		if !errors.As(err, &stop) {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if res.Stop != pawl.StopLimit || res.Limit != "window" || res.Cause != "the window of 32768 tokens is too small for this work" ||
			!warned || n > 40 || s.Meter.Refused > 0 {
			t.Errorf("seed %d: %s %s %q after %d requests, warned %v, %+v", seed, res.Stop, res.Limit, res.Cause, n, warned, s.Meter)
		}
	}
}

// A run whose window is too small reports how far it is from its end: when the window is full of
// repeated results, and when the model is warned. A run that reads each file once reports nothing.
func TestWindowThrashNotices(t *testing.T) {
	for _, test := range []struct {
		name  string
		files int // that are read in turn
		want  []string
	}{
		{"again", 3, []string{`{"edits":3,"ends":9,"warned":false}`, `{"edits":6,"ends":9,"warned":true}`}},
		{"once", 1_000, nil},
	} {
		read := pawl.Func("read", "Reads a file.", func(_ context.Context, in struct {
			File int `json:"file"`
		}) (string, error) {
			return strings.Repeat(fmt.Sprintf("a line of file %d; ", in.File), 300), nil
		})
		read.Effect = pawl.EffectRead
		calls := 0
		model := script.New(script.Loop(script.Func(func(*llm.Request) script.Turn {
			calls++
			if calls > 100 {
				return script.Say("done")
			}
			return script.Call("read", map[string]any{"file": calls % test.files})
		})))

		agent := &pawl.Agent{
			Model:      model,
			Tools:      []pawl.Toolset{read, artifact.Reader{}},
			Middleware: []pawl.Middleware{history.Window(&history.WindowOptions{Tokens: 4_000, Reserve: 500})},
			Limits:     pawl.Limits{Rounds: 200, LoopThreshold: -1},
		}
		var got []string
		res, err := pawl.Collect(agent.Stream(t.Context(), llm.User("Compare the files.")), func(e pawl.Event) {
			if e.Kind == pawl.EventNotice && e.Code == history.NoticeWindowThrash {
				got = append(got, string(e.Data))
			}
		})
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: notices (-want +got):\n%s", test.name, diff)
		}
		ended := err != nil && res.Limit == "window"
		if ended != (test.want != nil) {
			t.Errorf("%s: %v after %d calls", test.name, err, calls)
		}
	}
}

// The reader of a reply may ask the same model again before the reply has ended.
func TestWindowAsksWithin(t *testing.T) {
	m := history.Window(nil).Model(script.New(script.Loop(script.Say("done"))))
	req := &llm.Request{Messages: []llm.Message{llm.User("go")}}
	for _, err := range m.Stream(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := llm.Complete(t.Context(), m, req); err != nil || resp.Message.Text() != "done" {
			t.Fatal(err)
		}
	}
}

// A parent grows by the results of its eight workers alone. Each worker takes about a hundred steps
// in a window of its own.
func TestWindowWorkers(t *testing.T) {
	soak.Sequential(t)
	const workers = 8
	pages := soak.N(30, 90)
	o := options()
	inner := make([]*longwork.Survey, workers)
	var tools []pawl.Toolset
	for i := range workers {
		inner[i] = &longwork.Survey{Pages: pages, Least: 2_000, Most: 8_000, Window: small}
		a := inner[i].Agent(inner[i].Provider(t, "chat"), history.Window(&o))
		a.Name = fmt.Sprint("worker_", i)
		tools = append(tools, a.Tool("Surveys a part."))
	}
	var sizes []int
	count := pawl.Middleware{Model: func(m llm.Model) llm.Model {
		return modelFunc(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
			sizes = append(sizes, len(form(req.Messages)))
			return m.Stream(ctx, req)
		})
	}}
	var turns []script.Turn
	for i := range workers {
		turns = append(turns, script.Call(fmt.Sprint("worker_", i), map[string]any{"task": "Survey part " + fmt.Sprint(i)}))
	}
	a := &pawl.Agent{Model: script.New(append(turns, script.Say("done"))...), Tools: tools,
		Middleware: []pawl.Middleware{history.Window(&o), count}, Limits: pawl.Limits{Rounds: 2_000}}
	res, err := a.Run(t.Context(), llm.User("Survey the mill."))
	if err != nil || res.Text() != "done" {
		t.Fatal(err)
	}
	for i, s := range inner {
		if s.Meter.Requests < pages-10 || s.Meter.Refused > 0 {
			t.Errorf("worker %d: %d requests, %d refused", i, s.Meter.Requests, s.Meter.Refused)
		}
	}
	for i := 1; i < len(sizes); i++ {
		if grown := sizes[i] - sizes[i-1]; grown > 1_000 {
			t.Errorf("request %d is %d bytes longer than the one before", i, grown)
		}
	}
	if len(sizes) != workers+1 {
		t.Errorf("%d requests", len(sizes))
	}
}
