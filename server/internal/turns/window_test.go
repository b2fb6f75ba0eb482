package turns

import (
	"slices"
	"testing"
	"time"
)

// TestWindowEnter has a row for each rule by which a request repeats an equal one before it, and
// one for each limit of such a rule.
func TestWindowEnter(t *testing.T) {
	const (
		reads  = "a connection reads the answer"
		got    = "the answer was delivered"
		lost   = "the answer was lost"
		failed = "the stream ended with an error"
		away   = "the provider was away, and the run goes on"

		waits     = "it waits for a person"
		waitsLost = "it waits for a person, and its connection was lost"
		waitsGot  = "it has waited for a person, and the answer was delivered"
	)
	for _, test := range []struct {
		name  string
		says  retry
		first string        // what became of the first request
		ago   time.Duration // since its connection ended
		want  bool
	}{
		{"a client that states a repetition", retry{stated: true, counts: true}, got, 9 * time.Minute, true},
		{"a client that states a repetition, of an answer under way", retry{stated: true, counts: true}, reads, 0, true},

		{"a page, before the server notices the end of the first", retry{page: true}, reads, 0, true},
		{"a page that counts, before the end of the first", retry{page: true, counts: true}, reads, 0, true},
		{"a page after a lost answer", retry{page: true}, lost, time.Second, true},
		{"a page that counts, after a lost answer", retry{page: true, counts: true}, lost, time.Second, true},
		{"a page that counts, later than its own time", retry{page: true, counts: true}, lost, 3 * time.Second, true},
		{"a page later than its own time, within that of all clients", retry{page: true}, lost, 3 * time.Second, true},
		{"a page later than the time of all clients", retry{page: true}, lost, 2 * time.Minute, false},
		{"a page after an answer", retry{page: true}, got, 0, false},

		{"a second question while the first is answered", retry{}, reads, 0, false},
		{"a second question after an answer", retry{}, got, 0, false},
		{"a program that repeats what was lost, by a client that counts", retry{counts: true}, lost, 59 * time.Second, true},
		{"a client that counts and begins anew", retry{counts: true}, lost, time.Minute, false},
		{"a client that counts and begins anew, after an error", retry{counts: true}, failed, time.Second, false},

		{"a lost answer", retry{}, lost, 59 * time.Second, true},
		{"a lost answer, too late", retry{}, lost, time.Minute, false},
		{"a question that waits for a person", retry{}, waits, 0, true},
		{"a question that waits, of a client that counts", retry{counts: true}, waits, 0, true},
		{"a question that waits for a client that was lost", retry{counts: true}, waitsLost, 9 * time.Minute, true},
		{"a question that has waited", retry{}, waitsGot, 0, false},

		{"an error in the stream", retry{}, failed, 14 * time.Second, true},
		{"a run that goes on", retry{}, away, 9 * time.Minute, true},
		{"a run that goes on, for a client that counts and begins anew", retry{counts: true}, away, 9 * time.Minute, true},
		{"an error in the stream, too late", retry{}, failed, 15 * time.Second, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var w window
			start := time.Unix(1_000_000, 0)
			first, fresh := w.enter(&sent{at: start}, retry{})
			if !fresh {
				t.Fatal("the first request is a repetition")
			}
			if slices.Contains([]string{waits, waitsLost, waitsGot}, test.first) {
				w.hold(first)
			}
			if test.first != reads && test.first != waits {
				w.release(first, closing{
					lost:   test.first == lost || test.first == waitsLost,
					failed: test.first == failed,
					away:   test.first == away,
				}, start)
			}

			second := &sent{at: start.Add(test.ago)}
			s, fresh := w.enter(second, test.says)
			if got := s == first; got != test.want || fresh == test.want {
				t.Errorf("the request repeats the first: %t, want %t (fresh: %t)", got, test.want, fresh)
			}
			if !test.want && second.number != first.number+1 {
				t.Errorf("the new request has number %d, want %d", second.number, first.number+1)
			}
		})
	}
}

// A request is forgotten after ten minutes.
func TestWindowForgets(t *testing.T) {
	var w window
	start := time.Unix(1_000_000, 0)
	first, _ := w.enter(&sent{at: start}, retry{})
	w.release(first, closing{lost: true}, start)
	second := &sent{at: start.Add(windowStated + time.Second)}
	if s, fresh := w.enter(second, retry{stated: true}); s != second || !fresh {
		t.Errorf("a request of eleven minutes ago is repeated: %v, fresh %t", s, fresh)
	}
}
