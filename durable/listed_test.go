package durable_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// asked is a Toolset that counts how often it is asked.
type asked struct {
	n    int
	fail error
}

func (a *asked) Tools(context.Context) ([]*pawl.Tool, error) {
	a.n++
	f := pawl.Func("f", "Does.", func(context.Context, struct{}) (string, error) { return "done", nil })
	return []*pawl.Tool{f}, a.fail
}

// The check before a run and the run ask each toolset once. A run whose toolset fails leaves no
// journal.
func TestARunAsksToolsetsOnce(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		eng := &durable.Engine{Journal: new(store.MemoryJournal)}
		set := new(asked)
		a := &pawl.Agent{Model: script.New(script.Call("f", nil), script.Say("ok")), Tools: []pawl.Toolset{set}}
		run := eng.Runner("r", a)
		var res *pawl.Result
		var err error
		if streamed {
			res, err = pawl.Collect(run.Stream(t.Context(), llm.User("go")), nil)
		} else {
			res, err = run.Run(t.Context(), llm.User("go"))
		}
		if err != nil || res.Text() != "ok" || set.n != 1 {
			t.Errorf("streamed %t: got %v, asked %d times", streamed, err, set.n)
		}
	}
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	boom := errors.New("boom")
	a := &pawl.Agent{Model: script.New(), Tools: []pawl.Toolset{&asked{}, &asked{fail: boom}}}
	_, err := eng.Runner("r", a).Run(t.Context(), llm.User("go"))
	if !errors.Is(err, boom) || !strings.HasPrefix(err.Error(), "Tools[1]: ") {
		t.Errorf("got %v", err)
	}
	if _, err := eng.Runner("r", a).Run(t.Context()); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the run left a journal: %v", err)
	}
}
