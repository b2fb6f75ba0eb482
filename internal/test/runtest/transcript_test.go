package runtest_test

import (
	"testing"

	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
)

func TestTheCheckerOfTranscriptsFindsFaults(t *testing.T) {
	ask := llm.User("go")
	calls := llm.Assistant(runtest.Call("a", "x", "{}"), runtest.Call("b", "x", "{}"))
	same := llm.Assistant(runtest.Call("a", "x", "{}"), runtest.Call("a", "x", "{}"))
	a, b, end := runtest.Answer("a", ""), runtest.Answer("b", ""), llm.Assistant()
	for name, test := range map[string]struct {
		msgs []llm.Message
		ok   bool
	}{
		"answered":              {[]llm.Message{ask, calls, llm.Results(a, b), end}, true},
		"open":                  {[]llm.Message{ask, calls}, true},
		"one open":              {[]llm.Message{ask, calls, llm.Results(b)}, true},
		"open before the last":  {[]llm.Message{ask, calls, end}, false},
		"out of order":          {[]llm.Message{ask, calls, llm.Results(b, a), end}, false},
		"out of order, at last": {[]llm.Message{ask, calls, llm.Results(b, a)}, false},
		"twice":                 {[]llm.Message{ask, calls, llm.Results(a, a)}, false},
		"elsewhere":             {[]llm.Message{ask, calls, llm.User("hm"), llm.Results(a, b)}, false},
		"no call":               {[]llm.Message{ask, llm.Results(a)}, false},
		"split":                 {[]llm.Message{ask, calls, llm.Results(a), llm.Results(b)}, false},
		"same id":               {[]llm.Message{ask, same}, false},
		"decision":              {[]llm.Message{llm.DecisionMessage(llm.Decision{})}, false},
	} {
		if err := runtest.Valid(test.msgs); (err == nil) != test.ok {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
