package history_test

import (
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/script"
)

// TestSummaryCost: the cost of summaries counts. Without a price of the writer, the cost is known
// to be incomplete, and a run with a limit on cost does not start.
func TestSummaryCost(t *testing.T) {
	price := catalog.Price{Input: 1, Output: 1}
	usage := &llm.Usage{Input: 1e6}
	writer := func() llm.Model {
		return script.New(script.Loop(script.Turn{Parts: []llm.Part{llm.Text{Text: "notes"}}, Usage: usage}))
	}
	run := func(writer llm.Model, limit float64) (*pawl.Result, error) {
		m := price.Of(script.New(script.Loop(script.Turn{Parts: []llm.Part{llm.Text{Text: "x"}}, Usage: usage})))
		a := &pawl.Agent{Model: m, Middleware: []pawl.Middleware{history.Summary(writer, 1000, nil)},
			Limits: pawl.Limits{Cost: limit}}
		return a.Run(t.Context(), long(39)...)
	}
	for name, c := range map[string]struct {
		writer llm.Model
		cost   float64
		known  bool
	}{
		"priced":   {price.Of(writer()), 2, true},
		"unpriced": {writer(), 1, false},
		"free":     {catalog.Price{}.Of(writer()), 1, true},
	} {
		res, err := run(c.writer, 0)
		if err != nil {
			t.Fatal(err)
		}
		if u := res.Spent.Usage; u.Total() != 2e6 || u.Cost != c.cost || u.CostKnown() != c.known ||
			res.Spent.Requests != 2 {
			t.Errorf("%s: got %+v, known %t", name, res.Spent, u.CostKnown())
		}
		if _, err = run(c.writer, 1000); c.known != (err == nil) {
			t.Errorf("%s: with a limit on cost: got %v", name, err)
		} else if err != nil && !strings.Contains(err.Error(), "price") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}
