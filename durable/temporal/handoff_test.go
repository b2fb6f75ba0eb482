package temporal

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/team"
)

// A conversation is handed over on Temporal, where calls run in activities. The first agent cannot
// call the tool of the second.
func TestHandoff(t *testing.T) {
	var did atomic.Int64
	first := &pawl.Agent{Name: "desk", Model: script.New(script.Call("step", map[string]any{"n": 0}),
		script.Call("transfer_to_clerk", nil))}
	second := script.New(script.Call("step", map[string]any{"n": 1}), script.Say("done"))
	second.Skip = 2
	a, err := team.Handoff(first, nil, team.Worker{Agent: &pawl.Agent{Name: "clerk", Model: second,
		Tools: []pawl.Toolset{step(pawl.EffectWrite, &did)}}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := start(t, a).run(input{Messages: ask})
	if err != nil {
		t.Fatal(err)
	}
	blocked := text(t, out.Result.Messages[2])
	if out.Result.Text() != "done" || did.Load() != 1 || !strings.Contains(blocked, "desk has no tool step") {
		t.Errorf("%s after %s, and %d steps", out.Result.Text(), blocked, did.Load())
	}
}
