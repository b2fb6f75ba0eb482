package pawltest_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/corpora"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/anthropic"
	"github.com/pawl-go/pawl/provider/gemini"
	"github.com/pawl-go/pawl/provider/openai"
)

// rehearsal is a recorded loop that is prepared for a replay: the conversation and the tools of its
// first request, and the results of its later requests.
type rehearsal struct {
	exchanges []pawltest.Exchange
	requests  []*llm.Request      // as recorded
	results   map[string][]string // by tool, in recorded order
}

func rehearse(loop []pawltest.Exchange) (*rehearsal, error) {
	r := &rehearsal{exchanges: loop, results: map[string][]string{}}
	for i, e := range loop {
		if e.Request == nil {
			return nil, fmt.Errorf("%s: the request was not recorded", e.Name())
		}
		req, err := pawltest.ReadRequest(e.API, e.Request.Body)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		r.requests = append(r.requests, req)
		if i == 0 {
			continue
		}
		// The calls are in the previous reply, their results in this request.
		names := map[string]string{}
		for _, c := range loop[i-1].Info.ToolCalls {
			names[c.ID] = c.Name
		}
		for _, m := range req.Messages { // on a wire without ids, the ids of the reader
			for _, c := range m.Calls() {
				names[c.ID] = c.Name
			}
		}
		for _, m := range req.Messages[min(len(r.requests[i-1].Messages), len(req.Messages)):] {
			for _, p := range m.Parts {
				if res, ok := p.(llm.ToolResult); ok && names[res.CallID] != "" {
					name := names[res.CallID]
					r.results[name] = append(r.results[name], res.Text())
				}
			}
		}
	}
	return r, nil
}

// tools returns the tools of the first request, which return the recorded results. A tool that was
// not offered is unknown, and a call that was not recorded gets a short answer.
func (r *rehearsal) tools(used *atomic.Int64) []pawl.Toolset {
	var set []pawl.Toolset
	seen := map[string]bool{}
	for _, req := range r.requests { // some clients offer more later
		for _, spec := range req.Tools {
			if seen[spec.Name] {
				continue
			}
			seen[spec.Name] = true
			t := &pawl.Tool{Name: spec.Name, Description: spec.Description, Input: spec.Input, Output: spec.Output,
				Effect: pawl.EffectRead}
			left := make(chan string, len(r.results[t.Name])+1)
			for _, s := range r.results[t.Name] {
				left <- s
			}
			t.Run = func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
				select {
				case s := <-left:
					used.Add(1)
					return llm.TextResult(s), nil
				default:
					return llm.TextResult("done"), nil
				}
			}
			if t.Check() != nil {
				t.Input = nil // a schema that describes no object: the call matters here
			}
			set = append(set, t)
		}
	}
	return set
}

// opener opens a model at url that does not repeat requests.
type opener func(model, url string, carry http.RoundTripper) llm.Model

func openChat(model, url string, carry http.RoundTripper) llm.Model {
	return openai.NewChat(model, &openai.Options{BaseURL: url, Key: "none", Retries: -1, HTTP: carry})
}

func openResponses(model, url string, carry http.RoundTripper) llm.Model {
	return openai.New(model, &openai.Options{BaseURL: url, Key: "none", Retries: -1, HTTP: carry})
}

func openAnthropic(model, url string, carry http.RoundTripper) llm.Model {
	return anthropic.New(model, &anthropic.Options{BaseURL: url, Key: "none", Retries: -1, HTTP: carry})
}

func openGemini(model, url string, carry http.RoundTripper) llm.Model {
	return gemini.New(model, &gemini.Options{BaseURL: url, Key: "none", Retries: -1, HTTP: carry})
}

// An agent replays each recorded tool loop, streaming and asking for whole replies. The server
// sends what was recorded in the form that was asked for, and once more as it was recorded. The
// agent ends, every call is answered once, the checker accepts every request, and the calls are the
// same in each form. The last line of -v has the number of recordings; a recording with two APIs is
// played on each.
func TestRecordedLoops(t *testing.T) {
	soak.Sequential(t)
	corpora.Path(t, "provider-traffic")
	recorded, played := map[string]bool{}, map[string]bool{}
	failed := 0
	for _, api := range []struct {
		name string
		open opener
	}{{pawltest.Chat, openChat}, {pawltest.Responses, openResponses}, {pawltest.Anthropic, openAnthropic},
		{pawltest.Gemini, openGemini}} {
		t.Run(api.name, func(t *testing.T) {
			var s tally
			for _, c := range corpus(t, api.name) {
				if !c.Exchanges[0].Loop {
					continue
				}
				s.cassettes++
				recorded[c.Name] = true
				before := s.loops
				for _, loop := range loopsOf(t, c) {
					name := fmt.Sprintf("%s#%d-%d", c.Name, loop[0].Seq, loop[len(loop)-1].Seq)
					if err := replayForms(t, loop, api.open, &s); err != nil {
						t.Errorf("%s: %v", name, err)
						s.failed++
					}
				}
				if s.loops > before {
					played[c.Name] = true
				}
			}
			t.Logf("%+v", s)
			if s.cassettes < 40 || s.requests < s.loops {
				t.Errorf("only %+v", s)
			}
			failed += s.failed
		})
	}
	var left []string
	for name := range recorded {
		if !played[name] {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	t.Logf("%d recordings with a tool loop: %d play to their end, whole and streamed; %d loops fail",
		len(recorded), len(played), failed)
	for _, name := range left {
		t.Errorf("%s: nothing of it was played", name)
	}
}

// replayForms replays a loop in each form of requests and replies.
func replayForms(t *testing.T, loop []pawltest.Exchange, open opener, s *tally) error {
	t.Helper()
	var first []string
	for _, form := range []struct {
		name      string
		streaming bool
		converted bool
	}{
		{"streamed", true, true},
		{"whole", false, true},
		{"streaming, as recorded", true, false},
		{"not streaming, as recorded", false, false},
	} {
		played := slices.Clone(loop)
		for i, e := range loop {
			if !form.converted {
				continue
			}
			var err error
			played[i], err = inForm(e, form.streaming)
			if err != nil {
				return err
			}
		}
		calls, err := replayLoop(t, played, open, form.streaming, s)
		if err != nil {
			return fmt.Errorf("%s: %w", form.name, err)
		}
		if first == nil {
			first = calls
		}
		if !slices.Equal(calls, first) {
			return fmt.Errorf("%s: got the calls %q, and streamed %q", form.name, calls, first)
		}
	}
	return nil
}

// loopsOf returns the loops of a recording, without Bedrock's framing. A recording without marks of
// beginnings is one loop.
func loopsOf(t *testing.T, c pawltest.Cassette) [][]pawltest.Exchange {
	t.Helper()
	loops := c.Loops()
	if len(loops) == 0 {
		loops = [][]pawltest.Exchange{slices.Clone(c.Exchanges)}
	}
	for _, loop := range loops {
		for i, e := range loop {
			var err error
			loop[i], err = inForm(e, e.Streaming)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return loops
}

// tally counts the replays.
type tally struct {
	cassettes, loops, runs, requests, streamed int
	calls, results, handedBack                 int
	failed                                     int
	// Runs that end as recorded: with an error of the provider.
	refused  int
	recorded int // results that equal the recorded results
	stops    map[pawl.StopReason]int
	outcomes map[pawl.Outcome]int
}

// replayLoop replays a loop, and returns the calls of its replies.
func replayLoop(t *testing.T, loop []pawltest.Exchange, open opener, streaming bool, s *tally) ([]string, error) {
	r, err := rehearse(loop)
	if err != nil {
		return nil, err
	}
	server, err := pawltest.NewReplay(loop)
	if err != nil {
		return nil, err
	}
	defer server.Close()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	first := r.requests[0]
	var used atomic.Int64
	agent := &pawl.Agent{
		Model:  open(cmp.Or(first.Model, loop[0].Info.Model, "named-by-the-url"), server.URL, tr),
		Tools:  r.tools(&used),
		Choice: first.Choice,
		Output: first.Output,
		Limits: pawl.Limits{AtLimit: pawl.AtLimitReturn},
	}
	if len(agent.Tools) == 0 || first.Choice.Check(first.Tools) != nil {
		agent.Choice = llm.ToolChoice{}
	}
	s.loops++
	msgs := first.Messages
	if msgs[len(msgs)-1].Role == llm.RoleAssistant {
		// the recorded request ends with items that have no neutral form
		msgs = append(msgs, llm.User("Go on."))
	}
	var res *pawl.Result
	// A loop may hold several tasks. After a reply without calls the recorded person continued, and
	// so does the test, with a new run.
	for server.Left() > 0 {
		done := len(loop) - server.Left()
		if done > 0 {
			msgs = append(res.Messages, followUp(r.requests[done])...)
		}
		agent.Limits.Rounds = server.Left() - 1
		if agent.Limits.Rounds == 0 {
			agent.Limits.Rounds = pawl.NoRounds
		}
		res, err = runAgent(t.Context(), agent, msgs, streaming)
		var refused *llm.ProviderError
		last := loop[len(loop)-1].Response.Status
		if errors.As(err, &refused) && last >= 400 && refused.Status == last && server.Left() == 0 && res != nil {
			s.refused++
		} else if err != nil {
			return nil, fmt.Errorf("after %d of %d replies: %w", len(loop)-server.Left(), len(loop), err)
		}
		s.runs++
		if s.stops == nil {
			s.stops, s.outcomes = map[pawl.StopReason]int{}, map[pawl.Outcome]int{}
		}
		s.stops[res.Stop]++
		for _, step := range res.Steps {
			for _, x := range step.Executions {
				s.outcomes[x.Outcome]++
			}
		}
		if len(loop)-server.Left() == done {
			return nil, fmt.Errorf("a run asked nothing: %s %s", res.Stop, res.Cause)
		}
		if err := answeredOnce(res, s); err != nil {
			return nil, err
		}
	}
	s.recorded += int(used.Load())
	for i, got := range server.Received() {
		s.requests++
		if streaming {
			s.streamed++
		}
		if len(got.Violations) > 0 {
			return nil, fmt.Errorf("request %d: the checker refuses it: %v\n%s", i+1, got.Violations, got.Body)
		}
	}
	var calls []string
	for _, m := range res.Messages {
		for _, c := range m.Calls() {
			calls = append(calls, c.Name+" "+canonical(c.Args))
		}
	}
	return calls, nil
}

// followUp returns the person's messages before a recorded request: its last messages that are
// neither replies nor results.
func followUp(req *llm.Request) []llm.Message {
	n := len(req.Messages)
	for n > 0 && (req.Messages[n-1].Role == llm.RoleUser || req.Messages[n-1].Role == llm.RoleSystem) {
		n--
	}
	if n == len(req.Messages) {
		return []llm.Message{llm.User("Go on.")}
	}
	return req.Messages[n:]
}

func runAgent(ctx context.Context, a *pawl.Agent, msgs []llm.Message, streaming bool) (*pawl.Result, error) {
	if !streaming {
		return runtest.Ended(a.Run(ctx, msgs...))
	}
	return drain(a.Stream(ctx, msgs...))
}

// drain reads events to their end.
func drain(events iter.Seq2[pawl.Event, error]) (*pawl.Result, error) {
	return runtest.Ended(pawl.Collect(events, nil))
}

// answeredOnce checks the transcript on its own: every call except the calls that were handed back
// has one result, in the next message.
func answeredOnce(res *pawl.Result, s *tally) error {
	open := map[string]bool{}
	for _, c := range res.Calls() {
		open[c.ID] = true
	}
	for i, m := range res.Messages {
		last := i == len(res.Messages)-1
		for _, p := range m.Parts {
			c, ok := p.(llm.ToolCall)
			if !ok {
				continue
			}
			s.calls++
			n := 0
			if !last {
				for _, p := range res.Messages[i+1].Parts {
					if r, ok := p.(llm.ToolResult); ok && r.CallID == c.ID {
						n++
					}
				}
			}
			s.results += n
			if last && open[c.ID] && n == 0 {
				s.handedBack++
			} else if n != 1 {
				return fmt.Errorf("message %d: the call %s of %s has %d results", i, c.ID, c.Name, n)
			}
		}
	}
	switch res.Stop {
	case pawl.StopAnswer, pawl.StopLimit, pawl.StopFailed: // the caller has examined the failure
		return nil
	}
	return fmt.Errorf("it ended with %s: %s", res.Stop, strings.TrimSpace(res.Cause))
}

// spoiled removes a part of each request.
type spoiled struct {
	http.RoundTripper
	what *regexp.Regexp
}

func (s spoiled) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body.Close()
	body = s.what.ReplaceAll(body, nil)
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return s.RoundTripper.RoundTrip(r)
}

// The negative control: the suite detects an adapter that loses a result or a call.
func TestLoopsFindBrokenRequests(t *testing.T) {
	loop := exchanges(t, `[
		{"cassette":"c","seq":0,"api":"openai-chat","loop":true,"request":{"body":{"model":"m","messages":[{"role":"user","content":"Oslo?"}],
			"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}]}},
			"response":{"status":200,"headers":{"content-type":"application/json"},
			"body":"{\"choices\":[{\"index\":0,\"finish_reason\":\"tool_calls\",\"message\":{\"content\":null,\"tool_calls\":[{\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"look\",\"arguments\":\"{}\"}}]}}]}"},
			"info":{"tool_calls":[{"id":"a","name":"look","args":"{}"}]}},
		{"cassette":"c","seq":1,"api":"openai-chat","loop":true,"continues":0,"request":{"body":{"model":"m","messages":[{"role":"user","content":"Oslo?"},
			{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"a","content":"rain"}]}},
			"response":{"status":200,"headers":{"content-type":"application/json"},
			"body":"{\"choices\":[{\"index\":0,\"finish_reason\":\"stop\",\"message\":{\"content\":\"Rain.\"}}]}"}}]`)
	play := func(what string) error {
		_, err := replayLoop(t, loop, func(model, url string, carry http.RoundTripper) llm.Model {
			if what != "" {
				carry = spoiled{carry, regexp.MustCompile(what)}
			}
			return openChat(model, url, carry)
		}, false, new(tally))
		return err
	}
	if err := play(""); err != nil {
		t.Fatalf("the loop as it is: %v", err)
	}
	for _, what := range []string{`,\{"role":"tool"[^}]*\}`, `"tool_call_id":"a",?`, `,\{"role":"assistant".*?\}\]\}`} {
		if err := play(what); err == nil || !strings.Contains(err.Error(), "the checker refuses it") {
			t.Errorf("without %s: got %v, want the checker to refuse it", what, err)
		}
	}
}
