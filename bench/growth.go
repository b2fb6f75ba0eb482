package main

import (
	"fmt"
	"io"

	"github.com/pawl-go/pawl/internal/test/speed"
)

// growth prints how cost grows with the history over ten rounds and with the size of arguments,
// and how much memory a crowd of runs holds. It leaves out figures whose rows were not measured.
// The rows are measured one after the other, so other work of the machine makes these figures
// rougher than the ratios.
func growth(out io.Writer, all []comparison) {
	for _, wire := range speed.Wires {
		for _, mode := range []string{"whole", "streamed"} {
			at := func(job string) *comparison { return find(all, wire+"/"+mode+"/"+job+"/tls") }
			if few, many := at("10x1-history10/c8"), at("10x1-history200/c8"); few != nil && many != nil {
				fmt.Fprintf(out, "%s, %s: a history of 200 messages costs %.1f times one of 10 over ten rounds (by hand %.1f)\n", wire, mode,
					many.Ratios.PawlCPU/few.Ratios.PawlCPU, many.Ratios.HandCPU/few.Ratios.HandCPU)
			}
			small, middling, large := at("args16KiB/c8"), at("args64KiB/c8"), at("args256KiB/c8")
			if small != nil && middling != nil && large != nil {
				slope := func(cpu func(ratios) float64) float64 {
					s, m, l := cpu(small.Ratios), cpu(middling.Ratios), cpu(large.Ratios)
					return (l - m) / (256 - 64) / ((m - s) / (64 - 16))
				}
				fmt.Fprintf(out, "%s, %s: a KiB of arguments costs from 64 to 256 KiB %.2f times what it costs from 16 to 64 KiB (by hand %.2f)\n", wire, mode,
					slope(func(r ratios) float64 { return r.PawlCPU }),
					slope(func(r ratios) float64 { return r.HandCPU }))
			}
			if crowd := at("1x1/c10000"); crowd != nil {
				q := crowd.Ratios
				fmt.Fprintf(out, "%s, %s: 10,000 runs at once hold %.0f KiB each (by hand %.0f), and the slowest hundredth takes %.1f times the median\n",
					wire, mode, q.PawlKiB, q.HandKiB, q.Tail)
			}
		}
	}
}
