// Command testplan decides which tests run how, from the source of the module in the working
// directory:
//
//	testplan race         packages that run under the race detector, one per line
//	testplan plain        packages that run without it, because nothing in them is concurrent
//	testplan sequential   packages of race with tests that call soak.Sequential
//	testplan sequential tests   a pattern for -run that matches such tests
//
// With soak before these words, it lists the packages with tests whose size package soak sets:
//
//	testplan soak race         packages of race with such tests that are not sequential
//	testplan soak plain        packages of plain with such tests
//	testplan soak tests        a pattern for -run that matches the tests of these two
//	testplan soak sequential   packages of race with such tests that are sequential
//	testplan soak sequential tests   a pattern for -run that matches such tests
//
// Packages that take long come first, so that the last ones to end are short.
//
// A package is concurrent when one of its files, tests included, has a go or select statement, a
// channel, a parallel test, a process that os/exec starts without waiting for its end, or an import
// of sync, sync/atomic, testing/synctest, net or a package below net (net/url and net/netip have no
// concurrency). A package is not concurrent because of its imports: the concurrency of the agent
// loop is tested where it is written.
package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out, errs io.Writer) int {
	what, soak := strings.CutPrefix(strings.Join(args, " "), "soak ")
	if !slices.Contains([]string{"race", "plain", "sequential", "sequential tests"}, what) && !(soak && what == "tests") {
		fmt.Fprintln(errs, "usage: testplan [soak] race|plain|sequential|sequential tests, or testplan soak tests")
		return 2
	}
	packages, err := load(".")
	if err != nil {
		fmt.Fprintln(errs, "testplan:", err)
		return 2
	}
	var tests []string
	for _, p := range packages {
		other, sequential := p.soak, p.sequential
		if soak {
			other = slices.DeleteFunc(slices.Clone(p.soak),
				func(t string) bool { return slices.Contains(p.sequential, t) })
			sequential = slices.DeleteFunc(slices.Clone(p.soak),
				func(t string) bool { return slices.Contains(other, t) })
		}
		switch {
		case what == "tests":
			tests = append(tests, other...)
		case what == "sequential tests":
			tests = append(tests, sequential...)
		case what == p.mode() && (!soak || len(other) > 0), what == "sequential" && p.mode() == "race" && len(sequential) > 0:
			fmt.Fprintln(out, p.path)
		}
	}
	if strings.HasSuffix(what, "tests") {
		slices.Sort(tests)
		fmt.Fprintf(out, "^(%s)$\n", strings.Join(slices.Compact(tests), "|"))
	}
	return 0
}
