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

// Children runs the tests of a package whose memory is measured in processes of their own. In such
// a process, which Child starts, work is all that is done: in the folder that the variable names.
// It is what TestMain calls.
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

// Child does the work that Children was given in a process of its own, and returns what it printed
// and the most memory that it had, in kB; 0 where the system has no /proc. Under the race detector,
// which takes more memory than most work, the process is built without it.
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
