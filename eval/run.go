package eval

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/eval/internal/check"
	"github.com/pawl-go/pawl/eval/internal/running"
	"github.com/pawl-go/pawl/eval/internal/trial"
	"github.com/pawl-go/pawl/store/sqlite"
)

// run.go: runs the trials of an eval.

// Run runs the trials of a suite and judges them. The error says why none was begun: the faults of
// Suite.Check as an *UnsafeError, or a folder that cannot be written. An interruption, a budget
// that is used up and a gate that failed are in the Report.
func Run(ctx context.Context, s *Suite, o *Options) (*Report, error) {
	if o == nil {
		o = new(Options)
	}
	p := newPlan(s, o)
	if len(p.trials) == 0 {
		return nil, errors.New("no trial is selected: no case or no variant has such a name or tag")
	}
	base, err := p.baseline()
	if err != nil {
		return nil, err
	}
	warnings, err := s.Check(ctx, o.Strict)
	if err != nil {
		return nil, &UnsafeError{err}
	}
	e, err := p.open()
	if err != nil {
		return nil, err
	}
	defer e.close()

	e.run(ctx)
	if e.failed != nil {
		return nil, e.failed
	}
	r := newReport(p, e.records)
	r.ID = e.id
	r.Dir = e.dir
	r.Warnings = warnings
	r.Stopped = e.stopped
	r.judge(p, base)
	return r, writeJSON(filepath.Join(e.dir, reportFile), r)
}

// execution is an eval that runs.
type execution struct {
	plan   *plan
	id     string
	dir    string
	db     *sqlite.DB
	runner *running.Runner
	log    *os.File
	began  time.Time

	// Of the eval that is resumed: the trials that have ended, and what skipped ones cost.
	ended  map[trialKey]bool
	wasted map[trialKey]float64

	mu       sync.Mutex
	records  []*trial.Record
	hopeless map[string]string // variants of which no further trial begins, with the reason
	spent    float64
	reserved float64
	dearest  float64 // of the trials so far
	ran      int     // trials of this process that have ended
	stopped  string  // why no further trial begins; "" means that all began
	failed   error   // of writing a record
}

// header is the first file of an eval.
type header struct {
	Form     string            `json:"form"`
	Suite    string            `json:"suite"`
	File     string            `json:"file"`
	Digest   string            `json:"digest"`
	Variants map[string]string `json:"variants"` // digests of agents
	Seed     int               `json:"seed"`
	Trials   int               `json:"trials"`
}

// evalForm names the form of the folder.
const evalForm = "pawl eval 1"

// The files of an eval.
const (
	headerFile = "eval.json"
	trialsFile = "trials.jsonl"
	reportFile = "report.json"
)

// open makes the folder of a new eval, or opens the folder of the eval that is resumed.
func (p *plan) open() (*execution, error) {
	parent := p.options.Dir
	if parent == "" {
		parent = filepath.Join(".pawl", "evals")
	}
	e := &execution{
		plan:     p,
		id:       p.options.Resume,
		began:    time.Now(),
		ended:    map[trialKey]bool{},
		wasted:   map[trialKey]float64{},
		hopeless: map[string]string{},
	}
	if e.id == "" {
		e.id = time.Now().UTC().Format("20060102-150405-") + rand.Text()[:6]
	}
	e.dir = filepath.Join(parent, p.suite.Name(), e.id)
	if err := e.begin(); err != nil {
		return nil, err
	}

	var err error
	e.log, err = os.OpenFile(filepath.Join(e.dir, trialsFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	e.db, err = sqlite.Open(filepath.Join(e.dir, "runs.db"), nil)
	if err != nil {
		return nil, errors.Join(err, e.log.Close())
	}
	e.runner = &running.Runner{
		Engine: &durable.Engine{Journal: e.db},
		Getenv: p.suite.getenv,
		Record: filepath.Join(e.dir, "recordings"),
		Paces:  running.NewPaces(p.suite.read.File.Pace),
	}
	if p.options.Replay != "" {
		e.runner.Replay = filepath.Join(p.options.Replay, "recordings")
		e.runner.Record = ""
	}
	return e, nil
}

// begin writes the header, or compares it with the header of the eval that is resumed.
func (e *execution) begin() error {
	f := e.plan.suite.read.File
	head := header{
		Form:     evalForm,
		Suite:    f.Eval,
		File:     e.plan.suite.read.Path,
		Digest:   e.plan.suite.read.Digest,
		Variants: map[string]string{},
		Seed:     1,
		Trials:   len(e.plan.trials),
	}
	if f.Seed != nil {
		head.Seed = *f.Seed
	}
	for _, v := range e.plan.variants {
		head.Variants[v.Name] = v.Digest
	}
	file := filepath.Join(e.dir, headerFile)
	if e.plan.options.Resume != "" {
		return e.continued(file, &head)
	}
	if err := os.MkdirAll(filepath.Join(e.dir, "recordings"), 0o700); err != nil {
		return err
	}
	return writeJSON(file, &head)
}

// continued checks that an eval can be resumed, and reads its finished trials.
func (e *execution) continued(file string, head *header) error {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no eval %s of the suite %s", e.id, head.Suite)
	}
	if err != nil {
		return err
	}
	var was header
	if err := json.Unmarshal(text, &was); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if was.Digest != head.Digest {
		return fmt.Errorf("the suite %s has changed since the eval %s was begun; begin a new one", head.Suite, e.id)
	}
	for name, digest := range head.Variants {
		if was.Variants[name] != digest {
			return fmt.Errorf("the agent of the variant %s has changed since the eval %s was begun; begin a new one", name, e.id)
		}
	}
	return e.finished()
}

func (e *execution) close() {
	e.db.Close()
	e.log.Close()
}

// run runs the trials that have not ended.
func (e *execution) run(ctx context.Context) {
	limit := e.plan.options.Time
	if limit == 0 {
		limit = time.Duration(e.plan.suite.read.File.Time)
	}
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errTime)
		defer cancel()
	}

	waiting := make(chan *running.Trial)
	var workers sync.WaitGroup
	for range e.workers() {
		workers.Go(func() {
			for t := range waiting {
				e.trial(ctx, t)
			}
		})
	}
	for _, t := range e.plan.trials {
		if !e.ended[planned(t)] {
			waiting <- t
		}
	}
	close(waiting)
	workers.Wait()
}

// errTime is the cause of the end of an eval by its time.
var errTime = errors.New("the time of the eval is over")

func (e *execution) workers() int {
	if n := e.plan.options.Parallel; n > 0 {
		return n
	}
	if n := e.plan.suite.read.File.Parallel; n > 0 {
		return n
	}
	return 4
}

// planned is the key of a trial of the plan.
func planned(t *running.Trial) trialKey { return trialKey{t.Case.ID, t.Variant.Name, t.Number} }

// trial runs a trial with its retries, judges it and keeps it.
func (e *execution) trial(ctx context.Context, t *running.Trial) {
	wasted := e.wasted[planned(t)]
	for {
		reason, reserve := e.admit(ctx, t)
		if reason != "" {
			e.keep(&trial.Record{Case: t.Case.ID, Variant: t.Variant.Name, Number: t.Number, Digest: t.Case.Digest,
				Verdict: trial.Skipped, Error: reason, Wasted: wasted}, 0)
			return
		}
		r := e.runner.Run(ctx, t)
		if r.Verdict == trial.Skipped {
			e.noteEnd(ctx)
		}
		isAgain := r.Verdict == trial.Error && running.IsTemporary(r.Code) && t.Attempt <= e.retries()
		if !isAgain {
			r.Wasted = wasted
			check.Judge(r, t.Case.Judges)
			e.keep(r, reserve)
			return
		}

		e.release(reserve, costOf(r))
		wasted += costOf(r)
		next := *t
		next.Attempt++
		t = &next
	}
}

func (e *execution) retries() int {
	if n := e.plan.suite.read.File.Retries; n != nil {
		return *n
	}
	return 2
}

// noteEnd notes and returns why no further trial begins once the context has ended. Empty means
// that it has not.
func (e *execution) noteEnd(ctx context.Context) (reason string) {
	if ctx.Err() == nil {
		return ""
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if context.Cause(ctx) == errTime {
		e.stopped = stoppedTime
		return errTime.Error()
	}
	e.stopped = stoppedInterrupted
	return "the eval was interrupted"
}

// admit reserves what a trial may cost, or says why it does not begin.
func (e *execution) admit(ctx context.Context, t *running.Trial) (reason string, reserve float64) {
	if reason := e.noteEnd(ctx); reason != "" {
		return reason, 0
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	budget := e.plan.options.Budget
	if budget == 0 {
		budget = e.plan.suite.read.File.Budget
	}
	reserve = e.reserve(t)

	switch {
	case e.hopeless[t.Variant.Name] != "":
		return "no trial of the variant can succeed: " + e.hopeless[t.Variant.Name], 0
	case budget > 0 && e.spent+e.reserved+reserve > budget:
		e.stopped = stoppedBudget
		return "the budget of the eval is used up", 0
	}
	e.reserved += reserve
	return "", reserve
}

// Why an eval began no further trial.
const (
	stoppedTime        = "time"
	stoppedBudget      = "budget"
	stoppedInterrupted = "interrupted"
)

// reserve is what a trial may cost: its limit, or half more than the dearest trial so far.
func (e *execution) reserve(t *running.Trial) float64 {
	if e.plan.options.Replay != "" || t.Variant.IsScripted() {
		return 0
	}
	if cost := t.Case.Bounds.Cost; cost != nil {
		return *cost
	}
	return 1.5 * e.dearest
}

func (e *execution) release(reserve, cost float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reserved -= reserve
	e.spent += cost
	e.dearest = max(e.dearest, cost)
}

// costOf returns the known cost of a trial, with its earlier attempts.
func costOf(r *trial.Record) float64 {
	if r.Spent.Cost == nil {
		return r.Wasted
	}
	return r.Wasted + *r.Spent.Cost
}

// keep writes a record, and reports it.
func (e *execution) keep(r *trial.Record, reserve float64) {
	e.release(reserve, costOf(r)-r.Wasted)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.records = append(e.records, r)
	if running.EndsVariant(r.Code) {
		e.hopeless[r.Variant] = r.Error
	}

	line, err := json.Marshal(r)
	if err == nil {
		line = running.Redactor(r.Hidden).JSON(line)
		_, err = e.log.Write(append(line, '\n'))
	}
	if err == nil {
		err = e.log.Sync()
	}
	if err != nil {
		e.failed = errors.Join(e.failed, err)
	}
	e.progress(r)
}

// progress reports a trial that has ended.
func (e *execution) progress(r *trial.Record) {
	e.ran++
	report := e.plan.options.Progress
	if report == nil {
		return
	}
	left := len(e.plan.trials) - len(e.records)
	report(Progress{
		Case:    r.Case,
		Variant: r.Variant,
		Number:  r.Number,
		Verdict: r.Verdict,
		Reason:  reasonOf(r),
		Done:    len(e.records),
		Total:   len(e.plan.trials),
		Left:    time.Since(e.began) / time.Duration(e.ran) * time.Duration(left),
	})
}

// reasonOf says why a trial did not pass.
func reasonOf(r *trial.Record) string {
	if r.Error != "" {
		return r.Error
	}
	for _, one := range failures(r) {
		return one
	}
	return ""
}

func writeJSON(file string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o600)
}
