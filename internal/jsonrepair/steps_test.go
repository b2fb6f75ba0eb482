package jsonrepair

import (
	"strings"
	"testing"
)

// Time is linear: a byte is examined at most a fixed number of times, for any text. The test is
// inside the package because it counts steps instead of seconds.
func TestLinear(t *testing.T) {
	const n, most = 100_000, 12
	for _, unit := range []string{"{", "[", `{"a":`, "[1,", `"`, `'`, `\`, `{"a":1}`, `{"a":1},`, "{a}", "{a", "/*", "//", "#", "+", `"a"+`, `["a" `, "``` ", "}", ")", ";", " ", "\n", "“", "x'x",
		`{\"a\":`, `'a'b`, "1 ", ".", "[{},", "{,", "é", "\ufeff", "\xff", `{"k":"v" `, "a:"} {
		for _, head := range []string{"", "{", `{"a":"`, `{"a":1}`, `{"a":1} x `, "x ", "[", `{\"`} {
			text := head + strings.Repeat(unit, n/len(unit))
			p := parser{text: []byte(text)}
			p.document()
			if p.steps > most*len(text) {
				t.Errorf("%q and %q again and again: %d looks at %d bytes", head, unit, p.steps, len(text))
			}
		}
	}
}
