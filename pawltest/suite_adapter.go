package pawltest

import (
	"errors"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// TestAdapter runs the suite that every adapter must pass whose API a Simulator supports: TestModel
// over HTTP, and tests of requests, signatures and errors. open returns a Model for the API at url
// (which ends in /v1 where relevant) with the key "test-key". The Model must not retry requests.
// The suite detects the API.
func TestAdapter[TT T[TT]](t TT, open func(t TT, url string) llm.Model) {
	over := func(t TT, behind llm.Model, opts SimulatorOptions) (llm.Model, *Simulator) {
		t.Helper()
		opts.Key = or(opts.Key, "test-key")
		s, err := NewSimulator(behind, &opts)
		if err != nil {
			t.Fatalf("%v", err)
		}
		t.Cleanup(func() { s.Close() })
		return open(t, s.URL), s
	}
	m, s := over(t, script.New(script.Say("yes")), SimulatorOptions{})
	streamed(t, m, question())
	if len(s.Received()) == 0 || s.Received()[0].API == "" {
		t.Fatalf("a first question did not arrive where an API answers: %+v", s.Received())
	}
	api := s.Received()[0].API
	plain := func(opts SimulatorOptions) func(TT, llm.Model) llm.Model {
		return func(t TT, behind llm.Model) llm.Model {
			m, _ := over(t, behind, opts)
			return m
		}
	}
	t.Run("model", func(t TT) { runParts(t, modelParts(api, plain(SimulatorOptions{})), nil) })
	if api == Gemini {
		t.Run("calls without ids", func(t TT) { testConversation(t, plain(SimulatorOptions{NoIDs: true})) })
		t.Run("arguments in pieces", func(t TT) { testPieces(t, plain(SimulatorOptions{})) })
	}
	t.Run("request", func(t TT) {
		behind := script.New(script.Loop(script.Say("yes")))
		m, s := over(t, behind, SimulatorOptions{})
		for name, change := range requests(api) {
			for _, whole := range []bool{false, true} {
				req := question()
				req.Whole = whole
				change(req)
				if _, err := streamed(t, m, req); err != nil {
					t.Errorf("%s, whole %t: %v", name, whole, err)
					continue
				}
				all := behind.Requests()
				asked := *all[len(all)-1]
				if api == Anthropic && req.Settings.MaxTokens == 0 {
					asked.Settings.MaxTokens = 0 // the API has no default, so the adapter has one
				}
				if req.Output != nil && asked.Output == nil && api == Anthropic && instructed(asked.Messages, `"n"`) {
					continue // not every model has it, so the schema is in the instructions
				}
				if got, want := requestForm(api, &asked), requestForm(api, req); got != want {
					t.Errorf("%s, whole %t: arrived:\n%s\nwas asked:\n%s", name, whole, got, want)
				}
				if asked.Whole != whole {
					t.Errorf("%s: asked whole %t, arrived %t", name, whole, !whole)
				}
			}
		}
		for _, r := range s.Received() {
			if len(r.Violations) > 0 {
				t.Errorf("the checker refuses %s: %v", r.Body, r.Violations)
			}
		}
	})
	if api != Chat { // which has no signatures
		t.Run("signatures", func(t TT) {
			m, s := over(t, script.New(
				script.Together(script.Think("First both."), script.Call("look", `{"at":"a"}`), script.Call("find", `{"at":"b"}`)),
				script.Together(script.Think("Once more."), script.Call("look", `{"at":"c"}`)),
				script.Say("There.")), SimulatorOptions{})
			testSignatures(t, api, m, s)
		})
	}
	t.Run("same bytes", func(t TT) {
		m, s := over(t, script.New(script.Loop(script.Say("yes"))), SimulatorOptions{})
		for range 3 {
			streamed(t, m, question())
		}
		got := s.Received()
		for _, r := range got[1:] {
			if string(r.Body) != string(got[0].Body) {
				t.Errorf("the same request was sent as\n%s\nand as\n%s", got[0].Body, r.Body)
			}
		}
	})
	t.Run("errors", func(t TT) {
		for name, test := range faults(api) {
			testFault(t, name, test, func(opts SimulatorOptions) llm.Model {
				m, _ := over(t, script.New(script.Say("A long answer, long enough to be broken off in the middle.")), opts)
				return m
			})
		}
		wrongKey := faultCase{code: llm.CodeAuthentication}
		testFault(t, "wrong key", wrongKey, func(opts SimulatorOptions) llm.Model {
			opts.Key = "another key"
			m, _ := over(t, script.New(script.Say("yes")), opts)
			return m
		})
	})
}

// testFault asks a provider that fails, streamed and whole.
func testFault[TT T[TT]](t TT, name string, test faultCase, open func(SimulatorOptions) llm.Model) {
	t.Helper()
	for _, whole := range []bool{false, true} {
		m := open(SimulatorOptions{Fault: func(int, *Received) *Fault { return &test.fault }})
		req := question()
		req.Whole = whole
		resp, err := streamed(t, m, req)
		var got *llm.ProviderError
		if !errors.As(err, &got) {
			t.Errorf("%s, whole %t: got reply %s and error %v, want a *llm.ProviderError", name, whole, form(resp), err)
			continue
		}
		if test.code != "" && got.Code != test.code || got.Retryable != test.retryable || got.RetryAfter != test.after {
			t.Errorf("%s, whole %t: got code %s, retryable %t, retry after %v; want %s, %t, %v (%v)", name, whole,
				got.Code, got.Retryable, got.RetryAfter, test.code, test.retryable, test.after, err)
		}
		if test.fault.Status != 0 && got.Status != test.fault.Status {
			t.Errorf("%s, whole %t: got status %d, want %d", name, whole, got.Status, test.fault.Status)
		}
		if strings.Contains(err.Error(), "test-key") {
			t.Errorf("%s: the error holds the key: %v", name, err)
		}
	}
}
