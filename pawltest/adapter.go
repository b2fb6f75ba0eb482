package pawltest

import (
	"cmp"
	"slices"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/suite"
	"github.com/pawl-go/pawl/pawltest/internal/suite/model"
	"github.com/pawl-go/pawl/pawltest/mutant"
	"github.com/pawl-go/pawl/script"
)

// TestAdapter runs the suite that every adapter must pass whose API a Simulator supports: TestModel
// over HTTP, and tests of signatures and of errors in the API's own words. open returns a Model for
// the API at url (which ends in /v1 where relevant) with the key "test-key". The Model must not
// retry requests. The suite detects the API, and leaves out what the API cannot express.
func TestAdapter[TT T[TT]](t TT, open func(t TT, url string) llm.Model) {
	t.Helper()
	a := adapter[TT]{open: open}
	a.api = a.detect(t)
	suite.Run(t, a.parts(), inexpressible[a.api])
}

// ScoreAdapter plants the faults of mutant.Models and of mutant.Adapters, one at a time, in the
// Model that open returns. A fault that TestAdapter does not find is an error. So is a fault that
// it finds without a planted one. Faults of what the API cannot express are left out. open is the
// same as for TestAdapter.
func ScoreAdapter[TT T[TT]](t TT, open func(t TT, url string) llm.Model) mutant.Score {
	t.Helper()
	a := adapter[TT]{open: open}
	a.api = a.detect(t)
	lacks := slices.Clone(inexpressible[a.api])
	mutants := slices.Concat(mutant.Models(), mutant.Adapters())
	parts := a.parts()
	if a.api == Gemini {
		// It sends no broken arguments, so that no fault can change them.
		lacks = append(lacks, "reply/broken arguments")
	}
	for _, m := range mutants {
		if !slices.ContainsFunc(parts, func(p suite.Part[TT]) bool { return p.Name == m.Part }) {
			lacks = append(lacks, m.Part)
		}
	}

	run := func(t TT, r *mutant.Recorder, plant func(llm.Model) llm.Model) {
		faulty := func(_ *mutant.Recorder, url string) llm.Model { return plant(open(t, url)) }
		suite.Run(r, adapter[*mutant.Recorder]{a.api, faulty}.parts(), inexpressible[a.api])
	}
	return mutant.Try(t, mutants, lacks, run)
}

// inexpressible are the parts of TestModel for which an API has no words.
var inexpressible = map[string][]string{
	Chat: {
		"reply/media",
		"opaque",
		"request/results/media",
	},
	Responses: {
		"reply/media",
		"opaque", // see signatures
		"request/settings/stop",
	},
	Anthropic: {
		"reply/media",
		"opaque", // see signatures
		"request/choice/several",
		"request/settings/effort", // of newer models only
		"errors/context length",   // its errors have no code for it: see faults/too long
		"errors/content filter",
	},
	Gemini: {
		"reply/media",
		"opaque",                // see signatures
		"request/results/media", // its older models take images from users only
		"request/settings/parallel",
		"errors/context length", // its errors have no code for it: see faults/too long
		"errors/content filter",
	},
}

// adapter is the adapter under test.
type adapter[TT T[TT]] struct {
	api  string
	open func(t TT, url string) llm.Model
}

// over returns a Model over a Simulator of behind.
func (a adapter[TT]) over(t TT, behind llm.Model, opts SimulatorOptions) (llm.Model, *Simulator) {
	t.Helper()
	opts.Key = cmp.Or(opts.Key, "test-key")
	s, err := NewSimulator(behind, &opts)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() { s.Close() })
	return a.open(t, s.URL), s
}

// opener returns what opens Models over Simulators with opts.
func (a adapter[TT]) opener(opts SimulatorOptions) model.Opener[TT] {
	return func(t TT, behind llm.Model) llm.Model {
		m, _ := a.over(t, behind, opts)
		return m
	}
}

// detect sends a request, and returns the API that it arrives at.
func (a adapter[TT]) detect(t TT) string {
	t.Helper()
	m, s := a.over(t, script.New(script.Say("yes")), SimulatorOptions{})
	for range m.Stream(t.Context(), model.Question()) {
		break // the parts of the suite look at the reply
	}

	received := s.Received()
	if len(received) == 0 || received[0].API == "" {
		t.Fatalf("a first question did not arrive where an API answers: %+v", received)
	}
	return received[0].API
}

func (a adapter[TT]) parts() []suite.Part[TT] {
	plain := a.opener(SimulatorOptions{})
	parts := model.Parts(a.api, plain)
	arrives := func(t TT, change func(*llm.Request)) { model.Arrives(t, a.api, plain, change) }
	parts = append(parts, suite.Each("request/", a.requests(), arrives)...)
	parts = append(parts, suite.Each("faults/", a.faults(), a.testFault)...)
	parts = append(parts, suite.Part[TT]{Name: "form/same bytes", Test: a.testSameBytes})

	switch a.api {
	case Chat: // it has no signatures
		return parts
	case Gemini:
		noIDs := a.opener(SimulatorOptions{NoIDs: true})
		parts = append(parts,
			suite.Part[TT]{Name: "form/calls without ids", Test: func(t TT) { model.Conversation(t, noIDs) }},
			suite.Part[TT]{Name: "form/arguments in pieces", Test: a.testPieces},
		)
	}
	return append(parts, suite.Part[TT]{Name: "signatures", Test: a.testSignatures})
}
