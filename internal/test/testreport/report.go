package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/internal/test/corpora"
	"github.com/pawl-go/pawl/internal/test/soak"
)

// allowed begins the reason of a skip that is never a failure: the recorded data is not part of the
// project.
const allowed = corpora.Absent

// tally counts tests.
type tally struct{ passed, failed, skipped int }

const tallyLine = "%d passed, %d failed, %d skipped"

func (c tally) String() string { return fmt.Sprintf(tallyLine, c.passed, c.failed, c.skipped) }

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

// report collects the events of one run. Its methods may not be called concurrently.
type report struct {
	out    io.Writer
	strict bool

	failing map[string]bool // packages with a failed test
	builds  map[string]bool // packages whose compiler output was shown
	skips   []skip
	soaks   []skip // tests of make soak only
	// tests that must also run without the race detector; false when they have run
	plain    map[test]bool
	steps    []string
	stderr   string
	counts   tally // when the report is closed
	passed   int
	failed   int
	packages int
	total    int // packages to test; 0 means unknown
	badSteps int
}

func newReport(out io.Writer, strict bool) *report {
	return &report{out: out, strict: strict, failing: map[string]bool{}, builds: map[string]bool{},
		plain: map[test]bool{}}
}

// input is the output of one go test. Several can run at once and test the same package.
type input struct {
	*report
	output map[test][]string // kept until the result of the test is known
	tests  map[string]int    // tests of a package that ended, subtests among them
}

// read reads all inputs at once. If there is no event at all, then nothing was tested: an error.
func (r *report) read(all ...io.Reader) error {
	type line struct {
		from *input
		text []byte
	}
	var (
		lines = make(chan line)
		errs  = make([]error, len(all))
		wait  sync.WaitGroup
	)
	for i, in := range all {
		from := &input{report: r, output: map[test][]string{}, tests: map[string]int{}}
		wait.Go(func() {
			for b := bufio.NewReader(in); errs[i] == nil; {
				var text []byte
				text, errs[i] = b.ReadBytes('\n')
				lines <- line{from, text}
			}
		})
	}
	go func() {
		wait.Wait()
		close(lines)
	}()
	n := 0
	for l := range lines {
		var e event
		switch {
		case len(l.text) == 0:
		case json.Unmarshal(l.text, &e) == nil && e.Action != "":
			n++
			l.from.add(e)
		default: // go test's own words, between the events
			fmt.Fprintf(r.out, "%s\n", strings.TrimRight(string(l.text), "\n"))
		}
	}
	for _, err := range errs {
		if !errors.Is(err, io.EOF) {
			return err
		}
	}
	if n == 0 {
		return errors.New("no test output to read: go test did not start")
	}
	return nil
}

func (r *input) add(e event) {
	t := test{e.Package, e.Test}
	switch e.Action {
	case "output":
		if e.Test != "" || !closing(e.Output) {
			r.output[t] = append(r.output[t], e.Output)
		}
	case "build-output":
		fmt.Fprint(r.out, e.Output)
		r.builds[e.ImportPath] = true
	case "pass":
		if e.Test == "" {
			r.progress("ok    ", e)
		} else {
			r.passed++
			r.tests[e.Package]++
			r.plain[t] = false
		}
		delete(r.output, t)
	case "skip":
		if e.Test == "" {
			r.progress("      ", e)
		} else if s := (skip{t, reason(r.output[t])}); strings.HasPrefix(s.reason, soak.Reason) {
			r.soaks = append(r.soaks, s)
		} else if strings.HasPrefix(s.reason, soak.Plain) {
			if _, ran := r.plain[t]; !ran {
				r.plain[t] = true
			}
		} else {
			r.skips = append(r.skips, s)
		}
		delete(r.output, t)
	case "fail":
		if e.Test == "" {
			r.progress("FAILED", e)
			r.failPackage(e.Package)
			return
		}
		r.failed++
		r.tests[e.Package]++
		r.plain[t] = false
		if !r.failing[e.Package] || !bare(r.output[t]) {
			fmt.Fprintf(r.out, "\n--- in %s\n%s\n", e.Package, strings.Join(r.output[t], ""))
		}
		r.failing[e.Package] = true
		delete(r.output, t)
	}
}

// progress writes the line of an ended package.
func (r *input) progress(word string, e event) {
	r.packages++
	left := ""
	if r.total > 0 {
		left = fmt.Sprintf("  (%d left)", max(0, r.total-r.packages))
	}
	count := fmt.Sprintf("%5d tests", r.tests[e.Package])
	delete(r.tests, e.Package)
	if e.Action == "skip" {
		count = "   no tests"
	}
	fmt.Fprintf(r.out, "%s  %-52s %7.1f s %s%s\n", word, e.Package, e.Elapsed, count, left)
}

// failPackage counts a package that failed without a failed test, and prints the rest of its
// output: a test in progress when the process died has no result.
func (r *input) failPackage(pkg string) {
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

// bare reports whether a test has no output of its own: it failed because a subtest did, whose
// output was shown.
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

// reason returns the message of t.Skip: the lines between the test's start and its closing line,
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
	bad, missing := 0, 0
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
	for t, waits := range r.plain {
		if waits {
			fmt.Fprintf(r.out, "FAILED   %s %s: it did not run without the race detector\n", t.pkg, t.name)
			missing++
		}
	}
	if r.packages < r.total {
		fmt.Fprintf(r.out, "FAILED   %d of %d packages have no result: go test did not run them\n", r.total-r.packages, r.total)
		missing++
	}
	if bad > 0 {
		fmt.Fprintf(r.out,
			"\n%d tests were skipped for another reason than %s. As root on Debian all they need can be installed, so they count as failed.\n", bad, allowed)
	}
	if r.badSteps > 0 {
		fmt.Fprintf(r.out, "\n%d of the steps before the tests failed; their output stands above.\n", r.badSteps)
	}
	if len(r.soaks) > 0 {
		fmt.Fprintf(r.out, "\n== what only make soak runs\n")
		for _, s := range r.soaks {
			fmt.Fprintf(r.out, "%s %s: %s\n", s.pkg, s.name, strings.TrimPrefix(strings.TrimPrefix(s.reason, soak.Reason), ": "))
		}
	}
	r.counts = tally{r.passed, r.failed + bad + missing, len(r.skips) - bad}
	return r.counts.failed+r.badSteps == 0
}

// sum returns the last line. If file is not empty, it adds the counts in it and stores the sums
// there.
func (r *report) sum(file string) (tally, error) {
	if file == "" {
		return r.counts, nil
	}
	sum, before := r.counts, tally{}
	b, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return sum, err
	}
	if len(b) > 0 {
		if _, err := fmt.Sscanf(string(b), tallyLine, &before.passed, &before.failed, &before.skipped); err != nil {
			return sum, fmt.Errorf("%s: %q is no line of counts", file, b)
		}
		fmt.Fprintf(r.out, "\n%s (this run)\n%s (runs before)\n", r.counts, before)
		sum = tally{sum.passed + before.passed, sum.failed + before.failed, sum.skipped + before.skipped}
	}
	return sum, os.WriteFile(file, []byte(sum.String()+"\n"), 0o644)
}
