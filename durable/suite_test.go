package durable_test

import (
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/answertest"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/store"
)

func TestDurableRunsPassTheSuite(t *testing.T) {
	pawltest.TestRunner(t, func(_ *testing.T, a *pawl.Agent) pawl.Runner {
		return (&durable.Engine{Journal: new(store.MemoryJournal)}).Runner("r", a)
	})
}

// A stored run has the answer that a tool gave, also in its replay.
func TestAnswerOfATool(t *testing.T) {
	answertest.PlayReport(t, "durable", func(t *testing.T, task string) string {
		eng := &durable.Engine{Journal: new(store.MemoryJournal)}
		res, err := eng.Runner("r", answertest.Writer()).Run(t.Context(), llm.User(task))
		if err != nil {
			t.Fatal(err)
		}
		again, err := pawl.Collect(eng.ReplayEvents("r", answertest.Writer()).Stream(t.Context()), nil)
		if err != nil || again.Answer.Text != res.Answer.Text {
			t.Errorf("%v; the replay has the answer %+v", err, again.Answer)
		}
		return res.Answer.Text
	})
}

// A number of rounds means the same in a journal, also in the replay.
func TestRounds(t *testing.T) {
	answertest.PlayRounds(t, "durable", func(t *testing.T, l *answertest.Looker, _ int) string {
		eng := &durable.Engine{Journal: new(store.MemoryJournal)}
		res, err := runtest.Ended(eng.Runner("r", l.Agent).Run(t.Context(), llm.User("go")))
		if err != nil {
			t.Fatal(err)
		}
		again, err := runtest.Ended(pawl.Collect(eng.ReplayEvents("r", l.Agent).Stream(t.Context()), nil))
		if err != nil || answertest.ShownBy(again) != answertest.ShownBy(res) {
			t.Errorf("%v; the replay shows %s", err, answertest.ShownBy(again))
		}
		return answertest.ShownBy(res)
	})
}
