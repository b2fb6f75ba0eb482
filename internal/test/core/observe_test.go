package core_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/script"
)

// told returns a Runner that emits events with a pause of gap between them.
func told(gap time.Duration, events ...pawl.Event) pawl.Runner {
	return observe.RunnerFunc(func(context.Context, ...llm.Message) iter.Seq2[pawl.Event, error] {
		return func(yield func(pawl.Event, error) bool) {
			for i, e := range events {
				time.Sleep(gap)
				if e.Seq = int64(i + 1); !yield(e, nil) {
					return
				}
			}
		}
	})
}

func ended() pawl.Event { return pawl.Event{Kind: pawl.EventRunEnded, Run: "run"} }

func TestTapSeesEverythingFirst(t *testing.T) {
	a := &pawl.Agent{Model: script.New(script.Turn{Parts: []llm.Part{call("c", "f", `{}`)}}, script.Say("done")),
		Tools: []pawl.Toolset{says("f", "1")}}
	var seen, got []pawl.EventKind
	for e, err := range observe.Sync(a, func(e pawl.Event) { seen = append(seen, e.Kind) }).Stream(t.Context(),
		llm.User("go")) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, e.Kind); len(seen) != len(got) {
			t.Fatalf("at event %d the observer had seen %d", len(got), len(seen))
		}
	}
	if diff := cmp.Diff(seen, got); diff != "" || len(got) < 10 {
		t.Errorf("%d events, seen -, told +\n%s", len(got), diff)
	}
}

// An observer that panics gets the number of missed events, and the run ends normally.
func TestObserversThatPanic(t *testing.T) {
	for name, watch := range map[string]func(pawl.Runner, func(pawl.Event)) pawl.Runner{
		"Tap": observe.Sync,
		"On":  func(r pawl.Runner, fn func(pawl.Event)) pawl.Runner { return observe.Async(r, nil, fn) },
	} {
		text := pawl.Event{Kind: pawl.EventText, Text: "x"}
		bad := pawl.Event{Kind: pawl.EventText, Text: "bad"}
		var seen []string
		n := 0
		for _, err := range watch(told(0, text, bad, bad, text, ended()), func(e pawl.Event) {
			if e.Text == "bad" {
				panic("no")
			}
			line := string(e.Kind)
			if e.Kind == pawl.EventGap {
				line += jsonOf(t, e.Lost) + e.Text
			}
			seen = append(seen, line)
		}).Stream(t.Context()) {
			if n++; err != nil {
				t.Fatal(err)
			}
		}
		want := []string{"text", `gap{"text":1}the observer panicked: no`, `gap{"text":1}the observer panicked: no`, "text", "run_ended"}
		if diff := cmp.Diff(seen, want); diff != "" || n != 5 {
			t.Errorf("%s: %d events, got -, want +\n%s", name, n, diff)
		}
	}
}

// A slow observer does not delay the run. It misses fragments first and receives the end, and the
// received and the missed events add up.
func TestASlowObserverHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events []pawl.Event
		for i := range 5000 {
			kind := pawl.EventText
			if i%10 == 0 {
				kind = pawl.EventNotice
			}
			events = append(events, pawl.Event{Kind: kind})
		}
		events = append(events, ended())
		seen, missed := map[pawl.EventKind]int{}, map[pawl.EventKind]int{}
		last := pawl.Event{}
		r := observe.Async(told(time.Microsecond, events...), nil, func(e pawl.Event) {
			time.Sleep(time.Millisecond)
			if last = e; e.Kind != pawl.EventGap {
				seen[e.Kind]++
				return
			}
			for k, n := range e.Lost {
				missed[k] += n
			}
		})
		start, streamed := time.Now(), time.Duration(0)
		for e := range r.Stream(t.Context()) {
			if e.Kind == pawl.EventRunEnded {
				streamed = time.Since(start)
			}
		}
		if streamed != 5001*time.Microsecond {
			t.Errorf("the events took %v", streamed)
		}
		if missed[pawl.EventText] == 0 || missed[pawl.EventNotice] > 0 || last.Kind != pawl.EventRunEnded {
			t.Errorf("missed %v, the last is %s", missed, last.Kind)
		}
		if seen[pawl.EventText]+missed[pawl.EventText] != 4500 || seen[pawl.EventNotice] != 500 {
			t.Errorf("seen %v, missed %v", seen, missed)
		}
	})
}

// The run ends although an observer never returns: after 5 seconds, or shortly after the end of its
// context.
func TestAnObserverThatHangsIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		r := observe.Async(told(0, ended()), nil, func(pawl.Event) { <-release })
		for _, test := range []struct {
			ends, want time.Duration
		}{{time.Hour, 5 * time.Second}, {2 * time.Second, 2100 * time.Millisecond}, {0, 100 * time.Millisecond}} {
			ctx, cancel := context.WithTimeout(t.Context(), test.ends)
			start := time.Now()
			for range r.Stream(ctx) {
			}
			cancel()
			if got := time.Since(start); got != test.want {
				t.Errorf("with %v to live the run waited %v, want %v", test.ends, got, test.want)
			}
		}
	})
}

// For any events, any pace and any observer, the received and the reported missed events add up, by
// kind and in order. The run's own events are unchanged.
func TestObserversCountUp(tt *testing.T) {
	kinds := []pawl.EventKind{pawl.EventText, pawl.EventCallDelta, pawl.EventNotice, pawl.EventCallCompleted,
		pawl.EventStep}
	rapid.Check(tt, func(t *rapid.T) {
		var events []pawl.Event
		for range rapid.IntRange(0, 60).Draw(t, "bursts") {
			k := rapid.SampledFrom(kinds).Draw(t, "kind")
			for range rapid.IntRange(1, 80).Draw(t, "burst") {
				events = append(events, pawl.Event{Kind: k})
			}
		}
		events = append(events, ended())
		var filter []pawl.EventKind
		if rapid.Bool().Draw(t, "filtered") {
			filter = rapid.SliceOfN(rapid.SampledFrom(kinds), 1, 3).Draw(t, "kinds")
		}
		slow, panics := rapid.IntRange(0, 40).Draw(t, "slow"), rapid.IntRange(0, 20).Draw(t, "panics")
		want := map[pawl.EventKind]int{}
		for _, e := range events {
			if filter == nil || slices.Contains(filter, e.Kind) {
				want[e.Kind]++
			}
		}
		var failure error
		count := func() map[pawl.EventKind]int {
			got, n, seq := map[pawl.EventKind]int{}, 0, int64(0)
			i := 0
			for e := range observe.Async(told(time.Microsecond, events...), filter, func(e pawl.Event) {
				if n++; slow > 0 && n%7 == 0 {
					time.Sleep(time.Duration(slow) * time.Microsecond)
				}
				if panics > 0 && n%(panics+2) == 0 {
					panic("now and then")
				}
				if e.Seq <= seq {
					failure = errors.New("out of order")
				}
				if seq = e.Seq; e.Kind != pawl.EventGap {
					got[e.Kind]++
				}
				for k, n := range e.Lost {
					got[k] += n
				}
			}).Stream(context.Background()) {
				if i++; e.Kind != events[i-1].Kind || e.Seq != int64(i) {
					failure = errors.New("the run's own events changed")
				}
			}
			if i != len(events) {
				failure = errors.New("the run's own events are not all there")
			}
			return got
		}
		got := map[pawl.EventKind]int{}
		synctest.Test(tt, func(*testing.T) { got = count() })
		if failure != nil {
			t.Fatal(failure)
		}
		if panics > 0 { // the last events may be lost after the final report
			for k := range want {
				if d := want[k] - got[k]; d < 0 {
					t.Fatalf("%s: got %d of %d", k, got[k], want[k])
				}
			}
			return
		}
		if !maps.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}
