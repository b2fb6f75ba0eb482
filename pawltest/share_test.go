package pawltest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/machine"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

// canned answers requests with stored bodies of a provider, repeatedly and without a network, so
// that the rest is the cost of the run.
type canned struct {
	live   http.RoundTripper // bodies are recorded from it; nil means that they are replayed
	bodies [][]byte
	head   http.Header
	next   int
}

func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.live != nil {
		res, err := c.live.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		c.bodies, c.head = append(c.bodies, body), res.Header
		res.Body = io.NopCloser(bytes.NewReader(body))
		return res, err
	}
	io.Copy(io.Discard, r.Body)
	r.Body.Close()
	body := c.bodies[c.next]
	c.next = (c.next + 1) % len(c.bodies)
	return &http.Response{StatusCode: 200, Header: c.head, ContentLength: -1,
		Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
}

// long is a history of 200 messages.
func long() (msgs []llm.Message) {
	for i := range 50 {
		result := llm.TextResult("Rain in the morning, and wind from the west.")
		result.CallID = fmt.Sprint("call_", i)
		msgs = append(msgs, llm.User("And what of the next day, and of the one after that?"),
			llm.Assistant(llm.ToolCall{ID: result.CallID, Name: "look", Args: []byte(`{"at":"the sky over Oslo"}`)}),
			llm.Results(result), llm.Assistant(llm.Text{Text: "It rains in the morning. The wind comes from the west."}))
	}
	return msgs
}

// loops requests five calls three times, then answers.
func loops() llm.Model {
	return script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
		rounds := -100 // the replies of the history
		for _, m := range req.Messages {
			if m.Role == llm.RoleAssistant {
				rounds++
			}
		}
		if rounds == 3 {
			return script.Say("So it is.")
		}
		var turns []script.Turn
		for i := range 5 {
			turns = append(turns, script.Call("look", fmt.Sprintf(`{"at":"%d, %d"}`, rounds, i)))
		}
		return script.Together(turns...)
	})))
}

// before calls a function with each request before it is sent.
type before struct {
	llm.Model
	do func(context.Context, *llm.Request)
}

func (m before) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	m.do(ctx, req)
	return m.Model.Stream(ctx, req)
}

// BenchmarkCheckShare measures the check of the messages of each request as a share of the cost of
// the run: a stored history of 200 messages, then three rounds of five calls, streamed. More than 2
// % fails.
func BenchmarkCheckShare(b *testing.B) {
	for _, w := range wires {
		b.Run(w.name, func(b *testing.B) {
			s, err := pawltest.NewSimulator(loops(), &pawltest.SimulatorOptions{Key: "test-key"})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			tr := &http.Transport{}
			defer tr.CloseIdleConnections()
			carry := &canned{live: tr}
			look := &pawl.Tool{Name: "look", Description: "Looks.", Input: lookAt,
				Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) { return llm.TextResult("rain"), nil }}
			a := &pawl.Agent{Model: w.open(s.URL, carry, -1), Instructions: "Be brief.", Tools: []pawl.Toolset{look}}
			from := &pawl.Result{Messages: long()}
			job := func(a *pawl.Agent) *pawl.Result {
				var res *pawl.Result
				for e, err := range a.ResumeStream(b.Context(), from, llm.User("And now?")) {
					if err != nil {
						b.Fatal(err)
					}
					if e.Result != nil {
						res = e.Result
					}
				}
				return res
			}
			res := job(a)
			carry.live = nil
			if len(res.Steps) != 4 || len(carry.bodies) != 4 {
				b.Fatalf("%d steps, %d replies, want 4", len(res.Steps), len(carry.bodies))
			}
			// A stored history is checked at the start of the run. Before each request the new
			// messages and the additional rules of the API are checked. The test measures processor
			// time, in turn with whole runs, because the machine may have other work.
			const often = 20
			measured := *a
			rules := rulesOf(w.api)
			var runs, checks time.Duration
			measured.Middleware = []pawl.Middleware{{Model: func(m llm.Model) llm.Model {
				return before{m, func(ctx context.Context, req *llm.Request) {
					began := machine.CPU()
					for range often {
						if _, mends := rules.RepairRequest(req); mends != nil {
							b.Fatal(mends)
						}
					}
					checks += machine.CPU() - began
				}}
			}}}
			n := 0
			for b.Loop() {
				began := machine.CPU()
				job(a)
				runs += machine.CPU() - began
				job(&measured)
				began = machine.CPU()
				for range often {
					llm.Repair(from.Messages)
					llm.Repair(res.Messages[len(from.Messages):])
				}
				checks += machine.CPU() - began
				n++
			}
			perRun, perCheck := runs/time.Duration(n), checks/time.Duration(n*often)
			share := 100 * float64(perCheck) / float64(perRun)
			b.ReportMetric(float64(perRun.Nanoseconds()), "run-cpu-ns")
			b.ReportMetric(float64(perCheck.Nanoseconds()), "check-cpu-ns")
			b.ReportMetric(share, "check-%")
			if share > 2 {
				b.Errorf("checking costs %v of %v, %.2f %%", perCheck, perRun, share)
			}
		})
	}
}

// A history without a fault costs no memory, for any rules.
func TestCheckingAllocatesNothing(t *testing.T) {
	msgs := long()
	for _, api := range append(pawltest.APIs(), "") {
		rules := rulesOf(api)
		if n := testing.AllocsPerRun(10, func() { rules.Repair(msgs) }); n != 0 {
			t.Errorf("%q: %v allocations", api, n)
		}
	}
}
