package recording_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/recording"
)

// A recording that pawl run --record of release 0 wrote is read, and written byte for byte. The
// package of the command plays it.
func TestRecordingOfRelease0IsRead(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "release0.json"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := recording.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(b), string(again)); diff != "" {
		t.Errorf("the form differs (-release 0 +now):\n%s", diff)
	}
	if r.Form != "pawl recording 1" || len(r.Exchanges) != 2 || r.Exchanges[0].Response.Status != 200 {
		t.Errorf("got %q with %d exchanges", r.Form, len(r.Exchanges))
	}
	if _, err := recording.Parse([]byte(`{"form":"pawl recording 1","entries":[]}`)); err == nil {
		t.Error("a recording with another name of a field is read")
	}
}
