package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server/uistream"
	"github.com/pawl-go/pawl/team"
	"github.com/pawl-go/pawl/tools/outside"
)

// remoteTeam is a team with a worker whose work is done by the clerk of another server, over A2A,
// and a worker that pays by itself.
func remoteTeam(t *testing.T, url string) *pawl.Agent {
	t.Setenv("CLERK_TOKEN", a2aTokens[0].Token)
	defs, err := outside.Parse([]byte("tools:\n  - a2a: {name: clerk, description: Looks things up., effect: read, url: \"" + url +
		"\", headers: {Authorization: \"Bearer ${CLERK_TOKEN}\"}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	far, err := outside.New(defs, nil)
	if err != nil {
		t.Fatal(err)
	}
	asks := func(message string) script.Turn { return script.Call("clerk", map[string]string{"message": message}) }
	said := script.Func(func(req *llm.Request) script.Turn {
		var all []string
		for _, r := range script.Results(req) {
			all = append(all, r.Text())
		}
		return script.Say(strings.Join(all, "; "))
	})
	task := func(worker string) script.Turn { return script.Call(worker, map[string]string{"task": "work"}) }
	pay := pawl.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) { return "paid", nil })
	lead := &pawl.Agent{Name: "lead", Model: script.New(script.Together(script.Say("I ask both."), task("scout"), task("payer")), said)}
	scout := &pawl.Agent{Name: "scout", Model: script.New(script.Together(asks("look Oslo"), asks("fail")), said), Tools: []pawl.Toolset{far}}
	payer := &pawl.Agent{Name: "payer", Model: script.New(script.Call("pay", nil), said), Tools: []pawl.Toolset{pay}}
	a, err := team.Network(lead, team.Worker{Agent: scout}, team.Worker{Agent: payer})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// An agent of another server works in a team: the lead gets what its worker made of the answer and
// of a failed task. The events of the inner runs and handoffs are valid streams of all protocols.
func TestTeamsInStreams(t *testing.T) {
	_, h := a2aServer(t)
	runs := map[string][]pawl.Event{}
	record := func(name string, a *pawl.Agent, msgs ...llm.Message) *pawl.Result {
		t.Helper()
		var res *pawl.Result
		for e, err := range a.Stream(t.Context(), msgs...) {
			if err != nil {
				t.Fatal(err)
			}
			runs[name] = append(runs[name], e)
			if e.Kind == pawl.EventRunEnded && e.Run == "run" {
				res = e.Result
			}
		}
		return res
	}
	const works = "Done: found Oslo; The task is failed"
	got := record("team", remoteTeam(t, h.URL), llm.User("Work.")).Text()
	if !strings.HasPrefix(got, works) || !strings.HasSuffix(got, "; paid") {
		t.Errorf("the team answers %q", got)
	}
	desk := &pawl.Agent{Name: "desk", Model: script.New(script.Together(script.Say("Wait."), script.Call("transfer_to_billing", nil)))}
	billing := &pawl.Agent{Name: "billing", Model: script.New(script.Loop(script.Say("It is billed.")))}
	both, err := team.Handoff(desk, nil, team.Worker{Agent: billing, Description: "Bills."})
	if err != nil {
		t.Fatal(err)
	}
	record("handoff", both, llm.User("Bill."))

	var streams []stream
	var names []string
	for name, events := range runs {
		for _, p := range []uistream.Protocol{uistream.AISDK6, uistream.AISDK7, uistream.AGUI0, uistream.AGUI1} {
			streams, names = append(streams, framesOf(streamOf(p), events)), append(names, name+" in "+string(p))
		}
	}
	for i, fault := range verified(t, streams) {
		all := fmt.Sprintf("%s", streams[i].Frames)
		want := "billing answers from now on"
		switch {
		case names[i] == "team in ag-ui-1":
			want = "SUBAGENT_STARTED"
		case strings.HasPrefix(names[i], "team"):
			want = works
		}
		if fault != "" || !strings.Contains(all, want) || strings.Contains(all, "the events ended") {
			t.Errorf("%s: %q, without %q: %s", names[i], fault, want, all)
		}
	}
}
