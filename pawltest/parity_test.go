package pawltest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

// parity is the behaviour that all providers share. Each row runs on each wire; a note describes
// the differences of a wire.
var parity = []struct {
	id, what string
	run      func(t *testing.T, w wire)
	notes    map[string]string // by API
}{
	{"P1", "simple text", func(t *testing.T, w wire) {
		resp := reply(t, w, script.Say("Grüße."), true, nil)
		if resp.Message.Text() != "Grüße." || resp.Finish != llm.FinishReasonStop {
			t.Errorf("got %+v", resp)
		}
	}, nil},
	{"P2", "streamed text", func(t *testing.T, w wire) {
		taken := make(chan struct{}, 100)
		m, _ := w.on(t, paced{say("A text that comes in pieces."), taken}, pawltest.SimulatorOptions{})
		joined, n := "", 0
		for d, err := range m.Stream(t.Context(), &llm.Request{Messages: []llm.Message{llm.User("Go.")}}) {
			if err != nil {
				t.Fatal(err)
			}
			if text, ok := d.Part.(llm.Text); ok {
				joined += text.Text
				n++
				taken <- struct{}{}
			}
		}
		if joined != "A text that comes in pieces." || n < 3 {
			t.Errorf("%d pieces of %q", n, joined)
		}
	}, nil},
	{"P3", "image by value", func(t *testing.T, w wire) { sees(t, w, picture) }, nil},
	{"P4", "image by URL", func(t *testing.T, w wire) { sees(t, w, llm.Media{URL: "https://example.com/a.png"}) }, nil},
	{"P5", "one call, executed", func(t *testing.T, w wire) { calls(t, w, 1, 1) }, nil},
	{"P6", "parallel calls, answered together", func(t *testing.T, w wire) { calls(t, w, 1, 3) }, nil},
	{"P7", "a loop of three rounds", func(t *testing.T, w wire) { calls(t, w, 3, 1) }, nil},
	{"P8", "calls in a stream", func(t *testing.T, w wire) {
		m, _ := w.on(t, script.New(script.Call("look", `{"at":"the sky"}`)), pawltest.SimulatorOptions{})
		args, ready := "", 0
		a := &pawl.Agent{Model: m, Tools: passive()}
		if _, err := runtest.Ended(pawl.Collect(a.Stream(t.Context(), llm.User("Look.")), func(e pawl.Event) {
			switch e.Kind {
			case pawl.EventCallDelta:
				args += e.Text
			case pawl.EventCallReady:
				ready++
			}
		})); err != nil {
			t.Fatal(err)
		}
		if canonical([]byte(args)) != `{"at":"the sky"}` || ready != 1 {
			t.Errorf("arguments %s, %d calls ready", args, ready)
		}
	}, map[string]string{pawltest.Gemini: "Arguments come in one piece, unless `streamFunctionCallArguments` is asked for by option."}},
	{"P9", "structured output", func(t *testing.T, w wire) {
		schema := json.RawMessage(`{"additionalProperties":false,"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"}`)
		var asked *llm.Request
		m, _ := w.on(t, script.New(script.Func(func(req *llm.Request) script.Turn {
			asked = req
			return script.Say(`{"n":7}`)
		})), pawltest.SimulatorOptions{})
		req := &llm.Request{Model: rich(w.api).Model, Messages: []llm.Message{llm.User("Count.")}, Output: schema}
		resp, err := llm.Complete(t.Context(), m, req)
		// on a server other than its own: in the instructions
		if err == nil && w.api == pawltest.Anthropic && asked.Output == nil {
			var body []byte
			if body, err = w.encode(req); err == nil && strings.Contains(asked.Messages[0].Text(),
				`"integer"`) && bytes.Contains(body, []byte(`"output_config":{"format":{"type":"json_schema"`)) {
				asked.Output = schema
			}
		}
		if err != nil || canonical(asked.Output) != canonical(schema) || resp.Message.Text() != `{"n":7}` {
			t.Errorf("%v: asked with %s, got %+v", err, asked.Output, resp)
		}
	}, map[string]string{pawltest.Anthropic: "At Anthropic, from Claude 4.5 on; older models and other servers are asked in the instructions. The answer is checked either way."}},
	{"P10", "tokens of reasoning", func(t *testing.T, w wire) {
		for _, whole := range []bool{false, true} {
			if u := reply(t, w, figures, whole, nil).Usage; u.Reasoning != 5 {
				t.Errorf("whole %t: got %+v", whole, u)
			}
		}
	}, map[string]string{pawltest.Anthropic: "If the server reports them (`output_tokens_details.thinking_tokens`); otherwise the output includes them."}},
	{"P11", "a wrong key is an error of code authentication", func(t *testing.T, w wire) {
		s := simulate(t, say("x"), &pawltest.SimulatorOptions{Key: "another"})
		status := 401
		if w.api == pawltest.Gemini {
			status = 400
		}
		fails(t, w.open(s.URL, transport(t), 3), llm.CodeAuthentication, status, false)
		if n := len(s.Received()); n != 2 {
			t.Errorf("%d requests, want 2: it is not repeated", n)
		}
	}, map[string]string{pawltest.Gemini: "The API answers 400 with `API_KEY_INVALID`, the others 401."}},
	{"P12", "429 is a retryable error of code rate_limit", func(t *testing.T, w wire) {
		busy := func(int, *pawltest.Received) *pawltest.Fault { return &pawltest.Fault{Status: 429} }
		m, _ := w.on(t, say("x"), pawltest.SimulatorOptions{Fault: busy})
		fails(t, m, llm.CodeRateLimit, 429, true)
	}, nil},
	{"P13", "usage is counted", func(t *testing.T, w wire) {
		for _, whole := range []bool{false, true} {
			u := reply(t, w, figures, whole, nil).Usage
			if u.Input != 1000 || u.Output != 12 || u.Total() != 1012 {
				t.Errorf("whole %t: got %+v", whole, u)
			}
		}
	}, nil},
	{"P14", "what is read from the cache is counted, and the next turn can be read from it", func(t *testing.T, w wire) {
		m, s := w.on(t, script.New(script.Say("one"), figures), pawltest.SimulatorOptions{})
		a := &pawl.Agent{Model: m}
		res, err := a.Run(t.Context(), llm.User("First."))
		if err == nil {
			res, err = a.Resume(t.Context(), res, llm.User("Second."))
		}
		if err != nil || res.Steps[len(res.Steps)-1].Response.Usage.CacheRead != 900 {
			t.Fatalf("%v: got %+v", err, res.Spent)
		}
		all := s.Received()
		end := stable(t, w, all[0].Body)
		if w.api == pawltest.Anthropic { // with moving marks, on servers that are not its own
			end = bytes.Index(all[0].Body, []byte(`"cache_control"`))
		}
		if end <= 0 || !bytes.HasPrefix(all[1].Body, all[0].Body[:end]) {
			t.Errorf("%s\nand then\n%s", all[0].Body, all[1].Body)
		}
	}, map[string]string{pawltest.Anthropic: "The cache is asked for by marks, which are set unless `NoCache` says no."}},
	{"P15", "the provider's own options are sent unchanged", func(t *testing.T, w wire) {
		m, s := w.on(t, say("x"), pawltest.SimulatorOptions{})
		if _, err := llm.Complete(t.Context(), m, &llm.Request{Messages: []llm.Message{llm.User("Go.")},
			Settings: llm.Settings{Options: map[string]json.RawMessage{
				tagOf[w.api]: json.RawMessage(`{"metadata":{"é":[1, 2.50]}}`), "another": json.RawMessage(`{"not":"this"}`)}}}); err != nil {
			t.Fatal(err)
		}
		if body := s.Received()[0].Body; !bytes.Contains(body, []byte(`"metadata":{"é":[1, 2.50]}`)) || bytes.Contains(body, []byte("this")) {
			t.Errorf("was sent %s", body)
		}
	}, nil},
}

// figures is a reply with all figures of usage.
var figures = script.Turn{Parts: []llm.Part{llm.Text{Text: "two"}},
	Usage: &llm.Usage{Input: 1000, Output: 12, Reasoning: 5, CacheRead: 900}}

// reply sends a request over w and returns the model's reply, which is turn.
func reply(t *testing.T, w wire, turn script.Turn, whole bool, change func(*llm.Request)) *llm.Response {
	t.Helper()
	m, _ := w.on(t, script.New(turn), pawltest.SimulatorOptions{})
	req := &llm.Request{Messages: []llm.Message{llm.User("Go.")}, Whole: whole}
	if change != nil {
		change(req)
	}
	resp := new(llm.Response)
	for d, err := range m.Stream(t.Context(), req) {
		if err == nil {
			err = resp.Add(d)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return resp
}

// paced writes a piece of text after the previous one was received: pieces that arrive together may
// be emitted together.
type paced struct {
	llm.Model
	taken <-chan struct{}
}

func (p paced) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		written := 0
		for d, err := range p.Model.Stream(ctx, req) {
			if _, ok := d.Part.(llm.Text); ok {
				if written++; written > 1 {
					select {
					case <-p.taken:
					case <-ctx.Done():
						yield(llm.Delta{}, ctx.Err())
						return
					}
				}
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// sees sends media to a model.
func sees(t *testing.T, w wire, md llm.Media) {
	t.Helper()
	var last llm.Message
	turn := script.Func(func(req *llm.Request) script.Turn {
		last = req.Messages[len(req.Messages)-1]
		return script.Say("I see.")
	})
	reply(t, w, turn, true, func(req *llm.Request) {
		req.Messages = []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{llm.Text{Text: "What is it?"}, md}}}
	})
	for _, p := range last.Parts {
		if got, ok := p.(llm.Media); ok && got.URL == md.URL && bytes.Equal(got.Data, md.Data) {
			return
		}
	}
	t.Errorf("the model sees %+v", last.Parts)
}

// calls runs an agent whose model calls n tools in each of its rounds, and then answers with its
// last results.
func calls(t *testing.T, w wire, rounds, n int) {
	t.Helper()
	told := 0
	count := script.Func(func(req *llm.Request) script.Turn {
		results := script.Results(req)
		told += len(results)
		if told == rounds*n {
			return script.Say("Told " + results[n-1].Text())
		}
		var turns []script.Turn
		for i := range n {
			turns = append(turns, script.Call("look", fmt.Sprintf(`{"at":"%d %d"}`, told, i)))
		}
		return script.Together(turns...)
	})
	m, s := w.on(t, script.New(script.Loop(count)), pawltest.SimulatorOptions{})
	look := pawl.Func("look", "Looks.", func(_ context.Context, in struct {
		At string `json:"at"`
	}) (string, error) {
		return "of " + in.At, nil
	})
	res, err := (&pawl.Agent{Model: m, Tools: []pawl.Toolset{look}}).Run(t.Context(), llm.User("Look."))
	want := fmt.Sprintf("Told of %d %d", (rounds-1)*n, n-1)
	if err != nil || res.Messages[len(res.Messages)-1].Text() != want || res.Spent.Calls != rounds*n ||
		len(s.Received()) != rounds+1 {
		t.Errorf("%v: got %+v, want %q", err, res, want)
	}
	for _, r := range s.Received() {
		for _, v := range r.Violations {
			t.Errorf("%v: %s", v, r.Body)
		}
	}
}

// fails sends a request to m, which must fail in the expected way, streamed and whole.
func fails(t *testing.T, m llm.Model, code llm.Code, status int, retryable bool) {
	t.Helper()
	for _, whole := range []bool{false, true} {
		var got *llm.ProviderError
		for _, err := range m.Stream(t.Context(), &llm.Request{Messages: []llm.Message{llm.User("Go.")}, Whole: whole}) {
			if err != nil && !errors.As(err, &got) {
				t.Errorf("whole %t: %v is no ProviderError", whole, err)
			}
		}
		if got == nil || got.Code != code || got.Status != status || got.Retryable != retryable {
			t.Errorf("whole %t: got %+v, want %s, status %d, retryable %t", whole, got, code, status, retryable)
		}
	}
}

// Every row runs on every wire, and the table in docs/providers.md has the outcome. With -update
// the table is written.
func TestParity(t *testing.T) {
	var table, notes strings.Builder
	table.WriteString("| |")
	for _, w := range wires {
		table.WriteString(" " + w.name + " |")
	}
	table.WriteString("\n|---|" + strings.Repeat("---|", len(wires)) + "\n")
	n := 0
	for _, row := range parity {
		fmt.Fprintf(&table, "| %s: %s |", row.id, row.what)
		for _, w := range wires {
			word := "FAILS"
			if t.Run(row.id+"/"+w.name, func(t *testing.T) { row.run(t, w) }) {
				word = "passes"
			}
			if note := row.notes[w.api]; note != "" {
				n++
				word += fmt.Sprintf(" (%d)", n)
				fmt.Fprintf(&notes, "%d. %s\n", n, note)
			}
			table.WriteString(" " + word + " |")
		}
		table.WriteString("\n")
	}
	wiretest.Part(t, "providers.md", "parity", table.String()+"\n"+notes.String())
}
