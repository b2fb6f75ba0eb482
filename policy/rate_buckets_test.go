package policy

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// Keys may come from outside, so full buckets are removed; the others stay.
func TestFullBucketsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &buckets{every: time.Second, next: map[string]time.Time{}}
		for i := range 100_000 {
			if _, ok := b.reserve(fmt.Sprint("key ", i), 0); !ok {
				t.Fatalf("key %d has no turn", i)
			}
			if _, ok := b.reserve(fmt.Sprint("key ", i), 0); ok {
				t.Fatalf("key %d has two", i)
			}
			time.Sleep(100 * time.Millisecond) // ten keys a second
		}
		if len(b.next) > 100 {
			t.Errorf("%d buckets are kept, and about 10 are in use", len(b.next))
		}
	})
}
