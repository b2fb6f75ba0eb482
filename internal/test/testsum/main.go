// Command testsum sums up runs of `go test -json`, whose output is in the files of its arguments:
//
//	testsum [-strict] FILE…
//
// It prints the reasons of skipped tests with how many tests gave each, the counts of each run, and
// at the end the counts of all runs together. There a test counts once: it failed if any run of it
// failed, and it was skipped if no run executed it. -strict is for a machine that has everything: a
// test that no run executed is a failure. The exit status is 1 if anything failed.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out, errs io.Writer) int {
	flags := flag.NewFlagSet("testsum", flag.ContinueOnError)
	flags.SetOutput(errs)
	strict := flags.Bool("strict", false, "a test that no run executed is a failure")
	if err := flags.Parse(args); err != nil || flags.NArg() == 0 {
		fmt.Fprintln(errs, "usage: testsum [-strict] FILE…")
		return 2
	}

	all := results{}
	var runs strings.Builder
	for _, name := range flags.Args() {
		one, err := read(name)
		if err != nil {
			fmt.Fprintln(errs, "testsum:", err)
			return 2
		}
		if flags.NArg() > 1 {
			run := strings.TrimSuffix(filepath.Base(name), ".json")
			fmt.Fprintf(&runs, "%-8s %s\n", run, one.count())
		}
		all.merge(one)
	}

	all.printSkips(out)
	if *strict {
		all.refuseSkips(out)
	}
	n := all.count()
	fmt.Fprintf(out, "\n%s%s\n", &runs, n)
	if n.failed > 0 {
		return 1
	}
	return 0
}

type result struct {
	action string // pass, fail or skip
	reason string // of a skip
}

// results has the result of each test, under its package and name. A package that failed without a
// failed test, because it did not compile or its process died, is one failed test without a name.
type results map[[2]string]result

func (rs results) merge(more results) {
	weight := map[string]int{"": 0, "skip": 1, "pass": 2, "fail": 3}
	for test, r := range more {
		if weight[r.action] > weight[rs[test].action] {
			rs[test] = r
		}
	}
}

type counts struct{ passed, failed, skipped int }

func (n counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", n.passed, n.failed, n.skipped)
}

func (rs results) count() (n counts) {
	for _, r := range rs {
		switch r.action {
		case "pass":
			n.passed++
		case "fail":
			n.failed++
		case "skip":
			n.skipped++
		}
	}
	return n
}

func (rs results) printSkips(out io.Writer) {
	byReason := map[string][]string{}
	for test, r := range rs {
		if r.action == "skip" {
			reason := cmp.Or(r.reason, "no reason was given")
			byReason[reason] = append(byReason[reason], test[0]+" "+test[1])
		}
	}
	if len(byReason) > 0 {
		fmt.Fprintf(out, "\n== skipped\n")
	}
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		tests := byReason[reason]
		fmt.Fprintf(out, "%4d  %s (%s", len(tests), reason, slices.Min(tests))
		if len(tests) > 1 {
			fmt.Fprint(out, ", …")
		}
		fmt.Fprintln(out, ")")
	}
}

// refuseSkips turns each skipped test into a failed one.
func (rs results) refuseSkips(out io.Writer) {
	for test, r := range rs {
		if r.action == "skip" {
			fmt.Fprintf(out, "FAILED  no run executed %s %s: %s\n", test[0], test[1], r.reason)
			rs[test] = result{action: "fail"}
		}
	}
}

// A test's messages stand at lines of its source. A script of package testscript has one message
// for all of its output, in which the command that skipped it is a line.
var message = regexp.MustCompile(`^\s+\S+\.go:\d+: (.*)|^\s+> .*\bskip '(.*)'`)

// read reads one run. A skipped test's reason is its last message.
func read(name string) (results, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	rs := results{}
	messages := map[[2]string]string{}
	failing := map[string]bool{}
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		var e struct{ Action, Package, Test, Output string }
		if json.Unmarshal(line, &e) != nil {
			continue // a line that the program under test wrote
		}
		test := [2]string{e.Package, e.Test}
		switch {
		case e.Action == "output":
			if m := message.FindStringSubmatch(e.Output); m != nil {
				messages[test] = cmp.Or(m[1], m[2])
			}
		case e.Action != "pass" && e.Action != "fail" && e.Action != "skip":
		case e.Test != "":
			rs[test] = result{e.Action, messages[test]}
			failing[e.Package] = failing[e.Package] || e.Action == "fail"
		case e.Action == "fail" && !failing[e.Package]:
			rs[test] = result{action: "fail"}
		}
	}
	if len(rs) == 0 {
		return nil, fmt.Errorf("%s: there is no result of a test", name)
	}
	return rs, nil
}
