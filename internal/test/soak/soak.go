// Package soak sets the size of long tests. A test that can be small always runs: at its small size
// in `make test`, and at its full size in `make soak`, which sets PAWL_SOAK=1. A test that cannot
// be small runs in `make soak` only.
//
//	n := soak.N(100, 1000) // random scripts
//	soak.Only(t, "one script takes 40 seconds of processor time")
//
// A test that takes much data through the same steps, one after another, has little for the race
// detector, which makes it ten times as slow. It says so, and `make race` skips it; `make test` and
// `make soak` run it without the detector:
//
//	soak.Sequential(t)
//
// docs/internals/tests.md lists the tests with a size.
package soak

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// On reports whether the environment variable PAWL_SOAK asks for full sizes. Empty and 0 mean no.
func On() bool {
	v := os.Getenv("PAWL_SOAK")
	return v != "" && v != "0"
}

// Env returns the variable, for a child process that gets no other part of the environment.
func Env() string { return "PAWL_SOAK=" + os.Getenv("PAWL_SOAK") }

// N returns full in `make soak` and small otherwise.
func N[T any](small, full T) T {
	if On() {
		return full
	}
	return small
}

// Sequential skips a test under the race detector, because it does one thing after another. If the
// code under test starts goroutines, then other tests of the package run them under the detector.
func Sequential(t testing.TB) {
	t.Helper()
	if raceDetector {
		t.Skip("without the race detector: it does one thing after another")
	}
}

// Only skips the test outside `make soak`. The reason why says what makes a smaller size
// impossible.
func Only(t testing.TB, why string) {
	t.Helper()
	if !On() {
		t.Skip("in make soak: " + why)
	}
}

// Waits lets n parallel tests of a package run at once. The default is the number of processors,
// which is too few for tests that wait for processes, servers and timers. TestMain calls Waits
// before m.Run. The flag -parallel takes precedence. Under the race detector the default stays,
// because the same tests need several times the processor time.
func Waits(n int) {
	if !flag.Parsed() {
		flag.Parse()
	}
	set := raceDetector
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "test.parallel" })
	if !set {
		_ = flag.Set("test.parallel", strconv.Itoa(n)) // the flag exists in every test
	}
}
