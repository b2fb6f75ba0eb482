package outside_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/tools/outside"
)

// Values behind aliases count each time, before any of them is made, so that a file of 1 KB cannot
// take memory. Control: few aliases are read.
func TestAliases(t *testing.T) {
	file := func(levels int) []byte {
		var b strings.Builder
		b.WriteString("tools:\n- command:\n    name: a\n    description: Does a.\n    run: [a]\n    input:\n      a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
		for i := 1; i <= levels; i++ {
			fmt.Fprintf(&b, "      a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
		}
		return []byte(b.String())
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := outside.Parse(file(7))
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "behind aliases") {
		t.Errorf("ten million values: %v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
		t.Errorf("the refusal took %d MB", took>>20)
	}
	if defs, err := outside.Parse(file(2)); err != nil || len(defs) != 1 {
		t.Errorf("a thousand values: %v", err)
	}
}
