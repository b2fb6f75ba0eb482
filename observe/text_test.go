package observe_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/script"
)

func ExampleText() {
	agent := &pawl.Agent{Model: script.New(script.Say("Hello, you."))}
	text, end := observe.Text(agent.Stream(context.Background(), llm.User("Hi.")))
	for s := range text {
		fmt.Print(s)
	}
	res, err := end()
	fmt.Println("", res.Stop, err)
	// Output:
	// Hello, you. answer <nil>
}

func TestText(t *testing.T) {
	agent := func() *pawl.Agent {
		inner := &pawl.Agent{Name: "inner", Model: script.New(script.Say("Inside."))}
		return &pawl.Agent{Model: script.New(script.Together(script.Say("I look."), script.Call("inner", `{"task":"look"}`)), script.Say("Seen.")),
			Tools: []pawl.Toolset{inner.Tool("Looks.")}, Limits: pawl.Limits{Rounds: 1}}
	}
	text, end := observe.Text(agent().Stream(t.Context(), llm.User("go")))
	got := ""
	for s := range text {
		got += s
	}
	res, err := end()
	var stop *pawl.StopError
	if got != "I look.\nSeen." || res == nil || !errors.As(err, &stop) || stop.Reason != pawl.StopLimit {
		t.Errorf("got %q, %+v, %v", got, res, err)
	}
	if again, failed := end(); again != res || failed != err {
		t.Errorf("a second end: got %+v, %v", again, failed)
	}

	text, end = observe.Text(agent().Stream(t.Context(), llm.User("go")))
	for range text {
		break
	}
	if res, err := end(); res != nil || err == nil {
		t.Errorf("left early: got %+v, %v", res, err)
	}

	_, end = observe.Text(agent().Stream(t.Context(), llm.User("go")))
	if res, err := end(); res == nil || !errors.As(err, &stop) {
		t.Errorf("not read: got %+v, %v", res, err)
	}
}
