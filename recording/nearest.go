package recording

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/text"
)

// miss finds the nearest recorded request: of those with the same address, the one with the fewest
// differences. The caller holds p.mu.
func (p *Player) miss(now Request, f form, same int) *Miss {
	m := &Miss{Number: p.asked, Request: now, Same: same}
	if same > 0 {
		return m
	}
	known := map[string]bool{}
	for i := range p.exchanges {
		known[p.forms[i].to] = true
		if p.forms[i].to != f.to {
			continue
		}
		d := differences(p.exchanges[i].Request.Body, now.Body)
		if m.Nearest == 0 || len(d) < len(m.Differs) || len(d) == len(m.Differs) && p.played[m.Nearest-1] &&
			!p.played[i] {
			m.Nearest, m.Differs = i+1, d
		}
	}
	if m.Nearest == 0 {
		m.Known = slices.Sorted(maps.Keys(known))
	}
	return m
}

// differences are the places in which two bodies differ.
func differences(recorded, now []byte) []Difference {
	a, errA := decode(recorded)
	b, errB := decode(now)
	if errA != nil || errB != nil {
		return []Difference{{"", quoted(string(recorded)), quoted(string(now))}}
	}
	var out []Difference
	walk("", a, b, &out)
	return out
}

// absent stands for a missing value.
type absent struct{}

func walk(path string, a, b any, out *[]Difference) {
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			names := maps.Clone(x)
			maps.Copy(names, y)
			for _, name := range slices.Sorted(maps.Keys(names)) {
				walk(strings.TrimPrefix(path+"."+name, "."), member(x, name), member(y, name), out)
			}
			return
		}
	case []any:
		if y, ok := b.([]any); ok {
			for i := range max(len(x), len(y)) {
				walk(fmt.Sprintf("%s[%d]", path, i), item(x, i), item(y, i), out)
			}
			return
		}
	}
	if s, t := rendered(a), rendered(b); s != t {
		*out = append(*out, Difference{path, s, t})
	}
}

func member(m map[string]any, name string) any {
	if v, ok := m[name]; ok {
		return v
	}
	return absent{}
}

func item(l []any, i int) any {
	if i < len(l) {
		return l[i]
	}
	return absent{}
}

func rendered(v any) string {
	if v == (absent{}) {
		return ""
	}
	b, err := plainJSON(v, "")
	if err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(string(b), "\n")
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// parting cuts two values to what stands around the place where they part.
func parting(a, b string) (string, string) {
	from := text.Parting(a, b, 20)
	return cut(a, from), cut(b, from)
}

func cut(s string, from int) string {
	const width = 80
	switch {
	case s == "":
		return "nothing"
	case len(s) <= width:
		return s
	}
	to := text.RuneAfter(s, min(len(s), from+width))
	out := s[from:to]
	if from > 0 {
		out = "…" + out
	}
	if to < len(s) {
		out += "…"
	}
	return out
}
