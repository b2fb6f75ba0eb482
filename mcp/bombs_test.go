package mcp_test

import (
	"encoding/json"
	"testing"

	"github.com/pawl-go/pawl/internal/test/bombs"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/mcp"
)

// A server that lists a bomb loses that tool and no other: the bomb is quarantined with a reason,
// or its arguments are refused.
func TestBombsOfAServer(t *testing.T) {
	soak.Sequential(t)
	for _, b := range bombs.All() {
		if bombs.Valid(b.Schema) == "" {
			continue // the protocol cannot carry it
		}
		t.Run(b.Name, func(t *testing.T) {
			list := `{"tools":[{"name":"bomb","inputSchema":` + b.Schema + `},{"name":"plain","inputSchema":{"type":"object"}}]}`
			tools := map[string]mcp.Listed{}
			var refused error
			cpu, mem := bombs.Spent(func() {
				all, err := mcp.Inspect(mcp.Server{Name: "evil", Command: "x"}, json.RawMessage(list), nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, l := range all {
					tools[l.Name] = l
				}
				if bomb := tools["bomb"].Tool; bomb != nil && b.Args != "" {
					refused = bomb.Validate(json.RawMessage(b.Args))
				}
			})
			bomb := tools["bomb"]
			if bomb.Verdict != mcp.Quarantined && refused == nil || bomb.Verdict == mcp.Quarantined && bomb.Why == "" {
				t.Errorf("%s: %s, %v", bomb.Verdict, bomb.Why, refused)
			}
			if v := tools["plain"].Verdict; v != mcp.Accepted {
				t.Errorf("the other tool: %s", v)
			}
			if cpu > bombs.MaxCPU || mem > bombs.MaxMemory {
				t.Errorf("it took %v of CPU and %d MiB", cpu, mem>>20)
			}
		})
	}
}
