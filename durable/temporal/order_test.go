package temporal

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
)

// The Writes of a step run in call order, also if a later one is approved before an earlier one.
// Their questions are asked together, and a Read waits for no answer. Runs of an earlier version
// keep their order.
func TestOrder(t *testing.T) {
	for version, want := range map[int][]string{
		stateVersion: {"look", "pay", "send", "file"},
		// file needs no approval, and send has it first
		2: {"look", "file", "send", "pay"},
	} {
		var mu sync.Mutex
		var ran []string
		tool := func(name string, effect pawl.Effect) *pawl.Tool {
			run := func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
				mu.Lock()
				defer mu.Unlock()
				ran = append(ran, name)
				return llm.TextResult(name), nil
			}
			return &pawl.Tool{Name: name, Effect: effect, Run: run}
		}
		a := &pawl.Agent{Model: script.New(script.Together(script.Call("pay", nil), script.Call("send", nil),
			script.Call("file", nil), script.Call("look", nil)), script.Say("done")),
			Tools: []pawl.Toolset{tool("pay", pawl.EffectWrite), tool("send", pawl.EffectWrite),
				tool("file", pawl.EffectIdempotent), tool("look", pawl.EffectRead)},
			Middleware: []pawl.Middleware{pawl.Approve(policy.Rules{Ask: []string{"pay", "send"}}.Approve)}}
		e := start(t, a)
		var asked [][]string
		e.tick = func() error {
			s, err := e.state()
			if err != nil || !s.Waits {
				return err
			}
			var names []string
			for _, w := range s.Pending {
				names = append(names, w.Call.Name)
			}
			asked = append(asked, names)
			last := len(s.Pending) - 1 // send first
			return e.update(updateDecide, names[last], []llm.Decision{s.Pending[last].Approve("me")})
		}
		out, err := e.run(input{State: version, Messages: ask})
		if err != nil || out.Result.Stop != pawl.StopAnswer {
			t.Fatalf("version %d: %+v, %v", version, out, err)
		}
		// look and file may run in either order
		if i := slices.Index(ran, "look"); i >= 0 && i < 2 {
			ran = append([]string{"look"}, slices.Delete(ran, i, i+1)...)
		}
		if diff := cmp.Diff(ran, want); diff != "" {
			t.Errorf("version %d: got -, want +\n%s", version, diff)
		}
		if diff := cmp.Diff(asked, [][]string{{"pay", "send"}, {"pay"}}); diff != "" {
			t.Errorf("version %d: got -, want +\n%s", version, diff)
		}
	}
}
