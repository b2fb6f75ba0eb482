package code_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/code"
)

// One run of these benchmarks prints the figures of docs/code.md: go test ./tools/code -run '^$'
// -bench . -benchtime 100x
//
// BenchmarkStart measures the time from the call to the program's first call. It reports the
// minimum and the median, because other work on the machine distorts the mean.
func BenchmarkStart(b *testing.B) {
	program := json.RawMessage(`{"code":"call_tool('first')"}`)
	start := func(b *testing.B, in code.Interpreter, before func()) {
		tool, err := code.New(in, nil)
		if err != nil {
			b.Fatal(err)
		}
		var begun time.Time
		var took []time.Duration
		first := pawl.Func("first", "", func(context.Context, struct{}) (string, error) {
			took = append(took, time.Since(begun))
			return "", nil
		})
		for b.Loop() {
			b.StopTimer()
			before()
			b.StartTimer()
			begun = time.Now()
			if x := (pawl.Toolsets{first, tool}).Execute(b.Context(),
				llm.ToolCall{Name: "execute_code", Args: program}); x.Outcome != pawl.OutcomeOK {
				b.Fatal(x.Result.Text())
			}
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[0].Microseconds())/1000, "least-ms")
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
	}
	b.Run("cold", func(b *testing.B) { start(b, benchPython(b, &code.PythonOptions{Warm: -1}), func() {}) })
	b.Run("warm", func(b *testing.B) {
		py := benchPython(b, nil)
		start(b, py, func() { ready(py, 1) })
	})
	b.Run("embedded", func(b *testing.B) { start(b, code.Embedded(nil), func() {}) })
}

func benchPython(b *testing.B, opts *code.PythonOptions) *code.PythonInterpreter {
	py := code.Python(opts)
	b.Cleanup(func() { py.Close() })
	if err := py.Check(); err != nil {
		b.Skip(err)
	}
	return py
}

// ready waits until n children wait for a program and are idle.
func ready(py *code.PythonInterpreter, n int) []int {
	py.Warm()
	for {
		var idle []int
		for _, pid := range pythons() {
			if state(pid) == "S" && resident(pid) > 4<<20 {
				idle = append(idle, pid)
			}
		}
		if len(idle) >= n {
			time.Sleep(20 * time.Millisecond) // they also sleep while they read a module
			return idle
		}
		time.Sleep(time.Millisecond)
	}
}

// BenchmarkInnerCall measures the cost of a call: a program of 190 calls minus a program of 10.
func BenchmarkInnerCall(b *testing.B) {
	for _, in := range []code.Interpreter{benchPython(b, &code.PythonOptions{Warm: -1}), code.Embedded(nil)} {
		b.Run(in.Name(), func(b *testing.B) {
			tool, err := code.New(in, nil)
			if err != nil {
				b.Fatal(err)
			}
			w := newWorld()
			set := append(w.tools(), tool)
			took := func(calls int) time.Duration {
				args, _ := json.Marshal(object{"code": fmt.Sprintf("for i in range(%d):\n  call_tool('add', {'a': i, 'b': 1})", calls)})
				begun := time.Now()
				if x := (pawl.Toolsets{set}).Execute(b.Context(),
					llm.ToolCall{Name: "execute_code", Args: args}); x.Outcome != pawl.OutcomeOK {
					b.Fatal(x.Result.Text())
				}
				return time.Since(begun)
			}
			var one []time.Duration
			for b.Loop() {
				one = append(one, (took(190)-took(10))/180)
			}
			slices.Sort(one)
			b.ReportMetric(float64(one[len(one)/2].Nanoseconds())/1000, "median-µs/call")
		})
	}
}

// BenchmarkIdle measures the memory of 100 interpreters that wait for a program: each one's share
// of common memory (PSS), and its resident memory.
func BenchmarkIdle(b *testing.B) {
	py := benchPython(b, &code.PythonOptions{Warm: 100})
	for b.Loop() {
		pids := ready(py, 100)
		var pss, rss int64
		for _, pid := range pids {
			pss += rollup(pid, "Pss:")
			rss += rollup(pid, "Rss:")
		}
		b.ReportMetric(float64(pss)/float64(len(pids))/1024, "PSS-MiB/child")
		b.ReportMetric(float64(rss)/float64(len(pids))/1024, "RSS-MiB/child")
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	list := make([]*code.EmbeddedInterpreter, 100)
	for i := range list {
		list[i] = code.Embedded(nil)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1024/100, "KiB/embedded")
	runtime.KeepAlive(list)
}

// pythons returns the child processes of this process that run python3.
func pythons() (list []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range dirs {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		i := bytes.LastIndexByte(b, ')')
		if fields := strings.Fields(string(b[i+1:])); len(fields) > 1 && fields[1] == fmt.Sprint(os.Getpid()) &&
			strings.Contains(string(b[:i]), "python") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			list = append(list, pid)
		}
	}
	return list
}

func state(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])); len(fields) > 0 {
		return fields[0]
	}
	return ""
}

func resident(pid int) int64 { return rollup(pid, "Rss:") << 10 }

func rollup(pid int, field string) int64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), field); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n
		}
	}
	return 0
}
