package intent_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/pawl-go/pawl/internal/intent"
)

// Concurrent Begins store once, and all return when it is stored. Begin and End decide together: if
// End says that nothing was sent, Begin has returned an error.
func TestLate(t *testing.T) {
	for range 200 {
		var l intent.Late
		var wg sync.WaitGroup
		stored := 0
		sent := make([]error, 4)
		for i := range sent {
			wg.Go(func() { sent[i] = l.Begin(func() error { stored++; return nil }) })
		}
		unsent, refused := l.End()
		wg.Wait()
		for _, err := range sent {
			if unsent != (err != nil) || refused != nil {
				t.Fatalf("unsent %v, and Begin returned %v", unsent, err)
			}
		}
		if (stored == 1) == unsent || stored > 1 {
			t.Fatalf("unsent %v, stored %d times", unsent, stored)
		}
	}
}

// What could not be stored was not sent, and is not stored later.
func TestLateIsRefused(t *testing.T) {
	no := errors.New("no disk")
	var l intent.Late
	for range 2 {
		if err := l.Begin(func() error { return no }); err != no {
			t.Errorf("Begin returned %v", err)
		}
	}
	if unsent, refused := l.End(); !unsent || refused != no {
		t.Errorf("End returned %v, %v", unsent, refused)
	}
	var before *intent.Late
	if unsent, refused := before.End(); unsent || refused != nil {
		t.Errorf("nil: End returned %v, %v", unsent, refused)
	}
}
