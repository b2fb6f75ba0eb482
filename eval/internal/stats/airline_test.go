package stats_test

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/eval/internal/stats"
	"github.com/pawl-go/pawl/internal/test/corpora"
)

// trajectory is a recorded run of an airline task.
type trajectory struct {
	ID     string  `json:"id"`
	Reward float64 `json:"reward"`
}

// airline returns the rewards of the runs by task: an ID ends in the task and the trial.
func airline(t *testing.T) map[string][]trajectory {
	t.Helper()
	tasks := map[string][]trajectory{}
	for _, run := range corpora.Lines[trajectory](t, "tau-bench/dev/tau_airline_gpt4o_trajectories.jsonl.gz") {
		task := run.ID[:strings.LastIndex(run.ID, "/")]
		tasks[task] = append(tasks[task], run)
	}
	for _, runs := range tasks {
		slices.SortFunc(runs, func(a, b trajectory) int { return cmp.Compare(a.ID, b.ID) })
	}
	return tasks
}

// count counts the rewarded runs.
func count(runs []trajectory) stats.Case {
	c := stats.Case{Judged: len(runs)}
	for _, r := range runs {
		if r.Reward == 1 {
			c.Passed++
		}
	}
	return c
}

// TestAirline compares the figures of 84 recorded runs with the figures of another program.
func TestAirline(t *testing.T) {
	var cases []stats.Case
	var pairs []stats.Pair
	passed := 0
	for _, runs := range airline(t) {
		c := count(runs)
		cases = append(cases, c)
		passed += c.Passed
		pairs = append(pairs, stats.Pair{Before: count(runs[:2]), After: count(runs[2:])})
	}

	rates := stats.Groups(cases)
	low, high := stats.Interval(rates, 84)
	d := stats.Compare(pairs)
	for _, row := range []struct {
		name      string
		want, got float64
	}{
		{"passed", 35, float64(passed)},
		{"cases", 21, float64(len(cases))},
		{"standard error", 0.088529, stats.StandardError(rates)},
		{"low", 0.2537, low},
		{"high", 0.6002, high},
		{"pass@1", 0.416667, stats.Over(cases, 1, stats.PassAt)},
		{"pass@2", 0.531746, stats.Over(cases, 2, stats.PassAt)},
		{"pass@3", 0.607143, stats.Over(cases, 3, stats.PassAt)},
		{"pass@4", 0.666667, stats.Over(cases, 4, stats.PassAt)},
		{"pass^2", 0.301587, stats.Over(cases, 2, stats.PassAll)},
		{"pass^3", 0.261905, stats.Over(cases, 3, stats.PassAll)},
		{"pass^4", 0.238095, stats.Over(cases, 4, stats.PassAll)},
		{"difference", 0.023810, math.Abs(d.Mean)},
		{"differ", 7, float64(d.Changed)},
		{"two-sided p", 1, d.Either},
		{"detectable", 0.1802, d.Detectable},
	} {
		if math.Abs(row.want-row.got) > 5.1e-5 {
			t.Errorf("%s: got %.6f, want %.6f", row.name, row.got, row.want)
		}
	}
}
