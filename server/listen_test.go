package server_test

import (
	"context"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
)

type listening struct {
	addr  string
	world *world
	stop  func() // stops the server, and returns when it has stopped
}

// listen serves as the command does.
func listen(t *testing.T, change func(*options)) *listening {
	t.Helper()
	return listenOn(t, change, func(l net.Listener) net.Listener { return l })
}

// listenOn is listen with another listener.
func listenOn(t *testing.T, change func(*options), wrap func(net.Listener) net.Listener) *listening {
	t.Helper()
	w := &world{gate: make(chan struct{})}
	o := options{Agents: []*pawl.Agent{clerk(w)}, Journal: new(store.MemoryJournal)}
	if change != nil {
		change(&o)
	}
	s, err := newServer(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Serve(ctx, wrap(l)); err != nil {
			t.Error(err)
		}
	}()
	stop := func() { cancel(); <-done }
	t.Cleanup(stop)
	return &listening{l.Addr().String(), w, stop}
}

// Runs without a process are resumed without a request, also if the answer arrived while no server
// was running.
func TestServeTakesUpWhatWasLeft(t *testing.T) {
	journal := new(store.MemoryJournal)
	first := serve(t, func(o *options) { o.Journal = journal })
	first.do("POST", "/v1/runs", `{"id":"long","input":"wait"}`, 201, nil)
	if err := first.s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := &world{gate: make(chan struct{})}
	close(w.gate)
	listen(t, func(o *options) {
		o.Journal, o.Times.Recover, o.Agents = journal, 20*time.Millisecond, []*pawl.Agent{clerk(w)}
	})
	deadline := time.After(3 * time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		run, err := journal.JournalRun(t.Context(), store.Scope{}, "long")
		if err != nil {
			t.Fatal(err)
		}
		if run.State == store.JournalOver {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("it was not resumed: %+v", run)
		}
	}
}

// heap returns the size of live objects after a collection.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
