// stops.go: asks a place that shows the end of a run for every stop reason.
package runtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/constants"
)

// laterReason is a stop reason that a later version may store.
const laterReason = pawl.StopReason("of_a_later_version")

// Stops asks show, which shows the end of a run, for every stop reason and for one of a later
// version. Reasons of one class are shown alike, as want says, except for the reasons in except.
func Stops(t *testing.T, want map[pawl.StopClass]string, except map[pawl.StopReason]string,
	show func(*pawl.Result) string) {
	t.Helper()
	reasons, err := constants.Of(root(t), "StopReason")
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range append(reasons, string(laterReason)) {
		res := &pawl.Result{Stop: pawl.StopReason(reason), Cause: "the cause"}
		shown, differs := except[res.Stop]
		if !differs {
			shown = want[res.Stop.Class()]
		}
		if got := show(res); got != shown {
			t.Errorf("the stop reason %s of class %s is shown as %q, want %q", reason, res.Stop.Class(), got, shown)
		}
	}
}

// root returns the folder of the core, which is above the folder of the test.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "stop.go")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("the folder of the core is not above the folder of the test")
		}
		dir = up
	}
}
