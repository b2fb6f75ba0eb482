// stored.go: the JSON form of what a test compares.
package runtest

import (
	"encoding/json"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Fataler is the part of *testing.T that helpers use. A property test implements it too.
type Fataler interface {
	Helper()
	Fatal(...any)
}

// JSONOf returns the JSON form of v.
func JSONOf(t Fataler, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// RoundTrip stores a Result as JSON and reads it again.
func RoundTrip(t Fataler, res *pawl.Result) *pawl.Result {
	t.Helper()
	back := new(pawl.Result)
	if err := json.Unmarshal([]byte(JSONOf(t, res)), back); err != nil {
		t.Fatal(err)
	}
	return back
}

// SameReply compares responses. It ignores their unexported fields.
var SameReply = cmpopts.IgnoreUnexported(llm.Response{})

// SameData compares the values that have a JSON form. It ignores unexported fields and values
// without a JSON form.
var SameData = cmp.Options{SameReply,
	cmpopts.IgnoreUnexported(pawl.Execution{}, pawl.Result{}, pawl.Tool{}, llm.ToolSpec{}),
	cmpopts.IgnoreFields(pawl.Step{}, "Request"),
	cmpopts.IgnoreFields(llm.Usage{}, "Raw"), cmpopts.EquateEmpty()}
