package telemetry

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/constants"
	"github.com/pawl-go/pawl/llm"
)

// Each code of a provider and each outcome of a call is an error.type of its own, and
// docs/telemetry.md states what each outcome is.
func TestFaults(t *testing.T) {
	page, err := os.ReadFile("../docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "**Errors.**")
	text, _, _ = strings.Cut(text, "\n\n")
	codes, err := constants.Of("../llm", "Code")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range codes {
		if got := faultOf(fmt.Errorf("step 1: %w", &llm.ProviderError{Code: llm.Code(c)})); got != c {
			t.Errorf("the error.type of code %s is %q", c, got)
		}
	}
	outcomes, err := constants.Of("..", "Outcome")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range outcomes {
		if !strings.Contains(text, "`"+o+"`") {
			t.Errorf("docs/telemetry.md, Errors, does not state what the outcome %s is", o)
		}
		e := &pawl.ToolError{Execution: pawl.Execution{Outcome: pawl.Outcome(o)}}
		if got := faultOf(fmt.Errorf("step 1: %w", e)); got != o {
			t.Errorf("the error.type of outcome %s is %q", o, got)
		}
	}
}
