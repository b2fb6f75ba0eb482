package main

import (
	"fmt"

	"github.com/pawl-go/pawl/internal/test/load"
	"github.com/pawl-go/pawl/internal/test/speed"
)

// row is one job that both sides do.
type row struct {
	Name    string
	Side    string // compared with the loop by hand: the name of a speed.Kind, or limit
	Wire    string // one of speed.Wires
	Stream  bool
	Job     load.Job
	Conc    int  // runs at once
	History int  // messages before the task
	Tools   int  // 0 means 10
	Once    bool // each run at once is made once: their memory together counts
	Quick   bool // stands for others, and is measured with -quick too
	Plain   bool // over plain HTTP/1.1, as local servers speak, and not over TLS with HTTP/2
}

// plainRun is the side of most rows: an agent with pawl's defaults.
const plainRun = "plain"

// rows returns the whole table: rounds × calls at 1, 64 and 512 at once, histories, tools and large
// arguments, over four APIs, whole and streamed; how cost grows with history over ten rounds; a
// crowd; and the runs with a journal, a server or telemetry. Arguments are streamed in 8 deltas,
// large ones in deltas of 64 bytes. Names end in the transport: tls is TLS with HTTP/2, http is
// plain HTTP/1.1.
func rows() []row {
	var all []row
	for _, wire := range speed.Wires {
		for _, stream := range []bool{false, true} {
			all = append(all, rowsOf(wire, stream)...)
		}
	}
	return all
}

func rowsOf(wire string, stream bool) (all []row) {
	mode := "whole"
	if stream {
		mode = "streamed"
	}
	add := func(r row, job string) {
		transport := "tls"
		if r.Plain {
			transport = "http"
		}
		if r.Side == "" {
			r.Side = plainRun
		} else {
			job += "-" + r.Side
		}
		if r.Job == (load.Job{}) {
			r.Job = load.Job{Rounds: 3, Calls: 5, Args: 200, Deltas: 8}
		}
		r.Name = fmt.Sprintf("%s/%s/%s/c%d/%s", wire, mode, job, r.Conc, transport)
		r.Wire, r.Stream = wire, stream
		all = append(all, r)
	}

	chat := wire == "chat"
	for _, shape := range []struct{ rounds, calls int }{{1, 1}, {3, 5}, {10, 1}, {1, 20}} {
		job := load.Job{Rounds: shape.rounds, Calls: shape.calls, Args: 200, Deltas: 8}
		for _, conc := range []int{1, 64, 512} {
			quick := conc == 64 && (chat || shape.rounds == 3)
			add(row{Job: job, Conc: conc, Quick: quick}, fmt.Sprintf("%dx%d", shape.rounds, shape.calls))
		}
	}
	for _, n := range []int{10, 200, 1000} {
		add(row{Conc: 8, History: n, Quick: chat && n == 1000}, fmt.Sprintf("history%d", n))
	}
	for _, n := range []int{100, 1000} {
		add(row{Conc: 8, Tools: n, Quick: chat && n == 1000}, fmt.Sprintf("tools%d", n))
	}
	for _, kib := range []int{16, 64, 256} {
		job := load.Job{Rounds: 1, Calls: 1, Args: kib << 10, Deltas: kib << 10 / 64}
		add(row{Job: job, Conc: 8, Quick: chat && kib == 256}, fmt.Sprintf("args%dKiB", kib))
	}
	if !chat {
		return all
	}
	for _, n := range []int{10, 200} {
		add(row{Job: load.Job{Rounds: 10, Calls: 1, Args: 64, Deltas: 8}, Conc: 8, History: n}, fmt.Sprintf("10x1-history%d", n))
	}
	add(row{Job: load.Job{Rounds: 1, Calls: 1, Args: 64, Deltas: 8}, Conc: 10_000, Once: true}, "1x1")
	add(row{Conc: 64, Quick: true, Plain: true}, "3x5")
	add(row{Conc: 64, Quick: true, Side: limit}, "3x5")
	for _, k := range speed.Kinds {
		if k.Name != plainRun && (stream || !k.Streams) {
			add(row{Conc: 64, Quick: true, Side: k.Name}, "3x5")
		}
	}
	return all
}
