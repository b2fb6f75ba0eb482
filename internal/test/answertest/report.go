package answertest

import (
	"context"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// Report is the answer of the runs of Writer. It is the result of the tool that ends them.
const Report = "the report is written"

// said is what the model says before the call that ends the run, if the task asks it to speak.
const said = "I submit it."

// reportTasks are tasks of Writer: in the second one the model speaks before its call.
var reportTasks = []string{"write", "speak and write"}

// ReportDoors are the places that show the answer of a run. True means that a door streams text, so
// that it shows what the model said before.
var ReportDoors = map[string]bool{
	"Go":                  false,
	"file":                false,
	"command":             true,
	"durable":             false,
	"/v1/runs":            false,
	"chat":                true,
	"chat, streamed":      true,
	"responses":           true,
	"responses, streamed": true,
	"messages":            true,
	"messages, streamed":  true,
	"AI SDK":              true,
	"AG-UI":               true,
	"A2A":                 false,
	"MCP":                 false,
	"remote Runner":       false,
	"Server.Runner":       false,
	"thread.Runner":       false,
	"Temporal":            false,
}

// Writer returns an agent whose runs are ended by its tool submit.
func Writer() *pawl.Agent {
	submit := pawl.Func("submit", "Submits the report.", func(context.Context, struct{}) (string, error) {
		return "", pawl.FinishError(llm.TextResult(Report))
	})
	submit.Effect = pawl.EffectRead
	turn := func(req *llm.Request) script.Turn {
		call := script.Call("submit", `{}`)
		if strings.Contains(req.Messages[len(req.Messages)-1].Text(), "speak") {
			return script.Together(script.Say(said), call)
		}
		return call
	}
	model := &script.Model{Turns: []script.Turn{script.Loop(script.Func(turn))}}
	return &pawl.Agent{Name: "writer", Model: model, Tools: []pawl.Toolset{submit}}
}

// PlayReport runs Writer at a door with each task. ask returns the text that the door shows as the
// answer: the same at each of them.
func PlayReport(t *testing.T, door string, ask func(t *testing.T, task string) string) {
	t.Helper()
	streams, ok := ReportDoors[door]
	if !ok {
		t.Fatalf("there is no door %q", door)
	}
	for _, task := range reportTasks {
		t.Run(door+"/"+task, func(t *testing.T) {
			shown := ask(t, task)
			answer := shown
			if streams {
				answer = strings.TrimLeft(strings.TrimPrefix(shown, said), "\n")
			}
			if answer != Report {
				t.Errorf("%s shows the answer %q, want %q", door, shown, Report)
			}
		})
	}
}
