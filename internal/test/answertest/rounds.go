package answertest

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// RoundDoors are the places that execute a run and show its end.
var RoundDoors = []string{"Go", "Go, streamed", "file", "command", "durable", "thread.Runner", "Server.Runner",
	"remote Runner", "/v1/runs", "/v1/runs, streamed", "chat", "chat, streamed", "responses", "responses, streamed",
	"responses, stored", "messages", "messages, streamed", "AI SDK", "AG-UI", "A2A", "MCP", "Temporal"}

// NoMore is the answer of the model of Looker when it must not call.
const NoMore = "No more."

// Looker is an agent whose model calls as long as it may, as a provider does that obeys
// tool_choice.
type Looker struct {
	*pawl.Agent
	Model *script.Model

	// The numbers of executed calls and of requests. A door that has them from elsewhere sets them.
	Looks, Requests func() int
}

// NewLooker returns a Looker that may execute calls in that number of rounds. Its n-th call is
// look {"N":n}.
func NewLooker(rounds int) *Looker {
	looks := new(atomic.Int32)
	l := &Looker{Looks: func() int { return int(looks.Load()) }}
	look := pawl.Func("look", "Looks.", func(_ context.Context, in struct{ N int }) (string, error) {
		looks.Add(1)
		return fmt.Sprint("seen ", in.N), nil
	})
	look.Effect = pawl.EffectRead
	turn := func(req *llm.Request) script.Turn {
		if len(req.Tools) == 0 || req.Choice.Mode == llm.ToolNone {
			return script.Say(NoMore)
		}
		n := 1
		for _, m := range req.Messages {
			n += len(m.Calls())
		}
		return script.Call("look", fmt.Sprintf(`{"N":%d}`, n))
	}
	l.Model = &script.Model{Turns: []script.Turn{script.Loop(script.Func(turn))}}
	l.Requests = func() int { return len(l.Model.Requests()) }
	if rounds == 0 {
		rounds = pawl.NoRounds
	}
	l.Agent = &pawl.Agent{Name: "looker", Model: l.Model, Tools: []pawl.Toolset{look}, Limits: pawl.Limits{Rounds: rounds}}
	return l
}

// PlayRounds runs a Looker with 0, 1 and 2 rounds at a door. ask returns what the door shows at the
// end of the run, as text or JSON.
func PlayRounds(t *testing.T, door string, ask func(t *testing.T, l *Looker, rounds int) string) {
	t.Helper()
	for rounds := range 3 {
		t.Run(fmt.Sprint(door, "/", rounds), func(t *testing.T) {
			l := NewLooker(rounds)
			shown := strings.NewReplacer(`\`, "", " ", "").Replace(ask(t, l, rounds))
			if n := l.Looks(); n != rounds {
				t.Errorf("%d calls were executed", n)
			}
			if n := l.Requests(); n != rounds+1 {
				t.Errorf("the model got %d requests", n)
			}

			want, other := `"N":1`, "Nomore."
			if rounds > 0 {
				want, other = other, fmt.Sprintf(`"N":%d`, rounds+1)
			}
			if !strings.Contains(shown, want) || strings.Contains(shown, other) {
				t.Errorf("%s shows no %s, or %s:\n%s", door, want, other, shown)
			}
			if rounds == 0 && !strings.Contains(shown, "look") {
				t.Errorf("%s does not show the name of the call:\n%s", door, shown)
			}
		})
	}
}

// ShownBy returns what a Result shows: its answer, and the calls that are not executed.
func ShownBy(res *pawl.Result) string {
	shown := res.Text()
	for _, c := range res.Calls() {
		shown += "\n" + c.Name + " " + string(c.Args)
	}
	return shown
}
