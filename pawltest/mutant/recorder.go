package mutant

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Recorder takes the place of a test and records the failures of a suite. After the first failure
// it runs no further part.
type Recorder struct {
	ctx      context.Context
	name     string // of this part; "" for the suite
	only     string // the part to run; "" means all
	patience time.Duration
	log      *log // of the whole suite

	mu       sync.Mutex
	cleanups []func()
	ended    bool
}

// log is the failures of a suite.
type log struct {
	mu       sync.Mutex
	failures []string
	panicked bool
}

var _ T[*Recorder] = (*Recorder)(nil)

func newRecorder(ctx context.Context, only string, patience time.Duration) *Recorder {
	return &Recorder{ctx: ctx, only: only, patience: patience, log: new(log)}
}

// Failures returns the recorded failures, in their order.
func (r *Recorder) Failures() []string {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	return slices.Clone(r.log.failures)
}

func (r *Recorder) panicked() bool {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	return r.log.panicked
}

// Patience is how long a suite waits for an immediate event.
func (r *Recorder) Patience() time.Duration { return r.patience }

// Helper does nothing.
func (r *Recorder) Helper() {}

// Logf does nothing.
func (r *Recorder) Logf(string, ...any) {}

// Context returns the context of the test around the suite.
func (r *Recorder) Context() context.Context { return r.ctx }

// Errorf records a failure.
func (r *Recorder) Errorf(format string, args ...any) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	r.log.failures = append(r.log.failures, r.name+": "+fmt.Sprintf(format, args...))
}

// Fatalf records a failure and ends the part.
func (r *Recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// Cleanup calls f when the part ends. It calls f at once if the part has ended, and its goroutine
// was abandoned.
func (r *Recorder) Cleanup(f func()) {
	r.mu.Lock()
	ended := r.ended
	if !ended {
		r.cleanups = append(r.cleanups, f)
	}
	r.mu.Unlock()

	if ended {
		f()
	}
}

// Run runs a part of the suite on a goroutine of its own, which Fatalf ends. It skips a part that
// is not asked for, and every part after a failure.
func (r *Recorder) Run(name string, f func(r *Recorder)) bool {
	part := &Recorder{ctx: r.ctx, name: name, only: r.only, patience: r.patience, log: r.log}
	if r.name != "" {
		part.name = r.name + "/" + name
	}
	if !within(part.name, r.only) && !within(r.only, part.name) || len(r.Failures()) > 0 {
		return true
	}

	done := make(chan struct{})
	go func() {
		defer close(done)
		defer part.end()
		f(part)
	}()
	<-done
	return len(r.Failures()) == 0
}

// end records a panic of the part, and calls its cleanups, the last first.
func (r *Recorder) end() {
	if v := recover(); v != nil {
		r.Errorf("panic: %v", v)
		r.log.mu.Lock()
		r.log.panicked = true
		r.log.mu.Unlock()
	}

	r.mu.Lock()
	r.ended = true
	cleanups := r.cleanups
	r.mu.Unlock()
	for _, f := range slices.Backward(cleanups) {
		f()
	}
}
