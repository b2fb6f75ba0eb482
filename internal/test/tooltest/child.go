package tooltest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// Children runs tests of a package in processes of their own, to measure their memory. Child starts
// such a process, which executes only work, in the folder that the variable names. TestMain calls
// Children.
func Children(m *testing.M, variable string, work func(dir string) error) {
	dir := os.Getenv(variable)
	if dir == "" {
		os.Exit(m.Run())
	}
	err := work(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status, _ := os.ReadFile("/proc/self/status")
	fmt.Printf("%s\n", peak.Find(status))
	os.Exit(0)
}

var peak = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// Child executes the work of Children in a process of its own. It returns the output and the peak
// memory in kB; 0 means that the system has no /proc. With the race detector, which takes more
// memory than most work, Child builds the process without it.
func Child(t *testing.T, variable, dir string, env ...string) (out []byte, most int) {
	t.Helper()
	program := os.Args[0]
	if underRace {
		program = filepath.Join(t.TempDir(), "child")
		if out, err := exec.Command("go", "test", "-c", "-o", program, ".").CombinedOutput(); err != nil {
			t.Fatalf("go test -c: %v\n%s", err, out)
		}
	}
	c := exec.Command(program, "-test.run=^$")
	c.Env = append(append(os.Environ(), variable+"="+dir, "GOMEMLIMIT=off", "GOGC=100"), env...)
	out, err := c.CombinedOutput()
	t.Logf("%s", out)
	Must(t, err)
	if m := peak.FindSubmatch(out); m != nil {
		most, _ = strconv.Atoi(string(m[1]))
	}
	return out, most
}
