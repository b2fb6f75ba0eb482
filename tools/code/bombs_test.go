package code_test

import (
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/test/machine"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/tools/code"
)

// Programs that would exhaust memory, time or the stack of this process are ended by their limits.
// Their memory stays within the limit that EmbeddedOptions states. The last rows show that the same
// programs pass without the limit.
func TestBombs(t *testing.T) {
	soak.Sequential(t)
	tool := newTool(t, code.Embedded(nil), nil)
	const nest = "x = [1]\nfor i in range(100):\n  x = [x] * 1000\n"
	const tuples = "x = (1,)\nfor i in range(100):\n  x = (x,) * 1000\n"
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // so that the heap holds live objects only
	peak := watchHeap()
	for i, tt := range []struct{ name, code, outcomes string }{
		{"text doubles", "x = 'a'\nwhile True:\n  x += x", "memory"},
		{"text times", "x = 'a' * 1000000000", "memory"},
		{"times text", "x = 100000000000000000000 * 'a'", "memory"},
		{"kept text", "l = []\nwhile True:\n  l.append('a' * 100000)", "memory"},
		{"text of parts", "l = []\nwhile True:\n  l.append('%s%s' % ('a' * 1000, 'b'))", "memory"},
		{"join", "x = ('a' * 1000000).join(['b'] * 1000)", "memory"},
		{"replace", "x = ('a' * 100000).replace('a', 'b' * 100000)", "memory"},
		{"format", "x = ('{0}' * 10000).format('a' * 100000)", "memory"},
		{"format by name", "x = ('{a}' * 10000).format(a='a' * 100000)", "memory"},
		{"method kept", "f = ('a' * 1000).join\nl = []\nwhile True:\n  l.append(f(['b'] * 1000))", "memory"},
		{"method by name", "f = getattr('a' * 100000, 'replace')\nx = f('a', 'b' * 100000)", "memory"},
		{"split", "x = ('a ' * 4000000).split(' ')", "memory"},
		{"upper", "l = []\nwhile True:\n  l.append(('a' * 1000).upper())", "memory"},
		{"list times", "x = [1] * 1000000000", "memory"},
		{"list of range", "x = list(range(100000000000))", "memory"},
		{"tuple of range", "x = tuple(range(100000000000))", "memory"},
		{"sorted range", "x = sorted(range(100000000000))", "memory"},
		{"set of range", "x = set(range(100000000000))", "memory"},
		{"enumerated range", "x = enumerate(range(100000000000))", "memory"},
		{"zipped range", "x = zip(range(100000000000), range(100000000000))", "memory"},
		{"largest of a range", "x = max(range(100000000000000))", "memory"},
		{"any of a range", "x = any(range(0, 100000000000000, 100000000000000) or range(100000000000))", "no_result memory"},
		{"all of a range", "x = all(range(1, 100000000000000))", "memory"},
		{"sum of a range", "x = sum(range(100000000000000))", "memory"},
		{"mapped range", "x = map(lambda x: x, range(100000000000000))", "memory steps"},
		{"list plus range", "x = []\nx += range(100000000000)", "memory"},
		{"extend by range", "x = []\nx.extend(range(100000000000))", "memory"},
		{"item plus range", "x = {'a': []}\nx['a'] += range(100000000000)", "memory"},
		{"range as arguments", "def f(*a):\n  pass\nf(*range(100000000000))", "memory"},
		{"text as elements", "x = list(('a' * 10000000).elems())", "memory"},
		{"list with itself", "x = [1]\nwhile True:\n  x += x", "memory"},
		{"extend by itself", "x = [1]\nwhile True:\n  x.extend(x)", "memory"},
		{"slices", "x = [0] * 100000\nl = []\nwhile True:\n  l.append(x[1:])", "memory"},
		{"copies", "x = [0] * 100000\nl = []\nwhile True:\n  l.append(x.copy())", "memory"},
		{"dicts", "l = []\nwhile True:\n  l.append({})", "memory steps"},
		{"dict functions", "l = []\nwhile True:\n  l.append(dict())", "memory steps"},
		{"dict grows", "d = {}\ni = 0\nwhile True:\n  d[i] = i\n  i += 1", "memory steps"},
		{"dicts joined", "d = {i: i for i in range(10000)}\nl = []\nwhile True:\n  l.append(d | d)", "memory"},
		{"dict items", "d = {i: i for i in range(10000)}\nl = []\nwhile True:\n  l.append(d.items())", "memory"},
		{"small lists", "l = []\nwhile True:\n  l.append([1])", "memory steps"},
		{"tuples", "l = []\nwhile True:\n  l.append((1, 2, 3))", "memory steps"},
		{"functions", "l = []\nwhile True:\n  l.append(lambda: 1)", "memory steps"},
		{"comprehension", "x = [i for i in range(100000000000)]", "memory steps"},
		{"sets joined", "s = set(range(10000))\nl = []\nwhile True:\n  l.append(s | s)", "memory"},
		{"numbers times", "x = 7\nwhile True:\n  x = x * x", "error"},
		{"numbers shifted", "x = 1\nwhile True:\n  x = x << 500", "error memory steps"},
		{"negated numbers", "x = pow(2, 200000)\nl = []\nwhile True:\n  l.append(-x)", "memory"},
		{"powers", "x = pow(7, 1000000000)", "error"},
		{"powers of powers", "x = pow(pow(7, 10000), 10000)", "error"},
		{"digits", "x = int('9' * 5000000)", "error"},
		{"number as text", "x = pow(2, 200000)\nl = []\nwhile True:\n  l.append(str(x))", "memory"},
		{"nested, written", nest + "s = str(x)", "error"},
		{"nested, printed", nest + "print(x)", "error"},
		{"nested, formatted", nest + "s = '%s' % x", "error"},
		{"nested, told", nest + "set_result(x)", "error"},
		{"nested, as arguments", nest + "call_tool('add', {'a': x})", "error"},
		{"nested, as JSON", nest + "json.dumps(x)", "error"},
		{"nested, compared", nest + "y = x == x", "error"},
		{"nested, looked for", nest + "y = x in [x]", "error"},
		{"nested, in a list", nest + "y = [x].index(x)", "error"},
		{"nested, as an error", nest + "fail(x)", "error"},
		{"tuples as a key", tuples + "d = {x: 1}", "error"},
		{"tuples as an index", tuples + "d = {}\nd[x] = 1", "error"},
		{"tuples got", tuples + "d = {}\nd.get(x)", "error"},
		{"tuples in a set", tuples + "s = set([x])", "error"},
		{"deep list, written", "x = []\nfor i in range(300000):\n  x = [x]\ns = str(x)", "error"},
		{"deep list, told", "x = []\nfor i in range(300000):\n  x = [x]\nset_result(x)", "error"},
		{"list in itself", "x = []\nx.append(x)\nset_result(x)", "error"},
		{"deep JSON", "x = json.loads('[' * 30000 + ']' * 30000)", "error"},
		{"recursion", "def f():\n  return f()\nf()", "error"},
		{"lambda recursion", "f = lambda g: g(g)\nf(f)", "error"},
		{"recursion by sorted", "def f(x):\n  return sorted([1], key=f)\nf(1)", "error"},
		{"recursion by map", "def f(x):\n  return map(f, [1])\nf(1)", "error"},
		{"brackets", strings.Repeat("(", 30000), "syntax"},
		{"brackets closed", "x = " + strings.Repeat("[", 20000) + strings.Repeat("]", 20000), "no_result error syntax"},
		{"nots", "x = " + strings.Repeat("not ", 10000) + "1", "no_result syntax"},
		{"prints", "while True:\n  print('a' * 1000)", "memory steps"},
		{"loop of numbers", "i = 0\nwhile True:\n  i += 1", "steps"},
	} {
		if i%soak.N(3, 1) != 0 {
			continue
		}
		begun := machine.CPU()
		_, d := run(t, tool, newWorld(), object{"code": tt.code, "timeout": 300})
		if !strings.Contains(" "+tt.outcomes+" ", " "+d.Outcome+" ") {
			t.Errorf("%s: got %s: %s", tt.name, d.Outcome, d.Error)
		}
		if took := machine.CPU() - begun; took > 15*time.Second {
			t.Errorf("%s: took %s of processor time", tt.name, took)
		}
	}
	most := peak() >> 20
	t.Logf("heap at most %d MiB", most)
	if most > 300 {
		t.Errorf("the heap grew to %d MiB", most)
	}
	free := newTool(t, code.Embedded(&code.EmbeddedOptions{Memory: 1 << 40, Steps: 1 << 40}), nil)
	for _, text := range []string{"x = 'a' * 100000000", "x = [0] * 10000000", "x = list(range(10000000))", "i = 0\nwhile i < 3000000:\n  i += 1"} {
		if _, d := run(t, free, newWorld(), object{"code": text, "timeout": 60}); d.Outcome != "no_result" {
			t.Errorf("without the bound: %s: got %s %s", text, d.Outcome, d.Error)
		}
		if _, d := run(t, tool, newWorld(), object{"code": text, "timeout": 60}); d.Outcome != "memory" && d.Outcome != "steps" {
			t.Errorf("with the bound: %s: got %s %s", text, d.Outcome, d.Error)
		}
	}
}

// watchHeap measures the heap until the returned function is called, which returns the peak.
func watchHeap() func() uint64 {
	stop, most := make(chan struct{}), make(chan uint64)
	go func() {
		s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		var peak uint64
		for {
			metrics.Read(s)
			peak = max(peak, s[0].Value.Uint64())
			select {
			case <-tick.C:
			case <-stop:
				most <- peak
				return
			}
		}
	}()
	return func() uint64 {
		close(stop)
		return <-most
	}
}
