package pawl_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
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
	} {
		if got := test.err.Error(); got != test.want {
			t.Errorf("%T: got %q, want %q", test.err, got, test.want)
		}
	}
	for _, err := range []error{&llm.ProviderError{Err: cause}, &pawl.ToolError{Err: cause}, pawl.AbortError(cause),
		pawl.RetryableError(cause), fmt.Errorf("step 3: %w", pawl.AbortError(cause))} {
		if !errors.Is(err, cause) {
			t.Errorf("%T hides its cause", err)
		}
	}
}
