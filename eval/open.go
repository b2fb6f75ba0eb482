package eval

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl/eval/internal/trial"
)

// open.go: an eval that has a folder, and its trials.

// Eval is an eval that was kept in a folder. It is safe for concurrent use.
type Eval struct {
	// Report is what the eval found.
	Report *Report

	trials []*trial.Record
}

// Open reads the eval of a folder.
func Open(dir string) (*Eval, error) {
	text, err := os.ReadFile(filepath.Join(dir, reportFile))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, headerFile)); err == nil {
			return nil, fmt.Errorf("the eval %s has not ended; pawl eval run FILE --resume %[1]s continues it", filepath.Base(dir))
		}
		return nil, fmt.Errorf("there is no eval in %s", dir)
	}
	if err != nil {
		return nil, err
	}
	e := &Eval{Report: new(Report)}
	if err := json.Unmarshal(text, e.Report); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, reportFile), err)
	}
	e.Report.Dir = dir
	e.trials, _, err = readTrials(filepath.Join(dir, trialsFile))
	slices.SortStableFunc(e.trials, func(a, b *trial.Record) int { return cmp.Compare(a.Number, b.Number) })
	return e, err
}

// TrialReport is a trial of a case by a variant.
type TrialReport struct {
	// Case is the ID of the case.
	Case string `json:"case"`

	// Variant is the name of the variant.
	Variant string `json:"variant"`

	// Number counts the trials of the two from 1.
	Number int `json:"number"`

	// Verdict is pass, fail, error or skipped.
	Verdict string `json:"verdict"`

	// Reason says why it is not pass. Empty means that it is.
	Reason string `json:"reason,omitzero"`

	// Run is the ID of the durable run, in runs.db of the folder. Empty means that there was none.
	Run string `json:"run,omitzero"`

	// Input is what the user said.
	Input string `json:"input"`

	// Stop is why the run stopped.
	Stop string `json:"stop,omitzero"`

	// Answer is the text of the answer.
	Answer string `json:"answer"`

	// Calls are the calls of the run, in order.
	Calls []TrialCall `json:"calls"`

	// Checks are the checks, in the order of the suite.
	Checks []TrialCheck `json:"checks"`

	// Rounds is the number of rounds.
	Rounds int `json:"rounds"`

	// Tokens is the number of tokens of all requests and replies.
	Tokens int `json:"tokens"`

	// Cost is in US dollars. Nil means unknown.
	Cost *float64 `json:"cost"`

	// Time is the time of models and tools.
	Time time.Duration `json:"time_ns"`
}

// TrialCall is a call of a trial.
type TrialCall struct {
	// Tool is the name of the tool.
	Tool string `json:"tool"`

	// Args are the arguments.
	Args json.RawMessage `json:"args,omitzero"`

	// Outcome is how the call ended, by the words of pawl.Outcome.
	Outcome string `json:"outcome"`

	// Result is the text of the result.
	Result string `json:"result"`

	// Depth is 0 for a call of the agent itself, and more within another call.
	Depth int `json:"depth,omitzero"`
}

// TrialCheck is what a check says of a trial.
type TrialCheck struct {
	// Name is the name of the check.
	Name string `json:"name"`

	// Pass is true if the trial passes.
	Pass bool `json:"pass"`

	// Gates is true for a check that decides the verdict.
	Gates bool `json:"gates"`

	// Reason says why the trial does not pass.
	Reason string `json:"reason,omitzero"`
}

// Trials returns the trials of a case, by the order of variants and numbers. The error says that
// the eval has no such case.
func (e *Eval) Trials(caseID string) (all []TrialReport, err error) {
	for _, v := range e.Report.Variants {
		for _, r := range e.recordsOf(caseID, v.Name) {
			all = append(all, trialReport(r))
		}
	}
	if all == nil {
		return nil, fmt.Errorf("the eval has no case %s; it has %s", caseID, strings.Join(e.cases(), ", "))
	}
	return all, nil
}

// cases returns the IDs of the cases.
func (e *Eval) cases() (ids []string) {
	if len(e.Report.Variants) == 0 {
		return nil
	}
	for _, c := range e.Report.Variants[0].Cases {
		ids = append(ids, c.ID)
	}
	return ids
}

// recordsOf returns the trials of a case by a variant.
func (e *Eval) recordsOf(caseID, variant string) (all []*trial.Record) {
	for _, r := range e.trials {
		if r.Case == caseID && r.Variant == variant {
			all = append(all, r)
		}
	}
	return all
}

func trialReport(r *trial.Record) TrialReport {
	out := TrialReport{
		Case:    r.Case,
		Variant: r.Variant,
		Number:  r.Number,
		Verdict: r.Verdict,
		Run:     r.Run,
		Input:   r.Input,
		Stop:    r.Stop,
		Answer:  r.Answer,
		Calls:   []TrialCall{},
		Checks:  []TrialCheck{},
		Rounds:  r.Spent.Rounds,
		Tokens:  r.Spent.Input + r.Spent.Output,
		Cost:    r.Spent.Cost,
		Time:    r.Spent.Time,
	}
	if r.Verdict != trial.Pass {
		out.Reason = reasonOf(r)
	}
	for _, c := range r.Calls {
		out.Calls = append(out.Calls, TrialCall{c.Tool, c.Args, c.Outcome, c.Result, c.Depth})
	}
	for _, c := range r.Checks {
		out.Checks = append(out.Checks, TrialCheck{c.Name, c.Pass, c.Gates, cmp.Or(c.Reason, c.Error)})
	}
	return out
}

// Text writes the trial for a terminal of this width: its checks, its calls and its answer.
func (t *TrialReport) Text(w io.Writer, width int) error {
	p := &page{width: width}
	p.line("", "%s by %s, trial %d: %s", t.Case, t.Variant, t.Number, t.Verdict)
	p.line("", "%s", t.spent())
	if t.Reason != "" && len(t.Checks) == 0 {
		p.line("", "%s", t.Reason)
	}
	p.line("input    ", "%s", t.Input)
	for i, c := range t.Calls {
		p.line(fmt.Sprintf("call %-4d", i+1), "%s%s%s", strings.Repeat("  ", c.Depth), c.Tool, c.Args)
		p.line("         ", "%s: %s", c.Outcome, c.Result)
	}
	p.line("answer   ", "%s", t.Answer)
	p.line("stop     ", "%s", t.Stop)

	for _, c := range t.Checks {
		word := "pass"
		if !c.Pass {
			word = "FAIL"
		}
		if !c.Gates {
			word += ", observed"
		}
		p.line("check    ", "%s: %s %s", c.Name, word, c.Reason)
	}
	if t.Run != "" {
		p.line("run      ", "%s (pawl runs show %[1]s --db FOLDER/runs.db)", t.Run)
	}
	return p.write(w)
}

// spent is what a trial used, as a line.
func (t *TrialReport) spent() string {
	cost := "cost unknown"
	if t.Cost != nil {
		cost = fmt.Sprintf("$%.4f", *t.Cost)
	}
	return fmt.Sprintf("%s, %s, %s, %s", counted(len(t.Calls), "call"), counted(t.Tokens, "token"), cost,
		t.Time.Round(time.Millisecond))
}

// WriteTrials writes a line a trial for a terminal of this width, with the reason of each that did
// not pass.
func WriteTrials(w io.Writer, all []TrialReport, width int) error {
	p := &page{width: width}
	for i := range all {
		t := &all[i]
		p.line("", "%s %d: %s, %s", t.Variant, t.Number, t.Verdict, t.spent())
		if t.Reason != "" {
			p.line("  ", "%s", t.Reason)
		}
	}
	return p.write(w)
}
