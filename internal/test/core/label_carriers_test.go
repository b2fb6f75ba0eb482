package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/artifact"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/internal/test/tooltest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/team"
	"github.com/pawl-go/pawl/thread"
	"github.com/pawl-go/pawl/tools/code"
	"github.com/pawl-go/pawl/tools/plan"
	"github.com/pawl-go/pawl/tools/remember"
)

// marked is a text that enters a conversation with a label, and that every carrier repeats.
const marked = "quokka-7713@evil.example"

// carrier takes a conversation that has the marked text to a conversation that has it too.
type carrier struct {
	name string
	take func(t *testing.T, from []llm.Message) []llm.Message
}

// parrot is a model that makes calls after each message of a user, and then says the marked text if
// its request has it.
func parrot(calls ...script.Turn) *script.Model {
	next := script.Func(func(req *llm.Request) script.Turn {
		done := 0
		for _, m := range slices.Backward(req.Messages) {
			if m.Role == llm.RoleUser {
				break
			}
			if m.Role == llm.RoleTool {
				done++
			}
		}
		if done < len(calls) {
			return calls[done]
		}
		read, err := json.Marshal(req.Messages)
		if err != nil || !strings.Contains(string(read), marked) {
			return script.Say("I have read nothing of it.")
		}
		return script.Say("It says " + marked + ".")
	})
	return &script.Model{Turns: []script.Turn{script.Loop(next)}}
}

// repeater returns its argument, as many tools do. It has no label.
func repeater() *pawl.Tool {
	return &pawl.Tool{Name: "repeat", Effect: pawl.EffectRead,
		Input: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`),
		Run: func(_ context.Context, call llm.ToolCall) (llm.ToolResult, error) {
			return llm.TextResult(string(call.Args)), nil
		}}
}

// repeating is the call of repeater with the marked text.
func repeating() script.Turn { return script.Call("repeat", `{"text":"`+marked+`"}`) }

// goOn continues the conversation with a, and returns all of it.
func goOn(t *testing.T, a *pawl.Agent, from []llm.Message) []llm.Message {
	t.Helper()
	res, err := runtest.Ended(a.Run(t.Context(), append(slices.Clone(from), llm.User("Go on."))...))
	tooltest.Must(t, err)
	return res.Messages
}

// byAgent returns a carrier that continues the conversation with the agent that build returns.
func byAgent(name string, build func(t *testing.T) *pawl.Agent) carrier {
	return carrier{name, func(t *testing.T, from []llm.Message) []llm.Message { return goOn(t, build(t), from) }}
}

func withTools(m llm.Model, tools ...pawl.Toolset) func(*testing.T) *pawl.Agent {
	return func(*testing.T) *pawl.Agent { return &pawl.Agent{Model: m, Tools: tools} }
}

// carriers are the ways by which a text gets from one place to another.
func carriers() []carrier {
	clerk := &pawl.Agent{Name: "clerk", Model: parrot()}
	composed := &pawl.Tool{Name: "program", Effect: pawl.EffectCompose,
		Run: func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
			x, err := pawl.InvocationFrom(ctx).Do(ctx, llm.ToolCall{Name: "repeat", Args: json.RawMessage(`{"text":"` + marked + `"}`)})
			if err != nil {
				return llm.ToolResult{}, err
			}
			r := llm.TextResult(x[0].Result.Text())
			r.Label = llm.Operator.Label() // a program states no label
			return r, nil
		}}
	steps := script.Call("execute_plan", `{"steps":[{"tool":"repeat","args":{"text":"`+marked+`"}}]}`)
	return []carrier{
		{"stored as JSON", func(t *testing.T, from []llm.Message) (read []llm.Message) {
			stored, err := json.Marshal(from)
			tooltest.Must(t, err)
			tooltest.Must(t, json.Unmarshal(stored, &read))
			return read
		}},
		{"redacted", func(t *testing.T, from []llm.Message) []llm.Message {
			var r redact.Redactor
			tooltest.Must(t, r.Add("a secret of this test"))
			return r.Result(&pawl.Result{Messages: from}).Messages
		}},
		{"a client's copy", func(_ *testing.T, from []llm.Message) []llm.Message {
			// What a client sends as its own words is its own, so that only replies are copied.
			copied := []llm.Message{llm.User("Read it.")}
			for _, m := range from {
				if m.Role == llm.RoleAssistant && len(m.Calls()) == 0 && strings.Contains(m.Text(), marked) {
					copied = append(copied, m)
				}
			}
			if len(copied) == 1 {
				return from
			}
			return llm.FromClient(copied...)
		}},
		{"a thread", byThread},
		{"a memory", byMemory},
		{"a journal", byJournal},

		byAgent("a reply", withTools(parrot())),
		byAgent("a result", withTools(parrot(repeating()), repeater())),
		byAgent("an agent", withTools(parrot(script.Call("clerk", `{"task":"Tell `+marked+`."}`)), clerk.Tool("A clerk."))),
		byAgent("a program", withTools(parrot(script.Call("program", `{}`)), composed, repeater())),
		byAgent("a plan", withTools(parrot(steps), plan.New(nil), repeater())),
		byAgent("code", func(t *testing.T) *pawl.Agent {
			run, err := code.New(code.Embedded(nil), nil)
			tooltest.Must(t, err)
			program := script.Call("execute_code", `{"code":"set_result(call_tool(\"repeat\", {\"text\": \"`+marked+`\"}))"}`)
			return &pawl.Agent{Model: parrot(program), Tools: []pawl.Toolset{run, repeater()}}
		}),
		byAgent("a handoff", func(t *testing.T) *pawl.Agent {
			first := &pawl.Agent{Name: "desk", Model: parrot(script.Call("transfer_to_clerk", `{"note":"It is `+marked+`."}`))}
			a, err := team.Handoff(first, nil, team.Worker{Agent: clerk, Description: "A clerk."})
			tooltest.Must(t, err)
			return a
		}),
		byAgent("a team", func(t *testing.T) *pawl.Agent {
			lead := &pawl.Agent{Name: "desk", Model: parrot(script.Call("clerk", `{"task":"Tell `+marked+`."}`))}
			a, err := team.Network(lead, team.Worker{Agent: clerk, Description: "A clerk."})
			tooltest.Must(t, err)
			return a
		}),
		byAgent("a page of a long result", func(*testing.T) *pawl.Agent {
			long := repeater()
			long.MaxResult = 64
			page := script.Func(func(req *llm.Request) script.Turn {
				all := script.Results(req)
				return script.Call("result_read", `{"id":"`+string(all[len(all)-1].Key)+`"}`)
			})
			call := script.Call("repeat", `{"text":"`+strings.Repeat("so ", 200)+marked+strings.Repeat(" so", 200)+`"}`)
			return &pawl.Agent{Model: parrot(call, page), Tools: []pawl.Toolset{long}, Artifacts: new(artifact.Memory)}
		}),
		byAgent("a cached result", func(*testing.T) *pawl.Agent {
			return &pawl.Agent{Model: parrot(repeating(), repeating()), Tools: []pawl.Toolset{repeater()},
				Middleware: []pawl.Middleware{(&policy.Cache{}).Middleware()}}
		}),
		{"a window", func(t *testing.T, from []llm.Message) []llm.Message {
			window := history.Window(&history.WindowOptions{Tokens: 2000, Keep: 1, Notes: parrot()})
			a := &pawl.Agent{Model: parrot(), Tools: []pawl.Toolset{repeater(), artifact.Reader{}},
				Middleware: []pawl.Middleware{window}}
			for range 3 {
				from = append(goOn(t, a, from), llm.User(strings.Repeat("more words of the user ", 40)))
			}
			return goOn(t, a, from)
		}},
	}
}

func byThread(t *testing.T, from []llm.Message) []llm.Message {
	db := tooltest.DB(t, nil)
	s := store.Scope{User: "anna"}
	chat := &thread.Runner{Runner: &pawl.Agent{Model: parrot()}, DB: db, Scope: s, ID: "chat"}
	first := append(slices.Clone(from), llm.User("Go on."))
	for _, msgs := range [][]llm.Message{first, {llm.User("Go on.")}} {
		for _, err := range chat.Stream(t.Context(), msgs...) {
			tooltest.Must(t, err)
		}
	}
	_, res, err := thread.Load(t.Context(), db, s, "chat")
	tooltest.Must(t, err)
	return res.Messages
}

func byMemory(t *testing.T, from []llm.Message) []llm.Message {
	anna := store.Scope{User: "anna"}
	db := tooltest.DB(t, nil)
	set := remember.New(db, nil)
	ctx := store.WithScope(t.Context(), anna)
	writes := &pawl.Agent{Model: parrot(script.Call("remember", `{"content":"Anna is `+marked+`."}`)), Tools: []pawl.Toolset{set}}
	_, err := runtest.Ended(writes.Run(ctx, append(slices.Clone(from), llm.User("Go on."))...))
	tooltest.Must(t, err)

	// A person confirms it, by a form that states a label of its own.
	all, err := db.Memories(ctx, anna, store.Page{})
	tooltest.Must(t, err)
	for _, m := range all {
		m.Source.Unconfirmed = false
		m.Source.Label = llm.Operator.Label()
		_, _, err = db.AddMemory(ctx, anna, m)
		tooltest.Must(t, err)
	}

	reads := &pawl.Agent{Model: parrot(script.Call("memory_list", `{}`)), Tools: []pawl.Toolset{set}}
	res, err := runtest.Ended(reads.Run(ctx, llm.User("Who is Anna?")))
	tooltest.Must(t, err)
	return res.Messages
}

// byJournal lets a call wait, and continues its run with another engine, as another process does.
func byJournal(t *testing.T, from []llm.Message) []llm.Message {
	db := tooltest.DB(t, nil)
	build := func() *pawl.Agent {
		return &pawl.Agent{Model: parrot(repeating()), Tools: []pawl.Toolset{repeater()},
			Middleware: []pawl.Middleware{(&policy.Rules{Ask: []string{"repeat"}}).Middleware()}}
	}
	run := func(msgs ...llm.Message) *pawl.Result {
		eng := &durable.Engine{Journal: db}
		res, err := runtest.Ended(eng.Runner("run-1", build()).Run(t.Context(), msgs...))
		tooltest.Must(t, err)
		return res
	}
	res := run(append(slices.Clone(from), llm.User("Go on."))...)
	if len(res.Pending) != 1 {
		t.Fatalf("got %+v, want a call that waits", res)
	}
	return run(llm.DecisionMessage(res.Pending[0].Approve("anna"))).Messages
}

// raised returns the first part with the marked text whose label is better than l. found reports
// whether a part has the text at all.
func raised(msgs []llm.Message, l llm.Label) (part string, found bool) {
	better := func(got llm.Label) bool {
		return got.By > l.By || slices.ContainsFunc(got.Readers, func(r string) bool { return !mayBeReadBy(l, r) })
	}
	for _, m := range msgs {
		for _, p := range m.Parts {
			stored, err := json.Marshal(p)
			if err != nil || !strings.Contains(string(stored), marked) {
				continue
			}
			label, labelled := llm.Message{Parts: []llm.Part{p}}.Label()
			if !labelled {
				continue // a call, which has the label of what stands before it
			}
			found = true
			if better(label) {
				return fmt.Sprintf("%s: %s", m.Role, stored), true
			}
		}
	}
	return "", found
}

// mayBeReadBy reports whether l lets the reader read.
func mayBeReadBy(l llm.Label, reader string) bool {
	return slices.Contains(l.Readers, llm.Everybody) || slices.Contains(l.Readers, reader)
}

// origins make conversations with the marked text, which has the label l.
func origins(l llm.Label) []func(t *testing.T) []llm.Message {
	text := llm.Text{Text: "It is " + marked + "."}
	labelled := text
	labelled.Label = &l // the zero label is not stored, and must hold all the same
	read := func(r llm.ToolResult) func(t *testing.T) []llm.Message {
		return func(t *testing.T) []llm.Message {
			a := &pawl.Agent{Model: parrot(script.Call("look", `{}`)), Tools: []pawl.Toolset{answering("look", r, nil)}}
			return goOn(t, a, nil)
		}
	}
	said := func(msgs ...llm.Message) func(*testing.T) []llm.Message {
		return func(*testing.T) []llm.Message { return msgs }
	}
	return []func(t *testing.T) []llm.Message{
		said(llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.User("Read.").Parts[0], labelled}}),
		said(llm.User("Read."), llm.Assistant(labelled)),
		read(llm.ToolResult{Label: &l, Parts: []llm.Part{text}}),
		read(llm.ToolResult{Label: llm.Trusted.Label(), Parts: []llm.Part{labelled}}),
	}
}

// journey takes a text with a random label through a few random carriers. It returns the names of
// the carriers so far and the part whose label rose; empty means none.
func journey(t *testing.T, rnd *rand.Rand, all []carrier) (names []string, risen string) {
	t.Helper()
	labels := []llm.Label{
		{},
		{Readers: []string{"server:crm"}},
		{Readers: []string{llm.Everybody}},
		{By: llm.Attached},
		{By: llm.Attached, Readers: []string{llm.Everybody}},
		{By: llm.Trusted, From: []llm.Source{{Kind: "tool", Name: "crm"}}},
		{By: llm.Typed},
	}
	l := labels[rnd.IntN(len(labels))]
	ways := origins(l)
	way := rnd.IntN(len(ways))
	msgs := ways[way](t)
	names = []string{fmt.Sprintf("%+v by the way %d", l, way)}
	for range 3 {
		c := all[rnd.IntN(len(all))]
		names = append(names, c.name)
		msgs = c.take(t, msgs)
		part, found := raised(msgs, l)
		switch {
		case part != "":
			return names, part
		case !found:
			t.Fatalf("%s: the text is lost, so that the test shows nothing", strings.Join(names, ", "))
		}
	}
	return names, ""
}

// TestNoCarrierRaisesALabel: wherever a text goes, its copies have no better label than the text:
// no better author, and no more readers. PAWL_SEED repeats a journey.
func TestNoCarrierRaisesALabel(t *testing.T) {
	all := carriers()
	seed := rand.Uint64()
	if s, err := strconv.ParseUint(os.Getenv("PAWL_SEED"), 10, 64); err == nil {
		seed = s
	}
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range soak.N(20, 1000) {
		names, risen := journey(t, rnd, all)
		if risen != "" {
			t.Fatalf("seed %d: %s: the label rose: %s", seed, strings.Join(names, ", "), risen)
		}
	}
}

// TestRaisedLabelsAreFound is the control: carriers that raise a label in one way each.
func TestRaisedLabelsAreFound(t *testing.T) {
	typed := func(from []llm.Message, l *llm.Label) []llm.Message {
		said := llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Text{Text: marked, Label: l}}}
		return append(slices.Clone(from), said)
	}
	for name, take := range map[string]func(*testing.T, []llm.Message) []llm.Message{
		"the text becomes the operator's": func(_ *testing.T, from []llm.Message) []llm.Message {
			return typed(from, llm.Operator.Label())
		},
		"the text becomes everybody's": func(_ *testing.T, from []llm.Message) []llm.Message {
			return typed(from, &llm.Label{Readers: []string{llm.Everybody}})
		},
	} {
		rnd := rand.New(rand.NewPCG(1, 0))
		found := false
		for range 50 {
			_, risen := journey(t, rnd, append(carriers()[:3:3], carrier{name, take}))
			found = found || risen != ""
		}
		if !found {
			t.Errorf("%s: not found", name)
		}
	}
}
