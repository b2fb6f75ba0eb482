// Package intent holds the moment in which an attempt of a call may begin to have an effect.
package intent

import (
	"errors"
	"sync"
)

var errEnded = errors.New("the call has ended, so that nothing of it may be sent")

// Late is the intent of an attempt, which its tool stores while it runs. The zero value is not
// stored. It is safe for concurrent use.
type Late struct {
	mu     sync.Mutex
	stored chan struct{} // closed when store has returned; nil means not called
	err    error         // why nothing may be sent; set before stored closes
}

// Begin stores the intent with store, once, and returns the error of store. After End, it returns
// an error and stores nothing.
func (l *Late) Begin(store func() error) error {
	l.mu.Lock()
	stored := l.stored
	if stored == nil && l.err == nil {
		l.stored = make(chan struct{})
		defer close(l.stored)
		l.mu.Unlock()
		l.err = store()
		return l.err
	}
	l.mu.Unlock()

	if stored != nil {
		<-stored
	}
	return l.err
}

// End lets Begin store nothing from now on, and reports whether the attempt has certainly sent
// nothing. refused is the error of store. A nil l was stored before the attempt.
func (l *Late) End() (unsent bool, refused error) {
	if l == nil {
		return false, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stored == nil {
		l.err = errEnded
		return true, nil
	}

	select {
	case <-l.stored:
		return l.err != nil, l.err
	default:
		return false, nil // it is being stored
	}
}
