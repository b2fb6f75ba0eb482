package client_test

import (
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/answertest"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
)

// A run through a server yields the same events as a run in the same process.
func TestRunsOfAServerPassTheSuite(t *testing.T) {
	pawltest.TestRunner(t, func(t *testing.T, a *pawl.Agent) pawl.Runner {
		c, _ := serve(t, a, nil)
		return c.Runner("r", "clerk")
	})
}

// A run through a server has the answer that a tool gave.
func TestAnswerOfATool(t *testing.T) {
	answertest.PlayReport(t, "remote Runner", func(t *testing.T, task string) string {
		c, _ := serve(t, answertest.Writer(), nil)
		res, err := pawl.Collect(c.Runner("r", "writer").Stream(t.Context(), llm.User(task)), nil)
		if err != nil {
			t.Fatal(err)
		}
		return res.Answer.Text
	})
}

// A number of rounds means the same through a server.
func TestRounds(t *testing.T) {
	answertest.PlayRounds(t, "remote Runner", func(t *testing.T, l *answertest.Looker, _ int) string {
		c, _ := serve(t, l.Agent, nil)
		res, err := runtest.Ended(pawl.Collect(c.Runner("r", "looker").Stream(t.Context(), llm.User("go")), nil))
		if err != nil {
			t.Fatal(err)
		}
		return answertest.ShownBy(res)
	})
}
