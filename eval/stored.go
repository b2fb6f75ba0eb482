package eval

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/pawl-go/pawl/eval/internal/check"
	"github.com/pawl-go/pawl/eval/internal/suite"
	"github.com/pawl-go/pawl/eval/internal/trial"
)

// stored.go: the trials of an eval that has a folder: resumed, or judged again.

// finished reads the trials that have ended. Skipped ones are begun again, and what they cost is
// added to their cost. A line that was cut by a crash is removed.
func (e *execution) finished() error {
	file := filepath.Join(e.dir, trialsFile)
	records, whole, err := readTrials(file)
	if err != nil {
		return err
	}
	if err := os.Truncate(file, whole); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, r := range records {
		e.release(0, costOf(r))
		if r.Verdict == trial.Skipped {
			e.wasted[keyOf(r)] = costOf(r)
			continue
		}
		e.records = append(e.records, r)
		e.ended[keyOf(r)] = true
	}
	return nil
}

// trialKey names a trial of an eval.
type trialKey struct {
	caseID  string
	variant string
	number  int
}

func keyOf(r *trial.Record) trialKey { return trialKey{r.Case, r.Variant, r.Number} }

// latest returns the last record of each trial: a trial that was skipped and begun again has two.
func latest(records []*trial.Record) (last []*trial.Record) {
	at := map[trialKey]int{}
	for _, r := range records {
		i, known := at[keyOf(r)]
		if known {
			last[i] = r
			continue
		}
		at[keyOf(r)] = len(last)
		last = append(last, r)
	}
	return last
}

// readTrials reads the last record of each trial in a file. whole is the size of its whole lines.
func readTrials(file string) (records []*trial.Record, whole int64, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	lines := bufio.NewReader(bytes.NewReader(text))
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return latest(records), whole, nil // the end, or a line that was cut
		}
		r := new(trial.Record)
		if err := json.Unmarshal(line, r); err != nil {
			return nil, 0, fmt.Errorf("%s: %w", file, err)
		}
		records = append(records, r)
		whole += int64(len(line))
	}
}

// Score judges the trials of an eval again, by the checks that the suite has now. dir is the folder
// of the eval. No model is asked and no tool runs. A trial whose case is gone is an error.
func Score(ctx context.Context, dir string, s *Suite, o *Options) (*Report, error) {
	if o == nil {
		o = new(Options)
	}
	p := newPlan(s, o)
	base, err := p.baseline()
	if err != nil {
		return nil, err
	}
	records, _, err := readTrials(filepath.Join(dir, trialsFile))
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("there are no trials in %s", dir)
	}

	for _, r := range records {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		i := slices.IndexFunc(p.cases, func(c *suite.LoadedCase) bool { return c.ID == r.Case })
		if i < 0 {
			return nil, fmt.Errorf("the eval has a case %s, which the suite does not have", r.Case)
		}
		r.Digest = p.cases[i].Digest
		check.Judge(r, p.cases[i].Judges)
	}
	report := newReport(p, records)
	report.ID = filepath.Base(dir)
	report.Dir = dir
	report.judge(p, base)
	return report, nil
}
