package main

import "fmt"

// row is one job that both sides do.
type row struct {
	Name   string
	Wire   string // one of wires
	Stream bool
	Model  string // the server's script
	Conc   int    // runs at once
	Hist   int    // messages before the task
	Once   bool   // each run at once is made once: their memory together counts
	Quick  bool   // stands for others, and is measured with -quick too
	Plain  bool   // over plain HTTP/1.1, as local servers speak, and not over TLS with HTTP/2
}

// wires are the APIs, with the loop by hand for each.
var wires = []struct{ name, raw string }{
	{"chat", "raw"}, {"responses", "raw-responses"}, {"anthropic", "raw-anthropic"}, {"gemini", "raw-gemini"},
}

// rows returns the whole table: rounds × calls at 1, 64 and 512 at once, histories, and large
// arguments, over four APIs, whole and streamed; how cost grows with history over ten rounds; and a
// crowd. Arguments are streamed in deltas of 64 bytes. Names end in the transport: tls is TLS with
// HTTP/2, http is plain HTTP/1.1.
func rows() []row {
	var all []row
	for _, wire := range wires {
		for _, stream := range []bool{false, true} {
			mode := "whole"
			if stream {
				mode = "streamed"
			}
			add := func(r row, job, model string) {
				transport := "tls"
				if r.Plain {
					transport = "http"
				}
				r.Name = fmt.Sprintf("%s/%s/%s/c%d/%s", wire.name, mode, job, r.Conc, transport)
				r.Wire, r.Stream, r.Model = wire.name, stream, model
				all = append(all, r)
			}
			chat := wire.name == "chat"
			for _, shape := range []struct{ rounds, calls int }{{1, 1}, {3, 5}, {10, 1}, {1, 20}} {
				for _, conc := range []int{1, 64, 512} {
					quick := conc == 64 && (chat || shape.rounds == 3)
					add(row{Conc: conc, Quick: quick}, fmt.Sprintf("%dx%d", shape.rounds, shape.calls),
						fmt.Sprintf("mock-r%d-n%d-a64-t8", shape.rounds, shape.calls))
				}
			}
			for _, hist := range []int{10, 50, 200} {
				add(row{Conc: 64, Hist: hist}, fmt.Sprintf("history%d", hist), "mock-r3-n5-a64-t8")
			}
			for _, kib := range []int{16, 64, 256} {
				add(row{Conc: 8, Quick: chat}, fmt.Sprintf("args%dKiB", kib), fmt.Sprintf("mock-r1-n1-a%d-t%d", kib<<10, kib<<10/64))
			}
			if chat {
				for _, hist := range []int{10, 200} {
					add(row{Conc: 8, Hist: hist, Quick: true}, fmt.Sprintf("10x1-history%d", hist), "mock-r10-n1-a64-t8")
				}
				add(row{Conc: 10_000, Once: true}, "1x1", "mock-r1-n1-a64-t8")
				add(row{Conc: 64, Quick: true, Plain: true}, "3x5", "mock-r3-n5-a64-t8")
			}
		}
	}
	return all
}
