package runtest_test

import (
	"testing"

	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
)

func TestTheCheckerOfTranscriptsFindsFaults(t *testing.T) {
	ask, calls := llm.User("go"), llm.Assistant(runtest.Call("a", "x", "{}"), runtest.Call("b", "x", "{}"))
	for name, test := range map[string]struct {
		msgs []llm.Message
		ok   bool
	}{
		"answered":              {[]llm.Message{ask, calls, llm.Results(runtest.Answer("a", ""), runtest.Answer("b", "")), llm.Assistant()}, true},
		"open":                  {[]llm.Message{ask, calls}, true},
		"one open":              {[]llm.Message{ask, calls, llm.Results(runtest.Answer("b", ""))}, true},
		"open before the last":  {[]llm.Message{ask, calls, llm.Assistant()}, false},
		"out of order":          {[]llm.Message{ask, calls, llm.Results(runtest.Answer("b", ""), runtest.Answer("a", "")), llm.Assistant()}, false},
		"out of order, at last": {[]llm.Message{ask, calls, llm.Results(runtest.Answer("b", ""), runtest.Answer("a", ""))}, false},
		"twice":                 {[]llm.Message{ask, calls, llm.Results(runtest.Answer("a", ""), runtest.Answer("a", ""))}, false},
		"elsewhere":             {[]llm.Message{ask, calls, llm.User("hm"), llm.Results(runtest.Answer("a", ""), runtest.Answer("b", ""))}, false},
		"no call":               {[]llm.Message{ask, llm.Results(runtest.Answer("a", ""))}, false},
		"split":                 {[]llm.Message{ask, calls, llm.Results(runtest.Answer("a", "")), llm.Results(runtest.Answer("b", ""))}, false},
		"same id":               {[]llm.Message{ask, llm.Assistant(runtest.Call("a", "x", "{}"), runtest.Call("a", "x", "{}"))}, false},
		"decision":              {[]llm.Message{llm.DecisionMessage(llm.Decision{})}, false},
	} {
		if err := runtest.Valid(test.msgs); (err == nil) != test.ok {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
