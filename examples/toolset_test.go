package examples

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// begin toolset

// List is a shopping list with the three functions by which a model uses it: one object, one lock,
// three tools, each with its own schema and effect.
type List struct {
	mu    sync.Mutex
	items []string
	tools []*pawl.Tool
}

type item struct {
	Name string `json:"name" jsonschema:"what to buy"`
}

// NewList makes the tools once, so that their schemas are compiled once.
func NewList() *List {
	l := &List{}
	add := pawl.Func("list_add", "Puts an item on the shopping list.", l.add)
	add.Effect = pawl.EffectIdempotent // twice is as good as once
	remove := pawl.Func("list_remove", "Takes an item off the shopping list.", l.remove)
	show := pawl.Func("list_show", "Shows the shopping list.", l.show)
	show.Effect = pawl.EffectRead // may run in parallel, and be repeated
	l.tools = []*pawl.Tool{add, remove, show}
	return l
}

var _ pawl.Toolset = (*List)(nil)

// Tools returns the three functions. It is called when a run begins, so a toolset may offer
// different tools to different runs.
func (l *List) Tools(context.Context) ([]*pawl.Tool, error) { return l.tools, nil }

func (l *List) add(_ context.Context, in item) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.items, in.Name) {
		l.items = append(l.items, in.Name)
	}
	return in.Name + " is on the list.", nil
}

func (l *List) remove(_ context.Context, in item) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.items, in.Name)
	if i < 0 { // the model receives the error: say what would be right
		return "", fmt.Errorf("%q is not on the list, which has %q", in.Name, l.items)
	}
	l.items = slices.Delete(l.items, i, i+1)
	return in.Name + " is off the list.", nil
}

func (l *List) show(context.Context, struct{}) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.items), nil
}

// end toolset

// A custom Toolset is any type with a method Tools.
func Example_toolset() {
	model := script.New(
		script.Call("list_add", `{"name":"milk"}`),
		script.Call("list_remove", `{"name":"bread"}`),
		script.Call("list_show", `{}`),
		script.Say("Milk it is."),
	)
	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{NewList()}}
	res, err := agent.Run(context.Background(), llm.User("Milk instead of bread, please."))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range res.Steps {
		for _, x := range s.Executions {
			fmt.Printf("%s: %s\n", x.Outcome, x.Result.Text())
		}
	}
	fmt.Println(res.Text())
	// Output:
	// ok: milk is on the list.
	// error: "bread" is not on the list, which has ["milk"]
	// ok: ["milk"]
	// Milk it is.
}
