// Command testreport reads the output of `go test -json`, from the files of its arguments at once
// or from its standard input, and reports it in plain lines: one for each package when it ends,
// with its time, its number of tests and how many packages are left; the output of failed tests in
// full; the skipped tests with their reasons; and at the very end the line
//
//	N passed, N failed, N skipped
//
// Subtests are counted like tests. A package that failed without a failed test (it did not compile,
// or its process died) counts as one failure, and so do packages without a result. With -strict, a
// skip for any other reason than absent corpora counts as a failure too: on a machine where
// everything can be installed, a test that did not run is a test that is missing. A test that
// package soak skips because it runs in `make soak` only is listed as such, and is no skip.
//
// With -counts, the counts of an earlier report are read from that file and added to the last line,
// and the sums are stored there. So two runs, `make test` and `make soak`, end with one line for
// both.
//
// The exit status is 0 when nothing failed, 1 when something did, 2 when the input is no test
// output.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, in io.Reader, out, errs io.Writer) int {
	flags := flag.NewFlagSet("testreport", flag.ContinueOnError)
	flags.SetOutput(errs)
	strict := flags.Bool("strict", false, "a skip for another reason than absent corpora is a failure")
	packages := flags.Int("packages", 0, "number of packages that are tested; 0 means unknown")
	counts := flags.String("counts", "", "file with the counts of earlier reports, which are added to the last line; the sums are stored in it")
	steps := flags.String("steps", "", "file with a line for each check of the tree; lines that begin with FAILED are failures")
	stderr := flags.String("stderr", "", "file with the standard error of go test; shown at the end")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	r := newReport(out, *strict)
	r.total = *packages
	inputs := []io.Reader{in}
	if flags.NArg() > 0 {
		inputs = nil
	}
	for _, name := range flags.Args() {
		f, err := os.Open(name)
		if err != nil {
			fmt.Fprintf(errs, "testreport: %v\n", err)
			return 2
		}
		defer f.Close()
		inputs = append(inputs, f)
	}
	if err := r.read(inputs...); err != nil {
		fmt.Fprintf(errs, "testreport: %v\n", err)
		return 2
	}
	for path, take := range map[string]func(string){*steps: r.addSteps, *stderr: r.addStderr} {
		if path == "" {
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			fmt.Fprintf(errs, "testreport: %v\n", err)
			return 2
		}
		take(string(b))
	}
	ok := r.close()
	sum, err := r.sum(*counts)
	if err != nil {
		fmt.Fprintf(errs, "testreport: %v\n", err)
		return 2
	}
	fmt.Fprintf(out, "\n%s\n", sum)
	if !ok {
		return 1
	}
	return 0
}
