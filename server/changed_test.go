package server_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

// A server with another version of an agent continues a run with the instructions that it began
// with. If a tool has changed, the run is failed with the reason, which the API and the log show.
func TestDeployedAgent(t *testing.T) {
	for what, deploy := range map[string]func(*pawl.Agent){
		"instructions": func(a *pawl.Agent) { a.Instructions = "Be brief." },
		"tool": func(a *pawl.Agent) {
			pay := a.Tools[0].(*pawl.Tool)
			pay.Input = json.RawMessage(`{"type":"object","properties":{"invoice":{"type":"string"}}}`)
		},
	} {
		t.Run(what, func(t *testing.T) {
			j, log := new(store.MemoryJournal), new(bytes.Buffer)
			var run api.Run
			first := serve(t, func(o *options) { o.Journal = j })
			first.do("POST", "/v1/runs", `{"id":"r","input":"pay 1","wait":true}`, 201, &run)
			body := `{"key":"run/1/0","digest":"` + run.Pending[0].Digest + `"}`
			if err := first.s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			v := serve(t, func(o *options) {
				o.Journal, o.Log = j, slog.New(slog.NewTextHandler(log, nil))
				deploy(o.Agents[0])
			})
			v.do("POST", "/v1/runs/r/approve", body, 200, nil)
			v.events(v.request("GET", "/v1/runs/r/events", "").Body, nil)
			run = api.Run{}
			v.do("GET", "/v1/runs/r", "", 200, &run)
			var inbox api.Inbox
			if v.do("GET", "/v1/pending", "", 200, &inbox); (len(inbox.Changed) == 1) != (what == "tool") {
				t.Errorf("the inbox has %+v", inbox)
			}
			lines := strings.Count(log.String(), "cannot continue with the present agent")
			switch what {
			case "instructions":
				if run.State != "over" || run.Code != "" || lines != 0 {
					t.Errorf("%+v, %s", run, log)
				}
			case "tool":
				if run.State != "failed" || run.Code != "changed" || !strings.Contains(run.Cause, "pay (input was") ||
					lines != 1 {
					t.Errorf("%+v, %s", run, log)
				}
			}
		})
	}
}

// Versions of an agent are served side by side: a new run gets the newest, and a run that began
// with a version continues with that one, or without it with the newest.
func TestAgentVersions(t *testing.T) {
	j := new(store.MemoryJournal)
	with := func(versions ...string) *serving {
		return serve(t, func(o *options) {
			o.Journal, o.Agents = j, nil
			for _, v := range versions {
				a := clerk(&world{})
				a.Name, a.Instructions = "clerk@"+v, "Version "+v
				o.Agents = append(o.Agents, a)
			}
		})
	}
	var run api.Run
	first := with("1")
	first.do("POST", "/v1/runs", `{"id":"r","agent":"clerk","input":"pay 1","wait":true}`, 201, &run)
	if run.Agent != "clerk@1" {
		t.Errorf("got %s", run.Agent)
	}
	key := `{"key":"run/1/0","digest":"` + run.Pending[0].Digest + `"}`
	v := with("1", "10", "9")
	v.do("POST", "/v1/runs", `{"id":"n","agent":"clerk","input":"hello","wait":true}`, 201, &run)
	if run.Agent != "clerk@10" || run.State != "over" {
		t.Errorf("got %+v", run)
	}
	v.do("POST", "/v1/runs", `{"id":"x","agent":"clerk@3","input":"hello"}`, 404, nil)
	last := with("2")
	last.do("POST", "/v1/runs/r/approve", key, 200, nil)
	last.events(last.request("GET", "/v1/runs/r/events", "").Body, nil)
	run = api.Run{}
	if last.do("GET", "/v1/runs/r", "", 200, &run); run.State != "over" || run.Agent != "clerk@1" {
		t.Errorf("got %+v", run)
	}
}
