package code

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"
)

// started returns a Python interpreter and a channel that receives each child as it starts. It
// returns nil if Python is not available here.
func started(t *testing.T, opts *PythonOptions) (*PythonInterpreter, chan *child) {
	t.Helper()
	p := Python(opts)
	t.Cleanup(func() { p.Close() })
	if err := p.Check(); err != nil {
		t.Skip(err)
	}
	all, start := make(chan *child, 100), p.pool.start
	p.pool.start = func() (*child, error) {
		c, err := start()
		if err == nil {
			all <- c
		}
		return c, err
	}
	return p, all
}

func runOne(p *PythonInterpreter, code string) ended {
	return p.run(context.Background(), program{code: code, time: time.Minute, output: defaultOutput}, &host{})
}

// A waiting child serves the next program and no other. Another child is started in its place.
func TestPoolServesOnce(t *testing.T) {
	p, all := started(t, nil)
	// A program that begins before the child is on offer starts a child of its own. With a buffer,
	// the test sees when the child is on offer.
	p.pool.offers = make(chan *child, 1)
	onOffer := func() {
		for len(p.pool.offers) == 0 {
			runtime.Gosched()
		}
	}

	p.Warm()
	p.Warm() // a child exists already, or is being started
	first := <-all
	onOffer()
	if e := runOne(p, "set_result(1)"); e.outcome != ok {
		t.Fatalf("got %+v", e)
	}
	<-first.gone
	second := <-all
	onOffer()
	if e := runOne(p, "set_result(2)"); e.outcome != ok || string(e.result) != "2" {
		t.Fatalf("got %+v", e)
	}
	<-second.gone
	<-all
	if len(all) != 0 {
		t.Errorf("%d more children than programs and one", len(all))
	}
	(<-p.pool.offers).stop()
}

// A child that waits too long is ended, and is not replaced before the next program.
func TestPoolExpires(t *testing.T) {
	p, all := started(t, &PythonOptions{Idle: time.Millisecond, Warm: 3})
	p.Warm()
	for range 3 {
		<-(<-all).gone
	}
	if len(all) != 0 {
		t.Error("a child was replaced")
	}
	if e := runOne(p, "set_result(1)"); e.outcome != ok {
		t.Errorf("got %+v", e)
	}
}

// A child that was killed while it waited is skipped.
func TestPoolPassesOverTheDead(t *testing.T) {
	p, all := started(t, nil)
	p.Warm()
	c := <-all
	c.proc.Kill()
	<-c.gone
	if e := runOne(p, "set_result(1)"); e.outcome != ok {
		t.Errorf("got %+v", e)
	}
}

// Close ends waiting and running children while other goroutines keep calling.
func TestPoolCloses(t *testing.T) {
	p, all := started(t, &PythonOptions{Warm: 2})
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() { runOne(p, "while True: pass") })
	}
	for range 4 {
		<-all
	}
	p.Close()
	p.Close()
	wait.Wait()
	for len(all) > 0 {
		<-(<-all).gone
	}
	if e := runOne(p, "x = 1"); e.outcome != refused {
		t.Errorf("after Close: got %+v", e)
	}
}
