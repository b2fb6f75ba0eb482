package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// allowed is how the reason of a skip begins that is never a failure: the recorded data is not part
// of the project.
const allowed = "corpora absent"

// event is one line of `go test -json`; see `go doc test2json`.
type event struct {
	Action     string
	Package    string
	ImportPath string // of build-output and build-fail
	Test       string
	Output     string
	Elapsed    float64
}

type test struct{ pkg, name string }

type skip struct {
	test
	reason string
}

// report collects the events of one run. Output of a test is kept until it is known whether anybody
// wants to read it.
type report struct {
	out    io.Writer
	strict bool

	output   map[test][]string
	failing  map[string]bool // packages with a failed test
	builds   map[string]bool // packages whose compiler output was shown
	skips    []skip
	steps    []string
	stderr   string
	passed   int
	failed   int
	packages int
	badSteps int
}

func newReport(out io.Writer, strict bool) *report {
	return &report{out: out, strict: strict, output: map[test][]string{}, failing: map[string]bool{},
		builds: map[string]bool{}}
}

// read takes all of the input. No event at all is an error: then nothing was tested.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	n := 0
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil && e.Action != "" {
				n++
				r.add(e)
			} else {
				// Go test's own words, between the events.
				fmt.Fprintf(r.out, "%s\n", strings.TrimRight(string(line), "\n"))
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if n == 0 {
		return errors.New("no test output to read: go test did not start")
	}
	return nil
}

func (r *report) add(e event) {
	t := test{e.Package, e.Test}
	switch e.Action {
	case "output":
		if e.Test == "" && closing(e.Output) {
			fmt.Fprint(r.out, e.Output)
		} else {
			r.output[t] = append(r.output[t], e.Output)
		}
	case "build-output":
		fmt.Fprint(r.out, e.Output)
		r.builds[e.ImportPath] = true
	case "pass":
		if e.Test == "" {
			r.packages++
		} else {
			r.passed++
		}
		delete(r.output, t)
	case "skip":
		if e.Test != "" {
			r.skips = append(r.skips, skip{t, reason(r.output[t])})
		}
		delete(r.output, t)
	case "fail":
		if e.Test == "" {
			r.packages++
			r.failPackage(e.Package)
			return
		}
		r.failed++
		if !r.failing[e.Package] || !bare(r.output[t]) {
			fmt.Fprintf(r.out, "\n--- in %s\n%s\n", e.Package, strings.Join(r.output[t], ""))
		}
		r.failing[e.Package] = true
		delete(r.output, t)
	}
}

// failPackage counts a package that failed without a failed test, and shows all that is left of its
// output: tests that were running when the process died have no result of their own.
func (r *report) failPackage(pkg string) {
	if r.failing[pkg] {
		return
	}
	r.failed++
	fmt.Fprintf(r.out, "\n--- %s failed outside of a test\n", pkg)
	for t, lines := range r.output {
		if t.pkg == pkg {
			fmt.Fprint(r.out, strings.Join(lines, ""))
			delete(r.output, t)
		}
	}
}

// bare reports whether a test said nothing itself: it failed because a subtest did, which was told
// already.
func bare(output []string) bool {
	for _, line := range output {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			return false
		}
	}
	return true
}

// closing reports whether line is one of go test's closing lines of a package.
func closing(line string) bool {
	for _, begin := range []string{"ok  \t", "FAIL\t", "?   \t", "\t"} {
		if strings.HasPrefix(line, begin) {
			return true
		}
	}
	return false
}

// reason finds what t.Skip was told: the lines between the test's start and its closing line,
// without file and line.
func reason(output []string) string {
	var words []string
	for _, line := range output {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") {
			continue
		}
		if file, rest, ok := strings.Cut(line, ": "); ok && strings.Contains(file, ".go:") {
			line = rest
		}
		words = append(words, line)
	}
	if len(words) == 0 {
		return "no reason was given"
	}
	return strings.Join(words, " ")
}

func (r *report) addSteps(text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "FAILED") {
			r.badSteps++
		}
		r.steps = append(r.steps, line)
	}
}

func (r *report) addStderr(text string) { r.stderr = strings.TrimSpace(text) }

// close writes the closing list and reports whether nothing failed.
func (r *report) close() bool {
	if r.stderr != "" {
		fmt.Fprintf(r.out, "\n%s\n", r.stderr)
	}
	fmt.Fprintf(r.out, "\n== what ran\n")
	for _, s := range r.steps {
		fmt.Fprintln(r.out, s)
	}
	word := "ok    "
	if r.failed > 0 {
		word = "FAILED"
	}
	fmt.Fprintf(r.out, "%s  tests (%d packages)\n", word, r.packages)
	fmt.Fprintf(r.out, "\n== what was skipped\n")
	bad := 0
	for _, s := range r.skips {
		mark := "skipped"
		if r.strict && !strings.HasPrefix(s.reason, allowed) {
			mark = "FAILED "
			bad++
		}
		fmt.Fprintf(r.out, "%s  %s %s: %s\n", mark, s.pkg, s.name, s.reason)
	}
	if len(r.skips) == 0 {
		fmt.Fprintln(r.out, "nothing")
	}
	if bad > 0 {
		fmt.Fprintf(r.out,
			"\n%d tests were skipped for another reason than %s. As root on Debian all they need can be installed, so they count as failed.\n", bad, allowed)
	}
	if r.badSteps > 0 {
		fmt.Fprintf(r.out, "\n%d of the steps before the tests failed; their output stands above.\n", r.badSteps)
	}
	fmt.Fprintf(r.out, "\n%d passed, %d failed, %d skipped\n", r.passed, r.failed+bad, len(r.skips)-bad)
	return r.failed+bad+r.badSteps == 0
}
