package pawl_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

func TestErrorTexts(t *testing.T) {
	cause := errors.New("connection refused")
	for _, test := range []struct {
		err  error
		want string
	}{
		{&llm.ProviderError{Code: llm.CodeStream}, "stream"},
		{&llm.ProviderError{Provider: "openai", Status: 429, Code: llm.CodeRateLimit, Message: "slow down"}, "openai: rate_limit (429): slow down"},
		{&llm.ProviderError{Provider: "openai", Code: llm.CodeNetwork, Err: cause}, "openai: network: connection refused"},
		{&pawl.ToolError{Execution: pawl.Execution{Call: call("", "f", ""), Error: "no room"}, Err: cause}, "tool f: no room"},
		{&pawl.ToolError{Execution: pawl.Execution{Call: call("", "f", "")}, Err: cause}, "tool f: connection refused"},
		{&pawl.TranscriptError{Index: 3, Text: "it is empty"}, "message 3: it is empty"},
		{pawl.AbortError(cause), "connection refused"},
		{pawl.FinishError(llm.TextResult("all is well")), "finished: all is well"},
		{pawl.BlockError("not today"), "not today"},
		{pawl.RetryableError(cause), "connection refused"},
		{&pawl.FieldError{Field: "Limits.Cost", Err: cause}, "Limits.Cost: connection refused"},
	} {
		if got := test.err.Error(); got != test.want {
			t.Errorf("%T: got %q, want %q", test.err, got, test.want)
		}
	}
	for _, err := range []error{&llm.ProviderError{Err: cause}, &pawl.ToolError{Err: cause}, pawl.AbortError(cause),
		pawl.RetryableError(cause), &pawl.FieldError{Err: cause}, fmt.Errorf("step 3: %w", pawl.AbortError(cause))} {
		if !errors.Is(err, cause) {
			t.Errorf("%T hides its cause", err)
		}
	}
}

// A mistake in a field of an agent is found by its field.
func TestFieldError(t *testing.T) {
	agent := &pawl.Agent{Model: script.New(script.Say("x")), Limits: pawl.Limits{Tokens: -1}}
	fault, ok := errors.AsType[*pawl.FieldError](agent.Check(t.Context()))
	if !ok || fault.Field != "Limits.Tokens" {
		t.Errorf("Check returns %v", fault)
	}
}

// full is an error of a model that has reached a limit of its own.
type full struct{}

var _ pawl.LimitError = full{}

func (full) Error() string                                     { return "no room" }
func (full) LimitReached() (name pawl.LimitName, cause string) { return "window", "the window is full" }

// A LimitError of a model ends the run at the limit that it names, wrapped or not.
func TestLimitError(t *testing.T) {
	for _, err := range []error{full{}, fmt.Errorf("a layer: %w", full{})} {
		res, err := (&pawl.Agent{Model: script.New(script.Fail(err))}).Run(t.Context(), llm.User("go"))
		stop, ok := errors.AsType[*pawl.StopError](err)
		if !ok || res.Stop != pawl.StopLimit || res.Limit != "window" || res.Cause != "the window is full" {
			t.Errorf("%+v, %v", res, stop)
		}
	}
}
