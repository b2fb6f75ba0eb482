package jsonrepair_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/jsonrepair"
	"github.com/pawl-go/pawl/internal/test/corpora"
)

type malformed struct {
	Source, Case, Kind, Input string
	Expected                  json.RawMessage
	Disagree                  bool `json:"projects_disagree"`
}

// The test suites of two projects that repair more than this package does: a repaired text must be
// what they expect, and the other texts must be refused.
func TestCorpus(t *testing.T) {
	var valid, mended, refused, wrong int
	for _, c := range corpora.Lines[malformed](t, "malformed-json/dev.jsonl") {
		fixed, repairs, err := jsonrepair.Repair([]byte(c.Input))
		switch {
		case json.Valid([]byte(c.Input)):
			if valid++; err != nil || len(repairs) > 0 || string(fixed) != c.Input {
				t.Errorf("%q is valid, but became %q, %v, %v", c.Input, fixed, repairs, err)
			}
		case err != nil:
			refused++
			t.Logf("refused %.100q: %v", c.Input, err)
		case c.Kind == "reject" || c.Expected == nil:
			wrong++
			t.Errorf("%q: became %s, want it refused", c.Input, fixed)
		default:
			mended++
			if diff := cmp.Diff(decoded(t, fixed), decoded(t, c.Expected)); diff != "" && !c.Disagree {
				wrong++
				t.Errorf("%s: %q became %s, want %s", c.Source, c.Input, fixed, c.Expected)
			}
			if len(repairs) == 0 {
				t.Errorf("%q was changed, and nothing says how", c.Input)
			}
		}
	}
	t.Logf("%d valid and unchanged, %d repaired, %d refused, %d wrong values", valid, mended, refused, wrong)
	if mended < 55 {
		t.Errorf("only %d texts were repaired", mended)
	}
}

func decoded(t *testing.T, b []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	return v
}
