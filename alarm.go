package pawl

import (
	"sync"
	"time"
)

// alarm sees to it that tools which are over their time are left behind. One timer serves all calls of a run, and goes on from step to step, since
// most calls have ended long before it fires.
type alarm struct {
	mu    sync.Mutex
	timer *time.Timer
	fires int64  // in Unix nanoseconds; 0: it does not
	first *batch // of those that have a call to look at
	run   bool   // close ends it; else it ends with the last batch
}

// by has the leases of b looked at when d has passed, which is at until, or before.
func (a *alarm) by(b *batch, until int64, d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !b.watched {
		b.watched, b.after, a.first = true, a.first, b
	}
	a.set(until, d)
}

// set has the timer fire at until, unless it does before.
func (a *alarm) set(until int64, d time.Duration) {
	switch {
	case a.fires != 0 && a.fires <= until:
		return
	case a.timer == nil:
		a.timer = time.AfterFunc(d, a.ring)
	default:
		a.timer.Reset(d)
	}
	a.fires = until
}

// ring leaves behind what is over its time, and sets the timer for the next that will be.
func (a *alarm) ring() {
	for _, l := range a.over(time.Now().UnixNano()) {
		l.leave(errTimeout)
	}
}

func (a *alarm) over(now int64) (over []*lease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fires = 0
	for b := a.first; b != nil; b = b.after {
		for i := range b.leases {
			l := &b.leases[i]
			switch until := l.until.Load(); {
			case until == 0:
			case until <= now:
				over = append(over, l)
			default:
				a.set(until, time.Duration(until-now))
			}
		}
	}
	return over
}

// forget ends the watch over b, whose calls have ended.
func (a *alarm) forget(b *batch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !b.watched {
		return
	}
	b.watched = false
	at := &a.first
	for *at != b {
		at = &(*at).after
	}
	*at, b.after = b.after, nil
	if a.first == nil && !a.run {
		a.timer.Stop()
		a.fires = 0
	}
}

// close ends the alarm of a run.
func (a *alarm) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer != nil {
		a.timer.Stop()
	}
}
