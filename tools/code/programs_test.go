package code_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
)

// testdata/programs contains thirty programs with their results and calls. Each has the same effect
// as its calls made one by one. A program that only Python can run is marked, and the embedded
// interpreter must refuse it completely.
func TestPrograms(t *testing.T) {
	soak.Sequential(t)
	files, err := filepath.Glob("testdata/programs/*.txt")
	if err != nil || len(files) != 30 {
		t.Fatalf("got %d programs, %v", len(files), err)
	}
	same := map[string]int{}
	var others []string
	ins := interpreters(t)
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		part := map[string]string{}
		for _, f := range a.Files {
			part[f.Name] = string(f.Data)
		}
		var want, calls []string
		oneByOne := newWorld()
		for line := range strings.Lines(part["calls"]) {
			name, args, _ := strings.Cut(strings.TrimSpace(line), " ")
			want = append(want, name+" "+args)
			if x := (pawl.Toolsets{oneByOne.tools()}).Execute(t.Context(),
				llm.ToolCall{Name: name, Args: json.RawMessage(args)}); !x.Outcome.Settled() {
				t.Errorf("%s: %s: %s", file, line, x.Outcome)
			}
		}
		only := strings.Contains(string(a.Comment), "Only in Python")
		if only {
			others = append(others, strings.TrimSuffix(filepath.Base(file), ".txt"))
		}
		for _, in := range ins {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+"/"+in.Name(), func(t *testing.T) {
				w := newWorld()
				x, d := run(t, newTool(t, in, nil), w, object{"code": part["program"]})
				if only && in.Name() == "embedded" {
					if d.Outcome != "syntax" || w.ran() != 0 {
						t.Errorf("got %s, %d calls; it says that only Python runs it", d.Outcome, w.ran())
					}
					return
				}
				if x.Outcome != pawl.OutcomeOK || !equal(d.Result, []byte(part["result"])) {
					t.Errorf("got %s\nwant %s", x.Result.Text(), part["result"])
				}
				if calls = slices.Clone(w.calls); strings.HasPrefix(filepath.Base(file), "parallel") {
					slices.Sort(calls) // they run concurrently
					want = slices.Sorted(slices.Values(want))
				}
				if diff := cmp.Diff(calls, want); diff != "" {
					t.Errorf("calls: got -, want +\n%s", diff)
				}
				if got, want := w.state(), oneByOne.state(); got != want {
					t.Errorf("the world: got %s\nwant %s", got, want)
				}
				if !t.Failed() {
					same[in.Name()]++
				}
			})
		}
	}
	t.Logf("of %d programs the same in both: %d; only in Python: %s", len(files), same["embedded"], strings.Join(others, ", "))
	if same["embedded"] < 24 {
		t.Errorf("%d programs run in the embedded interpreter, want at least 24", same["embedded"])
	}
}

// equal compares JSON by value; 18 and 18.0 are equal.
func equal(a, b []byte) bool {
	var x, y any
	if len(bytes.TrimSpace(a)) == 0 || len(bytes.TrimSpace(b)) == 0 {
		return len(bytes.TrimSpace(a)) == len(bytes.TrimSpace(b))
	}
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && cmp.Equal(x, y)
}
