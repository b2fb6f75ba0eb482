package server_test

import (
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server/api"
)

// counter answers with the number of messages that it reads, and with a number of its own as JSON.
func counter() *pawl.Agent {
	turn := script.Func(func(req *llm.Request) script.Turn {
		if req.Output == nil {
			return script.Say("no schema")
		}
		return script.Say(strings.Repeat(" ", 3) + `{"n":` + string(rune('0'+len(req.Messages))) + `}`)
	})
	return &pawl.Agent{Name: "counter", Model: &script.Model{Turns: []script.Turn{script.Loop(turn)}}}
}

// A client of /v1/runs states the schema of the answer. A run has one schema, and keeps it.
func TestOutputOfARun(t *testing.T) {
	v := serve(t, func(o *options) { o.Agents = []*pawl.Agent{counter()} })
	const schema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
	const start = `{"id":"r","input":"go","wait":true`

	var run api.Run
	v.do("POST", "/v1/runs", start+`,"output":`+schema+`}`, 201, &run)
	if string(run.Output) != `{"n":1}` {
		t.Errorf("the output is %s", run.Output)
	}
	v.do("POST", "/v1/runs", start+`,"output": `+strings.ReplaceAll(schema, ":", " : ")+`}`, 200, nil)
	v.do("POST", "/v1/runs", start+`}`, 200, nil)
	v.code("POST", "/v1/runs", start+`,"output":{"type":"array"}}`, 409, "conflict")

	run = api.Run{}
	v.do("POST", "/v1/runs", `{"id":"plain","input":"go","wait":true,"output":null}`, 201, &run)
	if run.Answer != "no schema" || run.Output != nil {
		t.Errorf("without a schema: %q, %s", run.Answer, run.Output)
	}
	v.code("POST", "/v1/runs", `{"id":"plain","output":`+schema+`}`, 409, "conflict")
	for _, wrong := range []string{`7`, `"x"`, `[]`, `{"type":"nothing"}`, `{"$ref":"https://example.com/s"}`} {
		v.code("POST", "/v1/runs", `{"id":"wrong","input":"go","output":`+wrong+`}`, 400, "bad_request")
	}
	v.code("GET", "/v1/runs/wrong", "", 404, "not_found")
}

// A run continues a run that is over: its conversation and its usage.
func TestPreviousOfARun(t *testing.T) {
	v := serve(t, func(o *options) {
		o.Agents = append(o.Agents, counter())
		o.Access.Tokens = []api.Token{
			{Name: "anna", Token: "0123456789abcdef", User: "anna", Scopes: []api.Scope{api.ScopeAll}},
			{Name: "ben", Token: "fedcba9876543210", User: "ben", Scopes: []api.Scope{api.ScopeAll}},
		}
	})
	v.token = "0123456789abcdef"
	const output = `,"wait":true,"output":{"type":"object"}}`

	var run api.Run
	v.do("POST", "/v1/runs", `{"id":"one","agent":"counter","input":"go"`+output, 201, nil)
	v.do("POST", "/v1/runs", `{"id":"two","agent":"counter","input":"go on","previous":"one"`+output, 201, &run)
	if string(run.Output) != `{"n":3}` || run.Spent.Requests != 2 {
		t.Errorf("the output is %s, after %+v", run.Output, run.Spent)
	}
	v.do("POST", "/v1/runs", `{"id":"two","agent":"counter","input":"go on","previous":"one"`+output, 200, nil)
	v.code("POST", "/v1/runs", `{"id":"two","input":"other","previous":"one"`+output, 409, "conflict")
	v.code("POST", "/v1/runs", `{"id":"two","previous":"two"`+output, 409, "conflict")
	v.code("POST", "/v1/runs", `{"id":"three","agent":"counter","input":"go","previous":"none"}`, 404, "not_found")

	v.do("POST", "/v1/runs", `{"id":"open","agent":"clerk","input":"pay 3","wait":true}`, 201, nil)
	v.code("POST", "/v1/runs", `{"id":"three","agent":"counter","input":"go","previous":"open"}`, 409, "conflict")

	v.token = "fedcba9876543210"
	v.code("POST", "/v1/runs", `{"id":"mine","agent":"counter","input":"go","previous":"one"}`, 404, "not_found")
}
