package agentfile_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/internal/test/tooltest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
)

// An agent whose rules let it write files reaches neither its database nor the file of tokens that
// a server passes on, and check says that they are in the root. Elsewhere, nothing is said.
func TestOwnState(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		dir := t.TempDir()
		db := "pawl.db"
		if elsewhere {
			db = filepath.Join(t.TempDir(), "pawl.db")
		}
		write := func(name, text string) {
			tooltest.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		}
		names := []string{"pawl.db", "pawl.db-wal", "pawl.db-journal", "tokens.json", ".env", "sign.pem"}
		var calls []string
		for i, name := range names {
			write(name, "good")
			for j, call := range []string{
				`"name":"file_read","args":{"path":%q}`,
				`"name":"file_write","args":{"path":%q,"content":"evil"}`,
				`"name":"file_delete","args":{"path":%q}`,
			} {
				calls = append(calls, fmt.Sprintf(`{"type":"tool_call","id":"%d-%d",`+call+`}`, i, j, name))
			}
		}
		write("turns.json", `{"turns":[{"message":{"role":"assistant","parts":[`+strings.Join(calls, ",")+`]},"finish":"tool_calls"},
{"message":{"role":"assistant","parts":[{"type":"text","text":"Done."}]},"finish":"stop"}]}`)
		write("agent.yaml", "agent: helper\nmodel: script:turns.json\ntools: [file]\nroot: .\nstore: {db: "+db+"}\nresources: ['*']\n"+
			"approve: {allow: [file_write, file_delete]}\n")

		env := func(name string) string {
			if name == "PAWL_SIGN_KEY" {
				return filepath.Join(dir, "sign.pem")
			}
			return environment(name)
		}
		f, err := agentfile.Load(filepath.Join(dir, "agent.yaml"), &agentfile.LoadOptions{Getenv: env})
		tooltest.Must(t, err)
		a := f.Agents[0]
		tokens := []string{filepath.Join(dir, "tokens.json")}
		built, err := a.Build(t.Context(), &agentfile.Options{Getenv: env, Own: tokens})
		tooltest.Must(t, err)
		res, err := built.Agent.Run(t.Context(), llm.User("Go."))
		tooltest.Must(t, err)
		built.Close()

		for i, e := range res.Steps[0].Executions {
			name := names[i/3]
			if reached := !e.Result.IsError; reached != (elsewhere && strings.HasPrefix(name, "pawl.db")) {
				t.Errorf("database elsewhere %t: %s of %s: %s", elsewhere, e.Call.Name, name, e.Result.Text())
			}
		}
		_, warnings := a.CheckEffects(t.Context(), &agentfile.Options{Getenv: env})
		if said := strings.Contains(warnings.Error(), filepath.Join(dir, "pawl.db")); said == elsewhere {
			t.Errorf("database elsewhere %t: check says %q", elsewhere, warnings)
		}

		var service mcp.Service
		tooltest.Must(t, a.Offer(&service, append(a.Own(env), tokens...)))
		offered, err := service.Resources[0].Values(context.Background(), "")
		tooltest.Must(t, err)
		for _, name := range offered {
			if name != "agent.yaml" && name != "turns.json" {
				t.Errorf("%s is offered as a resource", name)
			}
		}
		if len(offered) != 2 {
			t.Errorf("offered are %v", offered)
		}
	}
}
