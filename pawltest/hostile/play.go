package hostile

import (
	"context"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Runtime executes a Job and reports the outcome. It must be safe for concurrent use.
type Runtime func(ctx context.Context, job *Job) Report

// Job is a Behaviour for a Runtime to meet.
type Job struct {
	Behaviour *Behaviour
	API       string
	Stream    bool
	Base      string  // base URL for a client of the API
	Task      string  // the user's message
	Tools     []*Tool // to offer, in this order
	Bench     *Bench  // for Tool.Call
}

// Report is a Runtime's report on the end of a run. The zero value of a field means unknown.
type Report struct {
	Stop     pawl.StopReason
	Err      error
	Messages []llm.Message // the transcript
	Progress int           // observed events from within calls
}

// Score is the result of a Runtime for one Behaviour on one wire.
type Score struct {
	API    string   `json:"api"`
	Mode   string   `json:"mode"`             // stream or whole
	Wrong  []string `json:"wrong,omitempty"`  // empty means passed
	Absent bool     `json:"absent,omitempty"` // this API cannot express it
	Millis int64    `json:"millis"`
}

// Row is the result of a Runtime for one Behaviour.
type Row struct {
	ID     string   `json:"id"`
	Title  string   `json:"title"`
	Meets  []string `json:"meets"`
	Scores []Score  `json:"scores"`
}

// Passed reports whether no fault was found.
func (r *Row) Passed() bool { return r.Why() == "" }

// Why is the first fault, with its place. Empty means none.
func (r *Row) Why() string {
	for _, s := range r.Scores {
		if len(s.Wrong) > 0 {
			return s.API + ", " + s.Mode + ": " + s.Wrong[0]
		}
	}
	return ""
}

// PlayOptions are the optional settings of Play.
type PlayOptions struct {
	APIs    []string       // nil means all
	Only    *regexp.Regexp // ids of the Behaviours to play; nil means all
	Patient time.Duration  // the time limit of one play; 0 means three minutes
	AtOnce  int            // concurrent plays; 0 means 64, because most of them wait
	Done    func(Row)      // called with each row after its plays; nil means no call
}

// Play plays Behaviours to a Runtime on each API, streamed and whole, and returns a Row for each,
// in order.
func Play(ctx context.Context, rt Runtime, all []Behaviour, opts *PlayOptions) ([]Row, error) {
	var o PlayOptions
	if opts != nil {
		o = *opts
	}
	if o.Patient == 0 {
		o.Patient = 3 * time.Minute
	}
	if o.AtOnce == 0 {
		o.AtOnce = 64
	}
	server, err := NewServer(all, &ServerOptions{APIs: o.APIs})
	if err != nil {
		return nil, err
	}
	defer server.Close()
	var rows []Row
	var left []*atomic.Int64
	var wait sync.WaitGroup
	slots := make(chan struct{}, o.AtOnce)
	var mu sync.Mutex // of Done
	for i := range all {
		b := &all[i]
		if o.Only != nil && !o.Only.MatchString(b.ID) {
			continue
		}
		row := Row{ID: b.ID, Title: b.Title, Meets: b.Meets}
		for _, api := range server.apis {
			for _, stream := range []bool{true, false} {
				row.Scores = append(row.Scores, Score{API: api, Mode: Mode(stream), Absent: !b.On(api, stream)})
			}
		}
		rows = append(rows, row)
		left = append(left, new(atomic.Int64))
		left[len(left)-1].Store(int64(len(row.Scores)))
	}
	for i := range rows {
		b := Find(all, rows[i].ID)
		for k := range rows[i].Scores {
			s := &rows[i].Scores[k]
			wait.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				if !s.Absent && ctx.Err() == nil {
					begun := time.Now()
					s.Wrong = play(ctx, server, rt, b, s.API, s.Mode == "stream", o.Patient)
					s.Millis = time.Since(begun).Milliseconds()
				}
				if left[i].Add(-1) == 0 && o.Done != nil && ctx.Err() == nil {
					mu.Lock()
					defer mu.Unlock()
					o.Done(rows[i])
				}
			})
		}
	}
	wait.Wait()
	return rows, context.Cause(ctx)
}

// play plays one Behaviour once, or twice if it demands so, and judges the outcome.
func play(ctx context.Context, server *Server, rt Runtime, b *Behaviour, api string, stream bool,
	patient time.Duration) []string {
	seen := once(ctx, server, rt, b, api, stream, patient)
	if b.Twice {
		seen.Again = once(ctx, server, rt, b, api, stream, patient).Log
	}
	return b.Judge(seen)
}

func once(ctx context.Context, server *Server, rt Runtime, b *Behaviour, api string, stream bool,
	patient time.Duration) *Seen {
	name := fmt.Sprintf("%s@%d", b.ID, server.plays.Add(1))
	defer server.Forget(name)
	bench := newBench(func(error) {})
	job := &Job{Behaviour: b, API: api, Stream: stream, Base: Base(server.Root, name, api), Task: b.task(),
		Bench: bench}
	for _, t := range b.Tools {
		job.Tools = append(job.Tools, server.tools[t])
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	seen := &Seen{API: api, Bench: bench}
	done := make(chan Report, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				seen.Died = fmt.Sprint(v)
				done <- Report{}
			}
		}()
		done <- rt(ctx, job)
	}()
	timer := time.NewTimer(patient)
	defer timer.Stop()
	var report Report
	select {
	case report = <-done:
	case <-timer.C:
		seen.Hung = true
		cancel(context.DeadlineExceeded)
	}
	if !seen.Hung {
		seen.Stop, seen.Messages, seen.Progress = string(report.Stop), report.Messages, report.Progress
		if report.Err != nil {
			seen.Error = report.Err.Error()
		}
	}
	seen.Log = server.Log(name)
	close(bench.over)
	if seen.Hung {
		<-done // it has nothing left to wait for
	}
	return seen
}
