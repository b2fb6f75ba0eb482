package misuse_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// row is a mistake in a program.
type row struct {
	mistake string
	// do makes the mistake, and returns the error that the program gets.
	do func(t *testing.T) error
	// want is a part of that error. "" means that there is none, because the mistake is harmless:
	// do tests what the documentation says about it.
	want string
}

// All 71 mistakes of a review of the API have a clear error, or are harmless as documented.
func TestMisuse(t *testing.T) {
	rows := slices.Concat(messages, tools, results, durables, policies, packages, executors)
	if len(rows) != 71 {
		t.Errorf("there are %d rows, want 71", len(rows))
	}
	play(t, rows)
}

// So do mistakes of the same kinds that the review did not make: values that are nil, numbers and
// functions that mean nothing, and Runners that contradict themselves.
func TestFurtherMisuse(t *testing.T) { play(t, slices.Concat(nils, fields, runners)) }

// play makes each mistake.
func play(t *testing.T, rows []row) {
	for _, r := range rows {
		t.Run(r.mistake, func(t *testing.T) {
			t.Parallel()
			if fault := r.fault(t); fault != "" {
				t.Error(fault)
			}
		})
	}
}

// The checker finds a mistake that is silent, panics, hangs, or has an error that does not help.
func TestCheckerFindsFaults(t *testing.T) {
	patience = time.Second
	defer func() { patience = 15 * time.Second }()
	for want, do := range map[string]func(*testing.T) error{
		"silent":  func(*testing.T) error { return nil },
		"panics":  func(*testing.T) error { panic("raw") },
		"hangs":   func(t *testing.T) error { <-t.Context().Done(); return nil },
		"another": func(*testing.T) error { return errors.New("EOF") },
	} {
		if got := (row{do: do, want: "use a context"}).fault(t); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// patience is the time after which a mistake counts as a hang.
var patience = 15 * time.Second

// fault returns what is wrong with how the mistake ends. "" means nothing.
func (r row) fault(t *testing.T) string {
	ended := make(chan string, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				ended <- fmt.Sprintf("it panics: %v", v)
			}
		}()
		ended <- r.judge(r.do(t))
	}()

	select {
	case fault := <-ended:
		return fault
	case <-time.After(patience):
		return "it hangs"
	}
}

func (r row) judge(err error) string {
	switch {
	case r.want == "" && err != nil:
		return fmt.Sprintf("it is not harmless: %v", err)
	case r.want != "" && err == nil:
		return "it is silent, want an error with " + r.want
	case r.want != "" && !strings.Contains(err.Error(), r.want):
		return fmt.Sprintf("it has another error: %v; want %q", err, r.want)
	}
	return ""
}

// none is the input of tools without arguments.
type none struct{}

// city is an answer.
type city struct{ City string }

var ask = llm.User("What now?")

// says is a model that answers with each text in turn.
func says(texts ...string) *script.Model {
	turns := make([]script.Turn, len(texts))
	for i, text := range texts {
		turns[i] = script.Say(text)
	}
	return script.New(turns...)
}

// calls is a model that calls a tool without arguments, and then answers.
func calls(tool string) *script.Model {
	return script.New(script.Call(tool, `{}`), script.Say("Done."), script.Say("Done again."))
}

// does is a tool.
func does(name string) *pawl.Tool {
	return pawl.Func(name, "Does it.", func(context.Context, none) (string, error) { return "did " + name, nil })
}

// failed returns the error of a run.
func failed(_ *pawl.Result, err error) error { return err }

// answered returns an error if a run has no answer.
func answered(res *pawl.Result, err error) error {
	if err == nil && res.Text() == "" {
		return errors.New("the run has no text")
	}
	return err
}

// executed returns the error of the only call of an agent's run, which must end with the outcome.
func executed(t *testing.T, a *pawl.Agent, want pawl.Outcome) error {
	res, err := a.Run(t.Context(), ask)
	if err != nil {
		return err
	}
	x := res.Steps[0].Executions[0]
	if x.Outcome != want {
		t.Errorf("the outcome is %s, want %s", x.Outcome, want)
	}
	if x.Outcome == pawl.OutcomeOK {
		return nil
	}
	return errors.New(x.Error + "; the model reads: " + x.Result.Text())
}

// panicOf returns what do panics with, as an error: functions that panic with a clear text are for
// mistakes in the text of a program.
func panicOf(do func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			text := fmt.Sprint(v)
			if _, raw := v.(error); raw || !strings.HasPrefix(text, "pawl") {
				text = "raw panic: " + text
			}
			err = errors.New(text)
		}
	}()
	do()
	return nil
}
