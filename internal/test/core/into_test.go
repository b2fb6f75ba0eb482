package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/gotypes"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/team"
)

// Three answers that break each type are sent back, and the fourth is the value: in memory, through
// an observer, and in a journal, whose replay asks nothing.
func TestIntoCorrectsAnswersOfGoTypes(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, s := range gotypes.All() {
		right := s.Random(r)
		turns := []script.Turn{}
		for _, wrong := range s.Refused() {
			turns = append(turns, script.Say(wrong))
		}
		turns = append(turns, script.Say(string(right)))

		eng := &durable.Engine{Journal: new(store.MemoryJournal)}
		for name, run := range map[string]func(*pawl.Agent) pawl.OutputRunner{
			"memory":  func(a *pawl.Agent) pawl.OutputRunner { return a },
			"journal": func(a *pawl.Agent) pawl.OutputRunner { return eng.Runner(s.Name, a) },
			"observed": func(a *pawl.Agent) pawl.OutputRunner {
				return observe.Sync(a, func(pawl.Event) {}).(pawl.OutputRunner)
			},
		} {
			m := script.New(turns...)
			a := &pawl.Agent{Model: m, Limits: pawl.Limits{Corrections: 3}}
			for range 2 {
				got, res, err := s.Into(t.Context(), run(a), "go")
				if err != nil || !bytes.Equal(got, right) || res.Spent.Corrections != 3 {
					t.Errorf("%s, %s: got %s, %v; want %s", s.Name, name, got, err, right)
				}
				if name != "journal" {
					break
				}
			}
			if n := len(m.Requests()); n != 4 {
				t.Errorf("%s, %s: %d requests", s.Name, name, n)
			}
		}
	}
}

// Three calls whose arguments break each type are results that the model reads, and the fourth
// runs.
func TestToolsCorrectArgumentsOfGoTypes(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, s := range gotypes.All() {
		right := s.Random(r)
		turns := []script.Turn{}
		for _, wrong := range append(s.Refused(), string(right)) {
			turns = append(turns, script.Call(s.Echo.Name, wrong))
		}
		a := &pawl.Agent{Model: script.New(append(turns, script.Say("done"))...), Tools: []pawl.Toolset{s.Echo},
			Limits: pawl.Limits{LoopThreshold: -1}}
		res, err := a.Run(t.Context(), llm.User("go"))
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		for i, step := range res.Steps[:4] {
			x := step.Executions[0]
			want := pawl.OutcomeInvalid
			if i == 3 {
				want = pawl.OutcomeOK
			}
			if x.Outcome != want || i == 3 && !bytes.Equal(x.Result.Data, right) {
				t.Errorf("%s, call %d: %s: %s", s.Name, i, x.Outcome, x.Result.Text())
			}
		}
	}
}

// order and item have checks of their own.
type order struct {
	Items []item `json:"items"`
	Total int    `json:"total"`
}

type item struct {
	Price int `json:"price"`
}

func (o *order) Validate() error {
	sum := 0
	for _, i := range o.Items {
		sum += i.Price
	}
	if sum != o.Total {
		return fmt.Errorf("total is %d, and the prices sum to %d", o.Total, sum)
	}
	return nil
}

func (i item) Validate() error {
	if i.Price < 0 {
		return errors.Join(errors.New("price must not be negative"), errors.New("give refunds elsewhere"))
	}
	return nil
}

// The checks of a type run the deepest first, and their joined errors are the correction, at every
// way to an answer.
func TestOwnChecks(t *testing.T) {
	wrong, right := `{"items":[{"price":1},{"price":-2}],"total":3}`, `{"items":[{"price":1}],"total":1}`
	want := "The answer cannot be used:\n- field items[1]: price must not be negative\n" +
		"- field items[1]: give refunds elsewhere\n- total is 3, and the prices sum to -1\nGive the whole answer again"
	tool := pawl.Func("look", "", func(context.Context, struct{}) (string, error) { return "seen", nil })
	tool.Effect = pawl.EffectRead
	desk := &pawl.Agent{Name: "desk", Model: script.New(script.Say(wrong), script.Say(right)),
		Output: pawl.SchemaFor[order](), OutputCheck: pawl.CheckFor[order]()}
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	for name, r := range map[string]pawl.OutputRunner{
		"agent": &pawl.Agent{Model: script.New(script.Say(wrong), script.Say(right))},
		"journal": eng.Runner("a", &pawl.Agent{
			Model: script.New(script.Say(wrong), script.Say(right))}),
		"final_answer": &pawl.Agent{Tools: []pawl.Toolset{tool},
			Model: script.New(script.Call("look", nil), script.Call("final_answer", wrong), script.Call("final_answer", right))},
	} {
		got, res, err := pawl.Into[order](t.Context(), r, llm.User("go"))
		if err != nil || got.Total != 1 {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		said := ""
		for _, m := range res.Messages {
			said += m.Text()
			for _, p := range m.Parts {
				if p, ok := p.(llm.ToolResult); ok {
					said += strings.ReplaceAll(p.Text(), "The arguments of final_answer", "The answer")
				}
			}
		}
		if name == "final_answer" {
			want = want[:strings.Index(want, "\nGive")]
		}
		if !strings.Contains(said, want) {
			t.Errorf("%s: the model read %q", name, said)
		}
	}

	res, err := desk.Run(t.Context(), llm.User("go"))
	if err != nil || string(res.Output) != right || res.Spent.Corrections != 1 {
		t.Errorf("the agent's own check: %s, %v", res.Output, err)
	}
}

// A run of a journal whose answers were all refused is asked again by its next start, and by the
// same id. Once it has an answer it asks no more.
func TestRefusedAnswersDoNotFreezeAJournal(t *testing.T) {
	wrong, right := script.Say(`{"items":[],"total":3}`), script.Say(`{"items":[],"total":0}`)
	m := script.New(wrong, wrong, wrong, wrong, wrong, wrong, wrong, right)
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	requests := []int{}
	for n := range 5 {
		got, _, err := pawl.Into[order](t.Context(), eng.Runner("r", &pawl.Agent{Model: m}), llm.User("go"))
		var unfit *pawl.OutputError
		if n < 3 && !errors.As(err, &unfit) || n >= 3 && (err != nil || got.Total != 0) {
			t.Errorf("start %d: %+v, %v", n, got, err)
		}
		requests = append(requests, len(m.Requests()))
	}
	// The first start has a request and two corrections, and each further one two corrections. The
	// fourth gets the answer, and the fifth asks nothing.
	if want := []int{3, 5, 7, 8, 8}; !slices.Equal(requests, want) {
		t.Errorf("%v requests, want %v", requests, want)
	}
}

// The agent to whom a conversation is handed over is held to the type too.
func TestIntoOfHandoffs(t *testing.T) {
	first := &pawl.Agent{Name: "first", Model: script.New(script.Call("transfer_to_billing", `{}`))}
	// A script counts the replies of the conversation, of which the first agent has one.
	billing := &pawl.Agent{Name: "billing", Model: script.New(script.Say("not asked"),
		script.Say(`{"items":[],"total":3}`), script.Say(`{"items":[],"total":0}`))}
	desk, err := team.Handoff(first, nil, team.Worker{Agent: billing})
	if err != nil {
		t.Fatal(err)
	}
	got, res, err := pawl.Into[order](t.Context(), desk, llm.User("go"))
	if err != nil || got.Total != 0 || res.Spent.Corrections != 1 {
		t.Errorf("%+v, %v, %+v", got, err, res)
	}
}
