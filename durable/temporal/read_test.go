package temporal

import (
	"context"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/artifact"
	"github.com/pawl-go/pawl/script"
)

// result_read runs in an activity, and reads and searches the results of the transcript there too.
func TestReadResult(t *testing.T) {
	page := pawl.Func("page", "Reads a page.", func(context.Context, struct{}) (string, error) { return "one\nFACT 7\n", nil })
	page.Effect = pawl.EffectRead
	a := &pawl.Agent{Tools: []pawl.Toolset{page, artifact.Reader{}}, Model: script.New(script.Call("page", nil),
		script.Call("result_read", `{"pattern":"FACT"}`), script.Call("result_read", `{"id":"run/1/0"}`), script.Say("done"))}
	out, err := start(t, a).run(input{Messages: ask})
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[int]string{4: "run/1/0 line 2: FACT 7", 6: "one"} {
		if got := text(t, out.Result.Messages[at]); !strings.Contains(got, want) {
			t.Errorf("message %d has no %q: %s", at, want, got)
		}
	}
}
