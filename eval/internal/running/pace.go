package running

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/eval/internal/suite"
)

// pace.go: how fast all trials together send requests to a model. A refused request slows all
// trials down.

// Paces has a pace for each model. Nil means that requests are sent at once.
type Paces struct {
	stated map[string]suite.Pace

	mu     sync.Mutex
	models map[string]*pace
}

// NewPaces returns the paces of an eval. Models without a stated pace have none until a provider
// refuses a request.
func NewPaces(stated map[string]suite.Pace) *Paces {
	return &Paces{stated: stated, models: map[string]*pace{}}
}

// of returns the pace of a model.
func (p *Paces) of(model string) *pace {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.models[model] == nil {
		most := float64(p.stated[model].Requests) / 60
		p.models[model] = &pace{most: most, rate: most}
	}
	return p.models[model]
}

// around returns a transport that sends requests in the pace of a model, and adds the time that
// they wait to pause.
func (p *Paces) around(next http.RoundTripper, model string, pause *waiting) http.RoundTripper {
	if p == nil {
		return next
	}
	return &paced{next: next, pace: p.of(model), pause: pause}
}

// waiting is the time that the requests of a trial have waited.
type waiting struct{ sum atomic.Int64 }

func (w *waiting) add(d time.Duration)  { w.sum.Add(int64(d)) }
func (w *waiting) total() time.Duration { return time.Duration(w.sum.Load()) }

// pace is the rate of requests to a model.
type pace struct {
	most float64 // requests a second that the suite allows; 0 means any number

	mu      sync.Mutex
	rate    float64   // requests a second at the moment; 0 means any number
	free    time.Time // when the next request may begin
	paused  time.Time // until when none begins, as a provider has asked
	window  time.Time // the second that is counted
	begun   int       // requests that began in it
	refused int       // of them
}

// The change of the rate: a refusal takes part of it, and each answered request adds a little.
const (
	slower      = 0.7
	faster      = 0.3 // requests a second, in each second
	slowest     = 0.2
	defaultWait = time.Second
)

// wait returns when a request may begin.
func (p *pace) wait(ctx context.Context) error {
	for {
		until := p.reserve(time.Now())
		if until <= 0 {
			return nil
		}
		timer := time.NewTimer(until)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
		if !p.isPaused(time.Now()) {
			return nil
		}
	}
}

// reserve takes the next place, and returns how long it is until then.
func (p *pace) reserve(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := now
	if p.paused.After(at) {
		at = p.paused
	}
	if p.rate > 0 {
		if p.free.After(at) {
			at = p.free
		}
		p.free = at.Add(time.Duration(float64(time.Second) / p.rate))
	}

	if at.Sub(p.window) >= time.Second {
		p.window = at
		p.begun = 0
		p.refused = 0
	}
	p.begun++
	return at.Sub(now)
}

func (p *pace) isPaused(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.paused.After(now)
}

// answered raises the rate, up to the stated one.
func (p *pace) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rate == 0 {
		return
	}
	p.rate += faster / p.rate
	if p.most > 0 {
		p.rate = min(p.rate, p.most)
	}
}

// refuse pauses all requests, and lowers the rate once for the refusals of a second.
func (p *pace) refuse(now time.Time, after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := now.Add(after); until.After(p.paused) {
		p.paused = until
		p.free = until
	}
	p.refused++
	if p.refused > 1 {
		return
	}
	if p.rate == 0 {
		p.rate = float64(p.begun)
	}
	p.rate = max(slowest, p.rate*slower)
}

// paced sends requests in a pace.
type paced struct {
	next  http.RoundTripper
	pace  *pace
	pause *waiting
}

// RoundTrip sends a request when its time has come.
func (p *paced) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	err := p.pace.wait(r.Context())
	p.pause.add(time.Since(began))
	if err != nil {
		return nil, err
	}

	res, err := p.next.RoundTrip(r)
	switch {
	case err != nil:
	case res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable:
		p.pace.refuse(time.Now(), retryAfter(res.Header.Get("Retry-After"), time.Now()))
	case res.StatusCode < http.StatusBadRequest:
		p.pace.answered()
	}
	return res, err
}

// retryAfter reads the header: seconds, or a date. Without one it is a second.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil && seconds >= 0 {
		return min(time.Duration(seconds)*time.Second, time.Hour)
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return min(at.Sub(now), time.Hour)
	}
	return defaultWait
}
