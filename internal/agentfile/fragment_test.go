package agentfile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/agentfile"
)

// A fragment of the form agent.framework/v2 without its apiVersion gets the hint about it.
func TestFragmentOfTheFramework(t *testing.T) {
	_, findings := agentfile.Parse("a.yaml", []byte("metadata: {name: a}\nspec: {planner: {}}\n"), nil)
	if text := fmt.Sprint(findings); !strings.Contains(text, "apiVersion: agent.framework/v2") {
		t.Errorf("the findings are %s", text)
	}
}
