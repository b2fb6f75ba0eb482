package agentname_test

import (
	"testing"

	"github.com/pawl-go/pawl/internal/agentname"
)

func TestNames(t *testing.T) {
	for _, row := range []struct {
		agent, name, version string
		same, belongs        bool // to the agent "desk"
	}{
		{"desk", "desk", "", true, true},
		{"desk@2", "desk", "2", true, true},
		{"desk@2@3", "desk", "2@3", true, true},
		{"desk/call", "desk/call", "", false, true},
		{"desks", "desks", "", false, false},
		{"desk-2", "desk-2", "", false, false},
		{"@1", "", "1", false, false},
		{"", "", "", false, false},
	} {
		name, version := agentname.Split(row.agent)
		if name != row.name || version != row.version {
			t.Errorf("%q: got %q, %q; want %q, %q", row.agent, name, version, row.name, row.version)
		}
		if same := agentname.Same(row.agent, "desk@1"); same != row.same {
			t.Errorf("%q is the same agent as desk@1: %v, want %v", row.agent, same, row.same)
		}
		if belongs := agentname.Belongs(row.agent, "desk"); belongs != row.belongs {
			t.Errorf("%q belongs to desk: %v, want %v", row.agent, belongs, row.belongs)
		}
	}
}
