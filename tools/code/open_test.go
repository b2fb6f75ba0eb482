package code

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Any text given as a program ends with one of the outcomes, within a short time.
func FuzzEmbedded(f *testing.F) {
	for _, s := range []string{"x = 1", "def f(*a, **k):\n  return a\nset_result(f(1, *[2], b=3, **{'c': 4}))", "a = [1]\na[0] += 1\na[0:1]\n-a[0]\n", "[x for x in 'ab' if x for y in [1]]", "{1: 2}[1]\nlambda x=1: x",
		"call_tool('x')", "load('a', 'b')", "(a, b) = (1, 2)\nfor i, (j, k) in [(1, (2, 3))]:\n  pass", "print(json.dumps({'a': 1}, indent=2))", "'%s' % 1\n'a{}'.format(1)", "if 1:\n  pass\nelif 2:\n  pass\nelse:\n  pass",
		"x = 1 if 2 else 3", "while True:\n  break", "set_result(sum([1, 2]))\nround(1.5)\npow(2, 3)\ndivmod(7, 2)", "((((", "\x00", "x = 'é'[0]", "not not 1", "f = getattr('a', 'join')\nf(['b'])", "\"+\"(1)"} {
		f.Add(s)
	}
	e := Embedded(&EmbeddedOptions{Steps: 20000, Memory: 1 << 20})
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > maxCode {
			return
		}
		begun := time.Now()
		got := e.run(context.Background(), program{code: text, time: 10 * time.Second, output: 4096}, &host{})
		if took := time.Since(begun); took > 8*time.Second {
			t.Errorf("%q took %s", text, took)
		}
		if !slices.Contains([]outcome{ok, syntax_, failed, steps, memory, tooLarge, killed}, got.outcome) {
			t.Errorf("%q: got %s: %s", text, got.outcome, got.message)
		}
		if got.outcome == failed && strings.Contains(got.message, "The interpreter failed") {
			t.Errorf("%q makes the interpreter panic", text)
		}
	})
}

// Counting does not change the meaning of programs: each program gives the same result with the
// counting functions and without them.
func TestCountedMeansTheSame(t *testing.T) {
	e := Embedded(nil)
	for _, text := range []string{
		"n = [0]\ndef f():\n  n[0] += 1\n  return 0\na = [1, 2]\na[f()] += 5\nr = [a, n]",
		"log = []\ndef f(x):\n  log.append(x)\n  return x\nr = [f(1) + f(2) * f(3), f(4) < f(5), [f(6), f(7)][f(0)], log]",
		"log = []\ndef f(x):\n  log.append(x)\n  return x\nd = {f('a'): f(1), f('b'): f(2)}\nd[f('a')] += f(3)\nr = [d, log]",
		"a = [1]\nb = a\na += [2]\na.append(3)\nr = [a, b]",
		"a = [1]\nb = a\na = a + [2]\nr = [a, b]",
		"a = (1,)\nb = a\na += (2,)\nr = [a, b]",
		"d = {'x': 1}\ne = d\nd |= {'y': 2}\nr = [d, e, d | {'z': 3}]",
		"x = 5\nx -= 2\nx *= 4\nx //= 3\nx %= 3\nx <<= 4\nx |= 1\nx ^= 3\nx &= 254\nx >>= 1\nr = x",
		"def f(a, b=2, *c, d=4, **e):\n  return [a, b, c, d, e]\nr = [f(1), f(1, 3, 5, d=6, g=7), f(*[1, 2, 3], **{'h': 8})]",
		"f = lambda a, b=1: a + b\nr = [f(1), f(1, b=5), (lambda: 7)()]",
		"r = [x * y for x in [1, 2, 3] if x > 1 for y in (x, -x)]",
		"r = {k: v for k, v in [('a', 1), ('b', 2)] if v != 1}",
		"(a, [b, c]) = (1, [2, 3])\nd = [0, 0]\n(d[0], d[1]) = (b, c)\nr = [a, d]",
		"r = []\nfor i, (j, k) in enumerate([(1, 2), (3, 4)]):\n  r += [i, j, k]",
		"r = ['abc'[1], 'abc'[-1], 'abcdef'[1:5:2], [1, 2, 3][::-1], (1, 2, 3)[:2], 'abc'[5:]]",
		"r = [1 in [1], 2 not in [1], 'b' in 'abc', 'x' in {'x': 1}, not (1 == 1)]",
		"r = [-3, +3, ~3, - (2 * 3), not 0]",
		"r = 'a,b;c'.replace(';', ',').split(',', 1) + ['%d %s %r' % (1, 'x', 'y'), '{} {k}'.format(1, k=2), '-'.join(['a', 'b'])]",
		"f = 'x,y'.split\ng = [].append\nr = [f(','), type(g)]",
		"def f():\n  def g():\n    return x + 1\n  x = 1\n  return g()\nr = f()",
		"x = 1\ndef f():\n  x = 5\n  x += 1\n  return x\nr = [f(), x]",
		"def fib(n):\n  return n if n < 2 else fib(n - 1) + fib(n - 2)\nr = fib(15)",
		"r = 1 if [] else 2 if {} else 3",
		"r = 0\ni = 0\nwhile i < 10:\n  i += 1\n  if i % 2:\n    continue\n  if i > 8:\n    break\n  r += i",
		"r = sorted([3, 1, 2], reverse=True) + sorted(['bb', 'a'], key=len)",
		"r = [max(1, 2), max([3, 4], key=lambda x: -x), min('b', 'a'), abs(-2), len([1]), bool([]), int('7'), float('1.5'), str(1), list((1, 2)), tuple([1]), zip([1], [2])]",
		"s = set([1, 2])\nr = [sorted(list(s | set([3]))), sorted(list(s & set([2]))), sorted(list(s - set([1]))), len(s)]",
		"r = {'a': {'b': [1]}}\nr['a']['b'][0] += 1\nr['a']['c'] = r['a']['b'] * 2",
		"r = [i for i in range(3)] + list(range(10, 0, -3))",
	} {
		plain := starlark.StringDict{}
		f, err := dialect.Parse(programFile, text, 0)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		p, err := starlark.FileProgram(f, plain.Has)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		globals, err := p.Init(&starlark.Thread{}, plain)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		f, _ = dialect.Parse(programFile, text, 0)
		counted(f)
		if p, err = starlark.FileProgram(f, e.known.Has); err != nil {
			t.Fatalf("counted: %v in\n%s", err, text)
		}
		thread := &starlark.Thread{}
		thread.SetLocal(runKey, &embeddedRun{left: 1 << 20, host: &host{}})
		mine, err := p.Init(thread, e.known)
		if err != nil {
			t.Errorf("counted: %v in\n%s", err, text)
			continue
		}
		if got, want := mine["r"].String(), globals["r"].String(); got != want {
			t.Errorf("got %s, want %s, of\n%s", got, want, text)
		}
	}
}

// Every operator of the language is counted. An operator that is added to the language must be
// added here.
func TestEveryOperatorIsKnown(t *testing.T) {
	names := known()
	for op := syntax.PLUS; op <= syntax.GTGT; op++ {
		if names[op.String()] == nil || names[op.String()+"="] == nil {
			t.Errorf("%s is not counted", op)
		}
	}
	for name, v := range starlark.Universe {
		if _, ok := v.(*starlark.Builtin); ok && names[name] == v || ok && names[name] == nil {
			t.Errorf("%s is the language's own, and not counted", name)
		}
	}
}

// Concurrent programs of one interpreter do not affect each other.
func TestEmbeddedTogether(t *testing.T) {
	e := Embedded(nil)
	var wait sync.WaitGroup
	for i := range 16 {
		wait.Go(func() {
			text := "x = []\nfor i in range(1000):\n  x += [i * " + strings.Repeat("2 * ", i) + "1]\nset_result(sum(x) // 499500)"
			if got := e.run(context.Background(), program{code: text, time: time.Minute, output: 4096},
				&host{}); got.outcome != ok || len(got.result) == 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
	wait.Wait()
}

// Any output of a child is read as a frame or ends the child.
func FuzzReceive(f *testing.F) {
	frame := func(n uint32, key [16]byte, seq uint32, data string) []byte {
		b := binary.BigEndian.AppendUint32(nil, n)
		return append(binary.BigEndian.AppendUint32(append(b, key[:]...), seq), data...)
	}
	zero := [16]byte{}
	for _, b := range [][]byte{nil, {0}, frame(2, zero, 1, "{}"), frame(2, zero, 2, "{}"), frame(1<<31, zero, 1, ""),
		frame(20, zero, 1, `{"result":1}`), frame(17, zero, 1, `{"calls":[{"name":`),
		frame(4, [16]byte{1}, 1, "null"), frame(13, zero, 1, `{"end":"ok"} `), frame(33, zero, 1, `{"end":"error","lines":[[1,"f"]]}`)} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		go func() {
			io.Copy(w, bytes.NewReader(b))
			w.Close()
		}()
		x := &wire{in: r}
		for {
			got, err := x.receive()
			if err != nil {
				if !errors.Is(err, errForged) && !errors.Is(err, errLarge) && !errors.Is(err, io.EOF) &&
					!errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("got %v", err)
				}
				return
			}
			if e := got.ended(program{code: "x = 1"}); got.Calls == nil && got.Result == nil && e.outcome == "" {
				t.Errorf("no outcome of %q", b)
			}
		}
	})
}
