package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
)

// named is a model with a name.
type named struct {
	llm.Model
	name string
}

func (m named) Name() string { return m.name }

// Unwrap returns the model itself.
func (m named) Unwrap() llm.Model { return m.Model }

// versioned is a version of an agent whose call waits for an approval, and its model.
func versioned(paid *int, version, schema string) (*pawl.Agent, *script.Model) {
	m := script.New(script.Call("pay", `{"amount":5}`), script.Say("done"))
	look := pawl.Func("look", "looks, version "+version, func(context.Context, none) (string, error) { return "", nil })
	pay := &pawl.Tool{Name: "pay", Description: "pays, version " + version, Input: json.RawMessage(schema),
		Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			*paid++
			return llm.TextResult("paid"), nil
		}}
	a := &pawl.Agent{Name: "clerk", Instructions: "Version " + version + ".\n", Tools: []pawl.Toolset{look, pay},
		Model: named{m, "sim:v" + version}, Middleware: []pawl.Middleware{pawl.Approve(func(_ context.Context, c llm.ToolCall,
			_ *pawl.Tool) (pawl.Approval, error) {
			return pawl.Approval{Verdict: pawl.VerdictAsk}, nil
		})}}
	a.Settings.MaxTokens = 100 * len(version)
	return a, m
}

const (
	payIn    = `{"type":"object","properties":{"amount":{"type":"integer","description":"Euros."},"title":{"type":"string"}}}`
	payTexts = `{"type":"object","description":"A payment.","properties":{"title":{"type":"string"},"amount":{"description":"In euros.","type":"integer"}}}`
	payOther = `{"type":"object","properties":{"amount":{"type":"integer"},"title":{"type":"integer"}}}`
)

func journals(t *testing.T) map[string]store.Journal {
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "pawl.db"), &sqlite.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return map[string]store.Journal{"memory": new(store.MemoryJournal), "sqlite": db}
}

// begun begins the run r with version 1, and approves its call.
func begun(t *testing.T, eng *durable.Engine, paid *int) {
	t.Helper()
	a, _ := versioned(paid, "1", payIn)
	res, err := runtest.Ended(eng.Runner("r", a).Run(t.Context(), llm.User("Pay.")))
	if err != nil || len(res.Pending) != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	if err := eng.Decide(t.Context(), "r", res.Pending[0].Approve("a")); err != nil {
		t.Fatal(err)
	}
}

// A run continues with the agent that it began with: instructions, settings, tools and their texts,
// and the name of the model. The approval of its call stays valid.
func TestPinned(t *testing.T) {
	for name, j := range journals(t) {
		t.Run(name, func(t *testing.T) {
			paid := 0
			eng := &durable.Engine{Journal: j}
			begun(t, eng, &paid)
			a, m := versioned(&paid, "22", payTexts)
			more := pawl.Func("more", "is new", func(context.Context, none) (string, error) { return "", nil })
			a.Tools = []pawl.Toolset{more, a.Tools[1], a.Tools[0]}
			res, err := eng.Runner("r", a).Run(t.Context())
			if err != nil || res.Text() != "done" || paid != 1 {
				t.Fatalf("%+v, %v, paid %d times", res, err, paid)
			}
			req := m.Requests()[len(m.Requests())-1]
			if req.Model != "v1" || req.Settings.MaxTokens != 100 || req.Messages[0].Text() != "Version 1.\n" {
				t.Errorf("the request is %s", asJSON(req))
			}
			if len(req.Tools) != 2 || req.Tools[0].Description != "looks, version 1" ||
				req.Tools[1].Description != "pays, version 1" || string(req.Tools[1].Input) != payIn {
				t.Errorf("the tools are %s", asJSON(req.Tools))
			}
			if again, err := eng.Runner("r", a).Run(t.Context()); err != nil || again.Text() != "done" {
				t.Errorf("its stored result: %+v, %v", again, err)
			}
		})
	}
}

// A run whose program has changed too much is failed with the reason. It does not stay open, where
// each scan would find it again. With AcceptChanges it continues with the present agent.
func TestChangedIsFailed(t *testing.T) {
	for name, j := range journals(t) {
		t.Run(name, func(t *testing.T) {
			paid, reported := 0, 0
			eng := &durable.Engine{Journal: j, Report: func(_ string, err error) {
				if errors.Is(err, durable.ErrChanged) {
					reported++
				}
			}}
			begun(t, eng, &paid)
			a, m := versioned(&paid, "22", payOther)
			_, err := eng.Runner("r", a).Run(t.Context())
			if !errors.Is(err, durable.ErrChanged) || !strings.Contains(err.Error(), `pay (input was`) {
				t.Fatalf("%v", err)
			}
			head, err := j.JournalRun(t.Context(), store.Scope{}, "r")
			if err != nil || head.State != store.JournalFailed || head.Owner != "" {
				t.Fatalf("%+v, %v", head, err)
			}
			var sum durable.Summary
			if json.Unmarshal(head.Summary, &sum) != nil || sum.Code != "changed" || sum.Stop != pawl.StopFailed ||
				!strings.Contains(sum.Cause, `"integer`) || reported != 1 {
				t.Errorf("%+v, reported %d times", sum, reported)
			}
			later := store.DueQuery{Now: time.Now().Add(time.Hour)}
			if open, err := j.DueRuns(t.Context(), later); err != nil || len(open) > 0 {
				t.Errorf("%+v, %v", open, err)
			}
			b, _ := versioned(&paid, "1", payIn) // the former program
			if _, err := eng.Replay(t.Context(), "r", b); err != nil {
				t.Error(err)
			}
			accepting := &durable.Engine{Journal: j, AcceptChanges: true}
			res, err := runtest.Ended(accepting.Runner("r", a).Run(t.Context()))
			if err != nil || res.Stop != pawl.StopPending || paid != 0 {
				t.Fatalf("%+v, %v; an approval of the old tool is none of the new one", res, err)
			}
			if err := eng.Decide(t.Context(), "r", res.Pending[0].Approve("a")); err != nil {
				t.Fatal(err)
			}
			res, err = eng.Runner("r", a).Run(t.Context()) // the journal has the new agent
			if err != nil || res.Text() != "done" || paid != 1 {
				t.Fatalf("%+v, %v, paid %d times", res, err, paid)
			}
			req := m.Requests()[len(m.Requests())-1]
			if req.Messages[0].Text() != "Version 22.\n" || req.Settings.MaxTokens != 200 || req.Tools[1].Description != "pays, version 22" {
				t.Errorf("the request is %s", asJSON(req))
			}
			if p, err := eng.Replay(t.Context(), "r", a); err != nil || p.Requests != 1 {
				t.Errorf("replay compares the requests since the change: %+v, %v", p, err)
			}
			if _, err := eng.Verify(t.Context(), "r", nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// An approval of a call does not cover the same tool at another address. A new one does, also in a
// process that reads the journal.
func TestApprovalOfAnotherAddress(t *testing.T) {
	for name, j := range journals(t) {
		t.Run(name, func(t *testing.T) {
			paid := 0
			begun(t, &durable.Engine{Journal: j}, &paid)
			a, _ := versioned(&paid, "1", payIn)
			a.Tools[1].(*pawl.Tool).Address = "https://other.example.com"
			accepting := &durable.Engine{Journal: j, AcceptChanges: true}
			for range 2 {
				res, err := runtest.Ended(accepting.Runner("r", a).Run(t.Context()))
				if err != nil || len(res.Pending) != 1 || paid != 0 {
					t.Fatalf("%+v, %v, paid %d times", res, err, paid)
				}
			}
			eng := &durable.Engine{Journal: j}
			open, err := eng.Pending(t.Context(), "r")
			if err != nil || len(open) != 1 {
				t.Fatalf("%+v, %v", open, err)
			}
			if err := eng.Decide(t.Context(), "r", open[0].Approve("a")); err != nil {
				t.Fatal(err)
			}
			if res, err := eng.Runner("r", a).Run(t.Context()); err != nil || res.Text() != "done" || paid != 1 {
				t.Errorf("%+v, %v, paid %d times", res, err, paid)
			}
		})
	}
}

// Another provider cannot continue with the recorded name.
func TestOtherProvider(t *testing.T) {
	paid := 0
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	begun(t, eng, &paid)
	a, m := versioned(&paid, "1", payIn)
	a.Model = named{m, "other:v1"}
	if _, err := eng.Runner("r", a).Run(t.Context()); !errors.Is(err, durable.ErrChanged) ||
		!strings.Contains(err.Error(), `was "sim:v1", is "other:v1"`) {
		t.Errorf("%v", err)
	}
}
