package dialect

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// pairs is the comparison of all pairs, which alike must agree with.
func pairs(tools []Tool) (out []string) {
	set := func(t Tool) []string {
		words := slices.DeleteFunc(wordsOf(t.Description), func(w string) bool { return slices.Contains(filler, w) })
		slices.Sort(words)
		return slices.Compact(words)
	}
	for i := range tools {
		for j := range i {
			a, b := set(tools[j]), set(tools[i])
			x, y := only(a, b), only(b, a)
			common := len(a) - len(x)
			if len(a) > 0 && len(x) == 0 && len(y) == 0 || common >= 5 && 10*common >= 8*(common+len(x)+len(y)) {
				out = append(out, tools[j].Name+" "+tools[i].Name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// The index finds the pairs that a comparison of all pairs finds.
func TestAlikeFindsAllPairs(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 300 {
		var tools []Tool
		base := make([]string, 4+rng.IntN(16))
		for i := range base {
			base[i] = fmt.Sprintf("word%d", rng.IntN(40))
		}
		for i := range 12 {
			words := slices.Clone(base)
			for range rng.IntN(4) {
				words[rng.IntN(len(words))] = fmt.Sprintf("word%d", rng.IntN(40))
			}
			tools = append(tools, Tool{Name: fmt.Sprintf("t%02d", i), Description: strings.Join(words[rng.IntN(3):], " ")})
		}
		want := pairs(tools)
		found += len(want)
		warned, _ := alike(tools)
		groups := map[string][]string{} // by the first name, names of equal descriptions
		for _, w := range warned {
			if strings.Contains(w.Text, "say the same") {
				groups[w.Tools[0]] = w.Tools
			}
		}
		all := func(name string) []string {
			if g, ok := groups[name]; ok {
				return g
			}
			return []string{name}
		}
		var got []string
		for _, w := range warned {
			if strings.Contains(w.Text, "say the same") {
				for i, a := range w.Tools {
					for _, b := range w.Tools[i+1:] {
						got = append(got, a+" "+b)
					}
				}
				continue
			}
			for _, a := range all(w.Tools[0]) {
				for _, b := range all(w.Tools[1]) {
					got = append(got, min(a, b)+" "+max(a, b))
				}
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
	if found < 1000 {
		t.Errorf("only %d pairs are alike", found)
	}
}

// Sixteen times as many tools take sixteen times as many steps, also if all descriptions are alike.
func TestAlikeIsLinear(t *testing.T) {
	for name, text := range map[string]func(i int) string{
		"apart": func(i int) string {
			return fmt.Sprintf("Does thing%d with part%d of item%d in room%d near town%d of land%d", i, i, i, i, i, i)
		},
		"alike": func(i int) string {
			return fmt.Sprintf("Lists all open orders of customer%d newest first twenty each page sorted", i)
		},
		"shared words": func(i int) string {
			return fmt.Sprintf("Lists all open orders%d customers%d newest first twenty pages sorted", i%7, i%11)
		},
		"same": func(int) string { return "Lists all open orders of one customer" },
	} {
		count := func(n int) int {
			var tools []Tool
			for i := range n {
				tools = append(tools, Tool{Name: fmt.Sprintf("t%d", i), Description: text(i)})
			}
			_, steps := alike(tools)
			return steps
		}
		small, large := count(100), count(1600)
		if large > 24*small {
			t.Errorf("%s: %d steps for 100 tools, %d for 1,600", name, small, large)
		}
	}
}
