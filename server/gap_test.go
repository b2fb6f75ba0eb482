package server_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// talker returns an agent that emits much text once gate is closed.
func talker(words int, gate <-chan struct{}) *pawl.Agent {
	return &pawl.Agent{Name: "talker", Model: script.New(script.Func(func(*llm.Request) script.Turn {
		<-gate
		return script.Say(strings.Repeat("A word, and another one. ", words))
	}))}
}

// open returns a closed channel.
func open() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func countTexts(all []sent) (texts, lost, gaps int) {
	for _, e := range all {
		switch e.event.Kind {
		case pawl.EventText:
			texts++
		case pawl.EventGap:
			gaps++
			for _, n := range e.event.Lost {
				lost += n
			}
		}
	}
	return texts, lost, gaps
}

func lifecycle(all []sent) string {
	var b strings.Builder
	for _, e := range all {
		if e.event.Kind != pawl.EventText && e.event.Kind != pawl.EventGap {
			b.WriteString(e.name + " ")
		}
	}
	return b.String()
}

// A late reader misses fragments and gets their number, from any position. It misses nothing else.
func TestGapsAddUp(t *testing.T) {
	watch := func(fragments int) (*serving, []sent) {
		v := serve(t, func(o *options) { o.Agents, o.Limits.Fragments = []*pawl.Agent{talker(800, open())}, fragments })
		v.do("POST", "/v1/runs", `{"id":"r","input":"talk","wait":true}`, 201, nil)
		return v, v.events(v.request("GET", "/v1/runs/r/events", "").Body, nil)
	}
	_, whole := watch(64 << 20)
	total, lost, _ := countTexts(whole)
	if total < 60 || lost != 0 {
		t.Fatalf("%d texts, %d lost: there is nothing to drop", total, lost)
	}
	v, part := watch(5000)
	texts, lost, gaps := countTexts(part)
	if texts+lost != total || gaps != 1 || texts > 30 || texts == 0 {
		t.Errorf("%d texts and %d lost in %d gaps, want %d in all", texts, lost, gaps, total)
	}
	if got, want := lifecycle(part), lifecycle(whole); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// From each position of the whole stream the rest adds up.
	for n := 1; n < len(whole); n += 3 {
		epoch, _, _ := strings.Cut(part[0].id, "-")
		seen, _, _ := countTexts(whole[:n])
		rest := v.events(v.request("GET", "/v1/runs/r/events", "", "Last-Event-ID", fmt.Sprintf("%s-%d", epoch, n)).Body, nil)
		texts, lost, _ := countTexts(rest)
		if seen+texts+lost != total {
			t.Errorf("after %d: %d seen, %d to come and %d lost, want %d in all", n, seen, texts, lost, total)
		}
	}
}

// Many runs at once and more readers, some of which are slow and some of which vanish: no lifecycle
// event is lost, the drop is reported, and memory is bounded.
func TestManyRunsAndReaders(t *testing.T) {
	const words, bound = 800, 10_000
	runs, readers := soak.N(40, 200), soak.N(100, 500)
	whole := serve(t, func(o *options) { o.Agents, o.Limits.Fragments = []*pawl.Agent{talker(words, open())}, 64<<20 })
	whole.do("POST", "/v1/runs", `{"id":"r","input":"talk","wait":true}`, 201, nil)
	model := whole.events(whole.request("GET", "/v1/runs/r/events", "").Body, nil)
	want := lifecycle(model)
	total, _, _ := countTexts(model)

	gate := make(chan struct{})
	v := serve(t, func(o *options) { o.Agents, o.Limits.Fragments = []*pawl.Agent{talker(words, gate)}, bound })
	before := heap()
	began := time.Now()
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() { v.do("POST", "/v1/runs", fmt.Sprintf(`{"id":"r%d","input":"talk"}`, i), 201, nil) })
	}
	wg.Wait()
	started := time.Since(began)

	var mu sync.Mutex
	var there, fast sync.WaitGroup
	ended, vanished, lostAll, gapsAll := 0, 0, 0, 0
	late := make(chan struct{}) // the slow readers continue after the others have finished
	there.Add(readers)
	for i := range readers {
		kind := i % 10
		if kind < 8 {
			fast.Add(1)
		}
		wg.Go(func() {
			res := v.request("GET", fmt.Sprintf("/v1/runs/r%d/events", i%runs), "")
			seen := 0
			all := v.events(res.Body, func(sent) bool {
				if seen++; seen == 1 {
					there.Done()
					if kind == 9 {
						<-late
					}
				}
				return kind == 8 && seen == 8
			})
			if kind < 8 {
				fast.Done()
			}
			texts, lost, gaps := countTexts(all)
			mu.Lock()
			defer mu.Unlock()
			lostAll += lost
			gapsAll += gaps
			if kind == 8 {
				vanished++
				return
			}
			ended++
			if got := lifecycle(all); got != want {
				t.Errorf("reader %d: got %s, want %s", i, got, want)
			}
			if texts+lost != total {
				t.Errorf("reader %d: %d texts and %d lost, want %d", i, texts, lost, total)
			}
		})
	}
	there.Wait()
	watching := time.Since(began)
	close(gate)
	fast.Wait()
	noticed := time.Since(began)
	close(late)
	wg.Wait()
	after := heap()
	t.Logf("%d runs started in %v, %d readers there after %v; the runs talk, and the fast readers are done after %v more; %d read to the end, %d vanished; %d gaps report %d dropped fragments (%d in a run); heap %d MiB before, %d MiB after",
		runs, started.Round(time.Millisecond), readers, watching.Round(time.Millisecond),
		(noticed - watching).Round(time.Millisecond), ended, vanished, gapsAll, lostAll, total, before>>20, after>>20)
	if ended+vanished != readers || vanished != readers/10 {
		t.Errorf("%d to the end, %d vanished, of %d", ended, vanished, readers)
	}
	if after > before+150<<20 {
		t.Errorf("the heap grew from %d to %d MiB", before>>20, after>>20)
	}
}
