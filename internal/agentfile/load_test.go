package agentfile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/outside"
)

// parse reads text as a file called name.
func parse(t *testing.T, text string) *agentfile.File {
	t.Helper()
	f, err := agentfile.Parse(filepath.Join(t.TempDir(), "agent.yaml"), []byte(text), &agentfile.LoadOptions{Getenv: environment})
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return f
}

func p[T any](v T) *T { return &v }

// Every key of the form is read into its field.
func TestKeys(t *testing.T) {
	const text = `
agent: analyst
model: [openai:gpt-6.1-terra, {name: openai-chat:own, base_url: "http://localhost:1/v1", key_env: SECRET_TOKEN}]
instructions: |
  Be brief.
tools:
  - data
  - command: {name: today, description: Returns the date., run: [date], effect: read, timeout: 5s, env: ["A=${FIVE}"]}
  - http: {name: look, description: Looks., url: "https://example.com/{x}", headers: {Authorization: "Bearer ${SECRET_TOKEN}", X-Kind: "${NONE:-plain}"}}
driver: react
react: {format: text, parallel: true, lenient: true, retries: 0}
leaked_calls: off
tool_choice: [today, look]
limits: {rounds: 0, calls: 9, calls_per_step: 8, parallel: 3, tokens: "${FIVE}", cost: 0.50, time: 1m30s, corrections: 0, repeats: 4, at_limit: return}
approve: {ask: [today], deny: [look], allow: ["data_*"], else: ask, within: 0s}
output: {type: object, properties: {n: {type: integer}}}
settings: {max_tokens: 100, temperature: 0, top_p: 0.5, stop: [END], effort: low, parallel_calls: false, options: {openai: {user: "${FIVE}"}}}
history: {turns: 7}
root: data
protect: [keys, -.git]
http_allow: [localhost]
sandbox: none
store: {db: x.db, tenant: t, user: u, shared: true}
embed: {model: openai:text-embedding-3-small, base_url: "http://localhost:1/v1"}
catalog: models.json
skills: [skills]
zone: Europe/Oslo
tool_files: [more.yaml]
terminal_tools: [today]
timeouts: {today: 9s}
rates: [{tools: [today], every: 1s, burst: 2, wait: 3s}]
breaker: {tools: [today], failures: 2, pause: 4s}
cache: {tools: [data_parse], bytes: 10, age: 1h}
`
	got := parse(t, text).Agents[0]
	second := func(n float64) outside.Duration { return outside.Duration(n * float64(time.Second)) }
	want := &agentfile.Agent{
		Name:         "analyst",
		Model:        agentfile.Models{{Name: "openai:gpt-6.1-terra"}, {Name: "openai-chat:own", BaseURL: "http://localhost:1/v1", KeyEnv: "SECRET_TOKEN"}},
		Instructions: "Be brief.\n",
		Tools: []agentfile.Tool{{Set: "data"},
			{Command: &outside.Command{Name: "today", Description: "Returns the date.", Run: []string{"date"},
				Effect: p(pawl.EffectRead), Timeout: second(5), Env: []string{"A=5"}}},
			{HTTP: &outside.HTTP{Name: "look", Description: "Looks.", URL: "https://example.com/{x}", Headers: map[string]string{"Authorization": "Bearer ${SECRET_TOKEN}", "X-Kind": "plain"}}}},
		Driver: "react", React: &agentfile.React{Format: "text", Parallel: true, Lenient: true, Retries: p(0)},
		Leaks: "off", Choice: agentfile.Choice{"today", "look"},
		Limits: agentfile.Limits{Rounds: p(0), Calls: p(9), CallsPerStep: p(8), Parallel: p(3), Tokens: p(5),
			Cost: p(0.5), Time: p(second(90)), Corrections: p(0), Repeats: p(4), AtLimit: "return"},
		Approve: agentfile.Approve{Ask: []string{"today"}, Deny: []string{"look"}, Allow: []string{"data_*"}, Else: "ask", Within: p(second(0))},
		Output:  &agentfile.Output{Schema: json.RawMessage(`{"properties":{"n":{"type":"integer"}},"type":"object"}`)},
		Settings: agentfile.Settings{MaxTokens: p(100), Temperature: p(0.0), TopP: p(0.5), Stop: []string{"END"},
			Effort: "low", Parallel: p(false),
			Options: map[string]outside.JSON{"openai": outside.JSON(`{"user":"5"}`)}},
		History: &agentfile.History{Turns: p(7)}, Root: "data",
		Protect: []string{"keys", "-.git"}, HTTPAllow: []string{"localhost"}, Sandbox: "none",
		Store: agentfile.Store{DB: "x.db", Tenant: "t", User: "u", Shared: true}, Embed: agentfile.Embed{Model: "openai:text-embedding-3-small", URL: "http://localhost:1/v1"},
		Catalog: "models.json", Skills: []string{"skills"}, Zone: "Europe/Oslo", ToolFiles: []string{"more.yaml"}, Terminal: []string{"today"},
		Timeouts: map[string]outside.Duration{"today": second(9)},
		Rates:    []agentfile.Rate{{Tools: []string{"today"}, Every: second(1), Burst: p(2), Wait: second(3)}},
		Breaker:  &agentfile.Breaker{Tools: []string{"today"}, Failures: p(2), Pause: second(4)},
		Cache:    &agentfile.Cache{Tools: []string{"data_parse"}, Bytes: p(10), Age: second(3600)},
	}
	opts := cmpopts.IgnoreUnexported(agentfile.Agent{}, agentfile.Model{})
	if diff := cmp.Diff(got, want, opts); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
	again, err := agentfile.Parse("again.yaml", got.YAML(), &agentfile.LoadOptions{Getenv: environment})
	if err != nil {
		t.Fatalf("what is written is not read: %v\n%s", err, got.YAML())
	}
	if diff := cmp.Diff(again.Agents[0], got, opts); diff != "" {
		t.Errorf("written and read again: got -, want +\n%s", diff)
	}
}

// A variable is the text of one scalar, for any value.
func TestVariables(t *testing.T) {
	value := "x\"\nmodel: evil\n- ]}${FIVE}"
	env := func(name string) string { return map[string]string{"V": value, "FIVE": "5"}[name] }
	for _, tt := range []struct{ written, want string }{
		{`"a ${V} b"`, "a " + value + " b"},
		{`${V}`, value},
		{`'$${V} and $${'`, "${V} and ${"},
		{`${NONE:-a:-b}`, "a:-b"},
		{`"${NONE:-}"`, ""},
		{`$V and $$ and $`, "$V and $$ and $"},
		{`"${FIVE}${FIVE}"`, "55"},
	} {
		f, err := agentfile.Parse("a.yaml", []byte("agent: a\nmodel: openai:gpt-6.1-terra\nvariables: [V, FIVE, NONE]\ninstructions: "+tt.written+"\n"), &agentfile.LoadOptions{Getenv: env})
		if err != nil {
			t.Errorf("%s: %v", tt.written, err)
			continue
		}
		if a := f.Agents[0]; a.Instructions != tt.want || a.Model[0].Name != "openai:gpt-6.1-terra" {
			t.Errorf("%s: got %q with %v, want %q", tt.written, a.Instructions, a.Model, tt.want)
		}
	}
}

// Build uses every value of a file. Relative names start at the file's folder.
func TestBuild(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"turns.json":     `{"turns":[{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"file_read","args":{"path":"note.txt"}}]},"finish":"tool_calls"},{"message":{"role":"assistant","parts":[{"type":"text","text":"done"}]},"finish":"stop"}]}`,
		"shelf/note.txt": "It rains.",
		"agent.yaml":     "agent: a\nmodel: script:turns.json\ntools: [file]\nroot: shelf\nterminal_tools: [file_read]\napprove: {deny: [file_write]}\nlimits: {rounds: 3, parallel: 2}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := agentfile.Load(filepath.Join(dir, "agent.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	built, err := f.Agents[0].Build(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer built.Close()
	if l := built.Agent.Limits; l.Rounds != 3 || built.Agent.Parallel.Limit != 2 {
		t.Errorf("got %+v, %+v", l, built.Agent.Parallel)
	}
	res, err := built.Agent.Run(t.Context(), llm.User("Read."))
	if err != nil || res.Stop != pawl.StopFinished || !strings.Contains(res.Text(), "It rains.") || len(res.Steps) != 1 {
		t.Errorf("a terminal tool: got %s %q after %d steps, %v; want finished with the note after 1", res.Stop, res.Text(), len(res.Steps), err)
	}
}

// A value from a flag has no place in the file. A relative name in it starts at the working
// directory.
func TestOverride(t *testing.T) {
	a := parse(t, "agent: a\nmodel: openai:gpt-6.1-terra\ntools: [file]\nroot: here\napprove: {deny: [x]}\n").Agents[0]
	a.Root = "nowhere"
	a.Override("root")
	_, err := a.Build(t.Context(), &agentfile.Options{Getenv: environment})
	if got := agentfile.FindingsOf(err); len(got) != 1 || got[0].File != "" || got[0].Error() != "root: nowhere: no such file or directory (want a directory that is there)" {
		t.Errorf("got %v", err)
	}
}

// A file puts only those values of the environment into texts of models that it declares. A name
// does not say whether its value is a secret.
func TestTextsOfModelsHaveDeclaredVariablesOnly(t *testing.T) {
	names := strings.Fields(`AWS_SECRET_ACCESS_KEY API_TOKEN DB_PASSWORD DATABASE_URL REDIS_URL MONGO_URI DSN PGPASS PGPASSFILE
		PASSPHRASE GPG_PASS SSH_PASS GITHUB_PAT GH_PAT GITLAB_PAT JWT SESSION SID BEARER AUTH BASIC_AUTH STRIPE_SK SK CERT PEM
		PRIVATE PIN OTP SEED MNEMONIC WEBHOOK SLACK_HOOK HOME USER`)
	getenv := func(name string) string { return "the value of " + name }
	check := func(file string) error {
		_, err := agentfile.Parse("agent.yaml", []byte("agent: a\nmodel: openai:m\n"+file), &agentfile.LoadOptions{Getenv: getenv})
		return err
	}
	for text, read := range map[string]bool{
		"instructions: 'Say $.'\n":  true,
		"description: 'About $.'\n": true,
		"title: '$'\n":              true,
		"output: {properties: {a: {description: 'Say $.'}}}\n":                                                                true,
		"schedules: [{name: a, when: daily 08:00, prompt: 'Say $.'}]\n":                                                       true,
		"tools: [file]\nschedules: [{name: a, when: daily 08:00, calls: [{tool: file_read, args: {path: '$'}}]}]\n":           true,
		"prompts: [{name: a, description: d, text: 'Say $.'}]\n":                                                              true,
		"guards: [{check: [input], model: openai:m, rules: 'Stop $.'}]\n":                                                     true,
		"tools: [{command: {name: c, description: 'Says $.', run: [date]}}]\n":                                                true,
		"tools: [{http: {name: c, description: Gets., url: 'https://x.example/', input: {properties: {a: {title: '$'}}}}}]\n": true,
		"root: '$'\n":        false,
		"store: {db: '$'}\n": false,
		"tools: [{http: {name: c, description: Gets., url: 'https://x.example/', headers: {X: '$'}}}]\n": false,
		"tools: [{mcp: s}]\nmcp_servers: {s: {command: c, env: ['A=$']}}\n":                              false,
	} {
		for _, name := range names {
			for _, form := range []string{"${" + name + "}", "${" + name + ":-x}"} {
				file := strings.ReplaceAll(text, "$", form)
				err := check(file)
				if refused := err != nil && strings.Contains(err.Error(), "variables does not list "+name); refused != read {
					t.Errorf("%s: got %v", file, err)
				}
				if err := check("variables: [OTHER, " + name + "]\n" + file); err != nil {
					t.Errorf("declared: %s: got %v", file, err)
				}
			}
		}
	}

	// The key may stand below the text, an unset variable is refused alike, and names are checked.
	if err := check("instructions: Say ${GREETING}.\nvariables: [GREETING]\n"); err != nil {
		t.Error(err)
	}
	getenv = func(string) string { return "" }
	if err := check("instructions: Say ${GREETING:-hello}.\n"); err == nil {
		t.Error("a variable that is not set was accepted")
	}
	if err := check("variables: [\"$X\"]\n"); err == nil || !strings.Contains(err.Error(), `"$X" is no name of a variable`) {
		t.Errorf("got %v", err)
	}

	// The form of agent.framework declares none.
	framework := "apiVersion: agent.framework/v2\nkind: Agent\nmetadata: {name: a}\n" +
		"resources: {inference_gateways: [{name: g, type: OpenAIGateway, config: {model: gpt-6.1-terra}}]}\n" +
		"spec: {planner: {type: ReActPlanner, config: {inference_gateway: g, system_prompt: \"Say ${DATABASE_URL}.\"}}}\n"
	_, err := agentfile.Parse("agent.yaml", []byte(framework), &agentfile.LoadOptions{Getenv: func(string) string { return "secret" }})
	if err == nil || !strings.Contains(err.Error(), "variables does not list DATABASE_URL") {
		t.Errorf("agent.framework: got %v", err)
	}
}

// The explanation has the bytes of a request to the provider, and no secret.
func TestExplain(t *testing.T) {
	a := parse(t, "agent: a\nmodel: openai-chat:gpt-6.1-terra\ninstructions: Use tok-0123456789.\nsettings: {options: {openai-chat: {user: \"${SECRET_TOKEN}\"}}}\ntools: [data]\n").Agents[0]
	x, err := a.Explain(t.Context(), &agentfile.Options{Getenv: environment}, "Add up.")
	if err != nil {
		t.Fatal(err)
	}
	if x.Method != "POST" || x.URL != "https://api.openai.com/v1/chat/completions" {
		t.Errorf("got %s %s", x.Method, x.URL)
	}
	for _, want := range []string{`"content":"Add up."`, `"name":"data_parse"`, `Use ${SECRET_TOKEN}.`, `"user":"${SECRET_TOKEN}"`, `"stream":true`} {
		if !bytes.Contains(x.Body, []byte(want)) {
			t.Errorf("no %s in %.300s", want, x.Body)
		}
	}
	if all := string(x.Agent) + string(x.Body); strings.Contains(all, "tok-0123456789") {
		t.Errorf("a secret is shown: %s", all)
	}
	a = parse(t, "agent: a\nmodel: script:turns.json\n").Agents[0]
	if _, err := a.Explain(t.Context(), &agentfile.Options{Getenv: environment}, "Add up."); err == nil {
		t.Error("a script that is not there was explained")
	}
}

// Several agents in a file have different names.
func TestSeveral(t *testing.T) {
	f := parse(t, "agent: a\nmodel: openai:gpt-6.1-terra\n---\nagent: b\nmodel: openai:gpt-6.1-terra\n---\n")
	if a, err := f.Agent("b"); err != nil || a.Name != "b" {
		t.Errorf("got %v, %v", a, err)
	}
	for name, want := range map[string]string{"": "there are several agents in it (say which: a, b)", "bb": "no agent is named bb (there are: a, b)"} {
		if _, err := f.Agent(name); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", name, err, want)
		}
	}
}

// template returns a file of pawl init.
func template(t testing.TB, kind string) []byte {
	t.Helper()
	b, err := agentfile.Templates.ReadFile("templates/" + kind + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The files of pawl init have no finding.
func TestTemplates(t *testing.T) {
	for _, kind := range []string{"minimal", "coding", "research", "support", "extraction"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "agent.yaml")
		err := errors.Join(os.WriteFile(path, template(t, kind), 0o644), os.Mkdir(filepath.Join(dir, "docs"), 0o755))
		if err != nil {
			t.Fatal(err)
		}
		if got := findings(path); got != "" {
			t.Errorf("%s: %s", kind, got)
		}
	}
}

// No bytes make the reader panic or take long.
func FuzzParse(f *testing.F) {
	paths, err := filepath.Glob("testdata/broken/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		if _, text, ok := bytes.Cut(b, []byte("-- agent.yaml --\n")); ok && len(text) < 2000 {
			f.Add(text)
		}
	}
	f.Add(template(f, "minimal"))
	f.Add(template(f, "coding"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := agentfile.Parse("fuzz.yaml", text, &agentfile.LoadOptions{Getenv: environment})
		if file == nil {
			t.Fatal("there is no file")
		}
		for _, one := range agentfile.FindingsOf(err) {
			if one.Code == "" || one.Message == "" {
				t.Errorf("a finding without words: %+v", one)
			}
		}
		if err != nil {
			return
		}
		for _, a := range file.Agents {
			if a.Team != nil { // its workers are in another file
				continue
			}
			if _, err := agentfile.Parse("again.yaml", a.YAML(), &agentfile.LoadOptions{Getenv: environment}); err != nil {
				t.Errorf("what is written is not read: %v\n%s", err, a.YAML())
			}
		}
	})
}
