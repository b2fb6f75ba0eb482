package main

import "fmt"

// row is one job that both sides do.
type row struct {
	Name   string
	Wire   string // chat or responses
	Stream bool
	Model  string // the server's script
	Conc   int    // runs at once
	Hist   int    // messages before the task
}

// rows returns the whole table: rounds × calls at 1, 64 and 512 at once, histories, and large arguments, over both APIs, whole and
// streamed. Arguments are streamed in deltas of 64 bytes.
func rows() []row {
	var all []row
	add := func(wire string, stream bool, conc, hist int, job, model string) {
		mode := "whole"
		if stream {
			mode = "streamed"
		}
		all = append(all, row{
			Name: fmt.Sprintf("%s/%s/%s/c%d", wire, mode, job, conc),
			Wire: wire, Stream: stream, Model: model, Conc: conc, Hist: hist,
		})
	}
	for _, wire := range []string{"chat", "responses"} {
		for _, stream := range []bool{false, true} {
			for _, shape := range []struct{ rounds, calls int }{{1, 1}, {3, 5}, {10, 1}, {1, 20}} {
				for _, conc := range []int{1, 64, 512} {
					add(wire, stream, conc, 0, fmt.Sprintf("%dx%d", shape.rounds, shape.calls),
						fmt.Sprintf("mock-r%d-n%d-a64-t8", shape.rounds, shape.calls))
				}
			}
			for _, hist := range []int{10, 50, 200} {
				add(wire, stream, 64, hist, fmt.Sprintf("history%d", hist), "mock-r3-n5-a64-t8")
			}
			if stream {
				for _, kib := range []int{16, 64, 256} {
					add(wire, stream, 8, 0, fmt.Sprintf("args%dKiB", kib), fmt.Sprintf("mock-r1-n1-a%d-t%d", kib<<10, kib<<10/64))
				}
			}
		}
	}
	return all
}
