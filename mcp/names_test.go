package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/policy"
)

// Two servers never make the same name, in any order, and no tool has the prefix of another server.
func TestNamesOfServers(t *testing.T) {
	tests := []struct {
		name    string
		servers []mcp.Server
	}{
		{"a_b and a", []mcp.Server{{Name: "a_b"}, {Name: "a"}}},
		{"three in each other", []mcp.Server{{Name: "a"}, {Name: "a_b"}, {Name: "a_b_c"}}},
		{"a-b and a_b", []mcp.Server{{Name: "a-b"}, {Name: "a_b"}}},
		{"a prefix of their own", []mcp.Server{{Name: "x", Prefix: "a"}, {Name: "y", Prefix: "a_b_"}}},
		{"no prefix", []mcp.Server{{Name: "x", Prefix: "-"}, {Name: "a_b"}}},
	}
	own := []string{"c", "b_c", "b_c_d", "c_d", "a_b_c", "a_b_c_d", "_b_c", "b.c", strings.Repeat("b_", 40) + "c"}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			from := map[string]string{} // the server of a name
			for i, s := range test.servers {
				s.Command = "x"
				others := append(append([]mcp.Server{}, test.servers[:i]...), test.servers[i+1:]...)
				for _, l := range inspected(t, s, others, own...) {
					if l.Tool == nil || len(l.As) > 64 {
						t.Fatalf("%s of %s is %s %q: %s", l.Name, s.Name, l.Verdict, l.As, l.Why)
					}
					if was := from[l.As]; was != "" {
						t.Errorf("%s is a tool of %s and of %s", l.As, was, s.Name)
					}
					from[l.As] = s.Name
					for _, o := range others {
						p := o.NamePrefix()
						if len(p) > len(s.NamePrefix()) && strings.HasPrefix(l.As, p) {
							t.Errorf("%s of %s has the prefix of %s", l.As, s.Name, o.Name)
						}
					}
				}
			}
		})
	}

	// Without another server in the way, a name stays unchanged.
	for _, l := range inspected(t, mcp.Server{Name: "a", Command: "x"}, []mcp.Server{{Name: "b"}, {Name: "ab"}}, "b_c") {
		if l.As != "a_b_c" {
			t.Errorf("got %s", l.As)
		}
	}
}

// inspected returns what s offers of tools with the names.
func inspected(t *testing.T, s mcp.Server, others []mcp.Server, names ...string) []mcp.Listed {
	t.Helper()
	var tools []string
	for _, name := range names {
		tools = append(tools, def(name, "Fine.", plainSchema))
	}
	all, err := mcp.Inspect(s, []byte(`{"tools":[`+strings.Join(tools, ",")+`]}`), &mcp.Options{OtherServers: others})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A rule about a server includes all its tools, and none of a server whose name begins like it.
func TestRulesNameServers(t *testing.T) {
	a := mcp.Server{Name: "a", Command: "x"}
	ab := mcp.Server{Name: "a_b", Command: "x"}
	rules := policy.Rules{Allow: []string{"mcp:a"}, Deny: []string{"mcp:a_b(path in /etc/**)"}}
	for name, want := range map[string]pawl.Verdict{"a b_c": pawl.VerdictAllow, "a c": pawl.VerdictAllow, "a_b c": pawl.VerdictDeny} {
		s, o := a, ab
		server, tool, _ := strings.Cut(name, " ")
		if server == "a_b" {
			s, o = ab, a
		}
		l := inspected(t, s, []mcp.Server{o}, tool)[0]
		if err := rules.Check([]*pawl.Tool{l.Tool}); err != nil {
			t.Fatal(err)
		}
		got, err := rules.Approve(t.Context(), llm.ToolCall{Name: l.As, Args: json.RawMessage(`{"path":"/etc/passwd"}`)}, l.Tool)
		if err != nil || got.Verdict != want {
			t.Errorf("%s: got %v, %v, want %v", name, got.Verdict, err, want)
		}
	}
	if err := (policy.Rules{Allow: []string{"mcp:"}}).Check(nil); err == nil {
		t.Error("a rule about no server is accepted")
	}
}

// What of a definition is not of the protocol's type is left out and reported once. The tool is
// offered.
func TestIgnoredParts(t *testing.T) {
	const list = `{"tools":[{"name":"a","title":7,"description":["x"],"annotations":{"readOnlyHint":"true","idempotentHint":true},
		"inputSchema":{"type":"object","properties":{"p":{"type":"string","pattern":"^(?!-)x{1,2000}$"}}}}]}`
	all, err := mcp.Inspect(mcp.Server{Name: "s", Command: "x", Trust: true}, []byte(list), nil)
	if err != nil {
		t.Fatal(err)
	}
	l := all[0]
	if l.Verdict != mcp.Accepted || l.Tool == nil || l.Tool.Effect != pawl.EffectIdempotent {
		t.Fatalf("got %+v", l)
	}
	text := strings.Join(l.Ignored, "\n")
	for _, want := range []string{"title", "description", "annotations.readOnlyHint", "(?!-)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not reported: %q", want, l.Ignored)
		}
	}
	if !strings.Contains(string(l.Tool.Input), `matches ^(?!-)x{1,2000}$`) {
		t.Errorf("the model does not see the pattern: %s", l.Tool.Input)
	}
}
