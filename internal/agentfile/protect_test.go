package agentfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/internal/test/tooltest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/outside"
)

// An agent whose rules let it write files cannot change what it is made of: its file, the file of
// its leader, and all files that it names. With protect: [-*] it can.
func TestOwnFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		tooltest.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		tooltest.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	own := []string{"agent.yaml", "lead.yaml", "more.yaml", "bin/tool.sh", "schema.json", "skills/a/SKILL.md",
		"server.py", "tools.lock"}
	for _, name := range append(own, "notes.txt") {
		write(name, "{}")
	}
	write("schema.json", `{"type":"object"}`)
	write("more.yaml", "tools: [{command: {name: more, description: Does more., run: [bin/tool.sh]}}]")
	const agent = `
agent: worker
model: openai:gpt-6.1-terra
tools: [file, {mcp: x}]
tool_files: [more.yaml]
output: schema.json
skills: [skills]
mcp_servers: {x: {command: python3, args: [server.py], optional: true}}
root: .
approve: {allow: [file_write, effect:idempotent]}
`
	for _, control := range []bool{false, true} {
		text := agent
		if control {
			text += "protect: [-*]\n"
		}
		write("agent.yaml", text)
		write("lead.yaml", "agent: lead\nmodel: openai:gpt-6.1-terra\nteam: {manager: network, workers: [{file: agent.yaml}]}\n")
		f, err := agentfile.Load(filepath.Join(dir, "lead.yaml"), &agentfile.LoadOptions{Getenv: environment})
		tooltest.Must(t, err)
		worker := f.Agents[0].Team.Workers[0].Agent()
		listed := worker.Protected()
		for _, name := range own {
			found := slices.ContainsFunc(listed,
				func(p string) bool { return name == p || strings.HasPrefix(name, p+"/") })
			if found == control {
				t.Errorf("%s, unprotected %t: listed %t among %v", name, control, found, listed)
			}
		}
		if slices.Contains(listed, "notes.txt") {
			t.Error("notes.txt is protected")
		}
	}
	write("agent.yaml", "agent: worker\nmodel: script:turns.json\ntools: [file]\nroot: .\napprove: {allow: [file_write, effect:idempotent]}\n")
	write("turns.json", `{"turns":[
{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"1","name":"file_write","args":{"path":"agent.yaml","content":"evil"}},
{"type":"tool_call","id":"2","name":"file_write","args":{"path":"turns.json","content":"evil"}},
{"type":"tool_call","id":"3","name":"file_write","args":{"path":"notes.txt","content":"good"}}]},"finish":"tool_calls"},
{"message":{"role":"assistant","parts":[{"type":"text","text":"Done."}]},"finish":"stop"}]}`)
	f, err := agentfile.Load(filepath.Join(dir, "agent.yaml"), &agentfile.LoadOptions{Getenv: environment})
	tooltest.Must(t, err)
	built, err := f.Agents[0].Build(t.Context(), nil)
	tooltest.Must(t, err)
	defer built.Close()
	_, err = built.Agent.Run(t.Context(), llm.User("Go."))
	tooltest.Must(t, err)
	for name, evil := range map[string]bool{"agent.yaml": false, "turns.json": false} {
		if b, _ := os.ReadFile(filepath.Join(dir, name)); (string(b) == "evil") != evil {
			t.Errorf("%s has %q", name, b)
		}
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "notes.txt")); string(b) != "good" {
		t.Errorf("notes.txt has %q: the control was not written", b)
	}
}

// A model cannot write what a program of an MCP server or a tool starts or loads: the files in its
// folder, modules, the paths in its words, and the same for all agents of the team.
func TestProgramFiles(t *testing.T) {
	for name, c := range map[string]struct{ settings, safe, free string }{
		"folder":  {"mcp_servers: {x: {command: python3, args: [srv/server.py], optional: true}}", "srv/json.py srv/a/b.py", "json.py"},
		"root":    {"mcp_servers: {x: {command: python3, args: [server.py], optional: true}}", "json.py json/__init__.py json.pyc __pycache__/a.pyc", "a.txt srv/a.py"},
		"module":  {"mcp_servers: {x: {command: python3, args: [-m, mod], dir: pkg, optional: true}}", "pkg/mod.py", "mod.py"},
		"modules": {"mcp_servers: {x: {command: python3, args: [-m, srv.mod], optional: true}}", "srv.py srv/mod.py json.py", "other/a.py"},
		"option":  {"mcp_servers: {x: {command: none, args: [--config=conf/a.toml], optional: true}}", "conf/a.toml", "conf/b.toml"},
		"shell":   {"mcp_servers: {x: {command: sh, args: [-c, 'cd srv && exec python3 \"server.py\"'], optional: true}}", "srv/server.py srv/json.py", "a.txt"},
		"data":    {"mcp_servers: {x: {command: none, args: [-m, conf/a.toml], optional: true}}", "conf/a.toml", "conf/b.toml a.py"},
		"off":     {"mcp_servers: {x: {command: python3, args: [srv/server.py], optional: true}}\nprotect: [-srv]", "srv/server.py", "srv/json.py"},
		"tool":    {"tool_files: [more.yaml]\nmcp_servers: {x: {command: none, optional: true}}", "pkg/run.py pkg/a.py more.yaml", "a.py"},
		"team": {"team: {manager: network, workers: [{file: team/worker.yaml}]}\nmcp_servers: {x: {command: none, optional: true}}",
			"team/worker.yaml team/tools.yaml team/bin/go.sh team/low.yaml", "team/notes.txt"},
	} {
		dir := t.TempDir()
		write := func(name, text string) {
			tooltest.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
			tooltest.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		}
		for _, name := range []string{"server.py", "srv/server.py", "pkg/run.py", "conf/a.toml", "team/bin/go.sh"} {
			write(name, "")
		}
		write("more.yaml", "tools: [{command: {name: more, description: Does more., run: [python3, run.py], dir: pkg}}]")
		write("team/tools.yaml", "tools: [{command: {name: more, description: Does more., run: [bin/go.sh]}}]")
		write("team/low.yaml", "agent: low\nmodel: openai:gpt-6.1-terra\n")
		write("team/worker.yaml", "agent: worker\nmodel: openai:gpt-6.1-terra\ntool_files: [tools.yaml]\n"+
			"team: {manager: network, workers: [{file: low.yaml}]}\n")
		calls := []string{}
		for i, path := range strings.Fields(c.safe + " " + c.free) {
			calls = append(calls, fmt.Sprintf(`{"type":"tool_call","id":"%d","name":"file_write","args":{"path":%q,"content":"evil"}}`, i, path))
		}
		write("turns.json", `{"turns":[{"message":{"role":"assistant","parts":[`+strings.Join(calls, ",")+`]},"finish":"tool_calls"},
{"message":{"role":"assistant","parts":[{"type":"text","text":"Done."}]},"finish":"stop"}]}`)
		write("agent.yaml", "agent: lead\nmodel: script:turns.json\ntools: [file, {mcp: x}]\nroot: .\n"+
			"approve: {allow: [file_write, effect:idempotent]}\n"+c.settings+"\n")
		f, err := agentfile.Load(filepath.Join(dir, "agent.yaml"), &agentfile.LoadOptions{Getenv: environment})
		tooltest.Must(t, err)
		// What is protected does not depend on the sandbox, which not every machine has.
		built, err := f.Agents[0].Build(t.Context(), &agentfile.Options{Commands: outside.Exec})
		tooltest.Must(t, err)
		_, err = built.Agent.Run(t.Context(), llm.User("Go."))
		tooltest.Must(t, err)
		built.Close()
		for _, path := range strings.Fields(c.safe + " " + c.free) {
			b, _ := os.ReadFile(filepath.Join(dir, path))
			if safe := slices.Contains(strings.Fields(c.safe), path); safe == (string(b) == "evil") {
				t.Errorf("%s: %s, protected %t, has %q", name, path, safe, b)
			}
		}
	}
}
