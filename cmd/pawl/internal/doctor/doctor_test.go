package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/provider"
)

// examined runs doctor --json in dir with the environment env alone.
func examined(t *testing.T, dir string, env map[string]string, args ...string) (diagnosis, int) {
	t.Helper()
	return examinedAt(t, time.Now, dir, env, args...)
}

// examinedAt is examined with another clock.
func examinedAt(t *testing.T, now func() time.Time, dir string, env map[string]string,
	args ...string) (diagnosis, int) {
	t.Helper()
	for _, v := range provider.KeyVariables() {
		t.Setenv(v, "")
	}
	for _, s := range otherSettings {
		t.Setenv(s.Name, "")
	}
	for k, v := range env {
		t.Setenv(k, v)
	}
	t.Chdir(dir)
	var out, errs bytes.Buffer
	sys := &cli.System{Out: &out, Err: &errs, Now: now, Env: func(name string) string {
		if name == "HOME" {
			return dir
		}
		if _, ok := env[name]; ok {
			return env[name]
		}
		return ""
	}}
	c := new(Cmd)
	k, err := kong.New(c, cli.HelpTexts(false))
	if err == nil {
		_, err = k.Parse(append([]string{"--json"}, args...))
	}
	if err != nil {
		t.Fatal(err)
	}
	status := cli.Report(sys.Err, c.Run(sys))
	var d diagnosis
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		t.Fatalf("%v: %s%s", err, out.String(), errs.String())
	}
	for _, v := range env {
		if len(v) > 8 && strings.Contains(v, "secret") && strings.Contains(out.String(), v) {
			t.Errorf("a value is shown: %s", v)
		}
	}
	return d, status
}

// has fails the test unless a finding has this status, and its text and advice contain these words.
func has(t *testing.T, d diagnosis, status string, words ...string) {
	t.Helper()
	for _, f := range d.Checks {
		all := f.Area + ": " + f.Text + " → " + f.Next
		missing := false
		for _, w := range words {
			missing = missing || !strings.Contains(all, w)
		}
		if !missing {
			if f.Status != status {
				t.Errorf("%s is %s, want %s", all, f.Status, status)
			}
			return
		}
	}
	var all strings.Builder
	for _, f := range d.Checks {
		fmt.Fprintf(&all, "\n  %s %s: %s", f.Status, f.Area, f.Text)
	}
	t.Errorf("nothing was found with %q; there is%s", words, all.String())
}

// Findings about keys do not contain the keys.
func TestDoctorKeys(t *testing.T) {
	for _, tt := range []struct {
		env    map[string]string
		status string
		words  []string
	}{
		{map[string]string{}, checkWarn, []string{"no key of a provider", "ollama"}},
		{map[string]string{"OPENAI_API_KEY": "sk-proj-secretsecret"}, checkOK,
			[]string{"OPENAI_API_KEY: models openai:… and openai-chat:…"}},
		{map[string]string{"OPENAI_API_KEY": "sk-ant-secretsecret"}, checkFail,
			[]string{"OPENAI_API_KEY has a key that looks like a key of another provider", "export ANTHROPIC_API_KEY="}},
		{map[string]string{"OPENAI_API_KEY": "gsk_secretsecret", "OPENAI_BASE_URL": "https://api.groq.com/openai/v1"},
			checkOK, []string{"OPENAI_API_KEY"}},
		{map[string]string{"ANTHROPIC_API_KEY": "sk-proj-secretsecret"}, checkFail,
			[]string{"ANTHROPIC_API_KEY has a key", "export OPENAI_API_KEY="}},
		{map[string]string{"ANTHROPIC_API_KEY": "sk-ant-secret\n"}, checkFail,
			[]string{"ANTHROPIC_API_KEY contains white space"}},
		{map[string]string{"GEMINI_API_KEY": `"AIzasecretsecret"`}, checkFail, []string{"GEMINI_API_KEY contains quotes"}},
		{map[string]string{"GOOGLE_API_KEY": "AIzasecretsecret"}, checkOK, []string{"GOOGLE_API_KEY: models gemini:"}},
		{map[string]string{"MISTRAL_API_KEY": "your-secret-api-key"}, checkFail,
			[]string{"MISTRAL_API_KEY is a placeholder"}},
		{map[string]string{"CLAUDE_API_KEY": "sk-ant-secretsecret"}, checkWarn, []string{"CLAUDE_API_KEY is set, but no program reads it", `export ANTHROPIC_API_KEY="$CLAUDE_API_KEY"`}},
		{map[string]string{"SEARXNG_URL": "localhost"}, checkFail, []string{"SEARXNG_URL is not an address"}},
		{map[string]string{"HTTPS_PROXY": "http://proxy.test:3128"}, checkOK, []string{"HTTPS_PROXY"}},
	} {
		d, status := examined(t, t.TempDir(), tt.env)
		has(t, d, tt.status, tt.words...)
		if want := map[bool]int{true: 0, false: cli.StatusFailed}[tt.status != checkFail]; status != want {
			t.Errorf("%v: status %d, want %d", tt.words, status, want)
		}
	}
}

// Without --online no provider is asked. With --online each answer is reported with its remedy.
func TestDoctorOnline(t *testing.T) {
	asked := 0
	answer := http.StatusOK
	ahead := time.Duration(0)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.Method != http.MethodGet || r.URL.Path != "/v1/models" || r.ContentLength > 0 {
			t.Errorf("it was asked %s %s", r.Method, r.URL.Path)
		}
		if r.Header.Get("Authorization") != "Bearer secretsecret" && r.Header.Get("X-Api-Key") != "secretsecret" {
			t.Errorf("no key was sent: %v", r.Header)
		}
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		w.WriteHeader(answer)
		fmt.Fprint(w, `{"data":[{"id":"model-a"},{"id":"model-b"}]}`)
	}))
	defer web.Close()
	env := map[string]string{"OPENAI_API_KEY": "secretsecret", "OPENAI_BASE_URL": web.URL + "/v1"}
	d, status := examined(t, t.TempDir(), env)
	has(t, d, checkOK, "openai: its key is set; --online checks")
	if asked != 0 || status != 0 {
		t.Errorf("asked %d times, status %d", asked, status)
	}
	d, _ = examined(t, t.TempDir(), env, "--online")
	has(t, d, checkOK, "openai accepts the key: 2 models, model-a, model-b")
	d, _ = examined(t, t.TempDir(), map[string]string{"ANTHROPIC_API_KEY": "secretsecret",
		"ANTHROPIC_BASE_URL": web.URL}, "--online")
	has(t, d, checkOK, "anthropic accepts the key: 2 models")
	answer = http.StatusUnauthorized
	d, status = examined(t, t.TempDir(), env, "--online")
	has(t, d, checkFail, "openai rejects the key: status 401", "OPENAI_API_KEY")
	if status != cli.StatusFailed {
		t.Errorf("status %d", status)
	}
	answer = http.StatusNotFound
	d, _ = examined(t, t.TempDir(), env, "--online")
	has(t, d, checkWarn, "openai has no list of models")
	answer, ahead = http.StatusOK, 3*time.Hour
	d, _ = examined(t, t.TempDir(), env, "--online")
	has(t, d, checkWarn, "the clock differs from the clock of openai by 3h0m0s")
	web.Close()
	d, _ = examined(t, t.TempDir(), env, "--online")
	has(t, d, checkFail, "openai cannot be reached")
}

// The database is examined for the needs of a run.
func TestDoctorDatabase(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := filepath.Join(dir, "good.db")
	f := &assemble.StoreFlags{DB: good}
	d, _, err := f.Open(&cli.System{Env: func(string) string { return "" }}, true)
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	for _, tt := range []struct {
		db, status string
		words      []string
	}{
		{good, checkOK, []string{"good.db can be opened: version", "write-ahead log"}},
		{filepath.Join(dir, "new.db"), checkOK, []string{"new.db does not exist yet"}},
		{dir, checkFail, []string{"is not a file", "--db FILE"}},
		{write("text.db", strings.Repeat("this is no database\n", 10)), checkFail,
			[]string{"text.db", "restore a copy"}},
		{"postgres://user:secretsecret@nobody.invalid/x", checkOK, []string{"it is at an address; --online connects to it"}},
	} {
		d, status := examined(t, dir, nil, "--db", tt.db)
		has(t, d, tt.status, tt.words...)
		if (status == 0) != (tt.status != checkFail) {
			t.Errorf("%s: status %d", tt.db, status)
		}
		b, _ := json.Marshal(d)
		if strings.Contains(string(b), "secretsecret") {
			t.Errorf("a password is shown: %s", b)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "new.db")); err == nil {
		t.Error("a database was made by looking for it")
	}
}

// Agent files are checked, and the keys of their models are looked up.
func TestDoctorFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"agent.yaml": "agent: a\nmodel: [openai:gpt-6.1-terra, ollama:x]\n",
		"wrong.yaml": "agent: a\nmodl: openai:x\n",
		"own.yaml":   "agent: a\nmodel: {name: openai-chat:x, base_url: https://llm.example/v1, key_env: MY_KEY}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d, status := examined(t, dir, nil)
	has(t, d, checkOK, "agent.yaml: 1 agent")
	has(t, d, checkFail, "agent a uses openai:gpt-6.1-terra, and OPENAI_API_KEY is not set", "export OPENAI_API_KEY=")
	if status != cli.StatusFailed {
		t.Errorf("status %d", status)
	}
	d, status = examined(t, dir, map[string]string{"OPENAI_API_KEY": "secretsecret"})
	if has(t, d, checkOK, "agent.yaml: 1 agent"); status != 0 {
		t.Errorf("status %d", status)
	}
	d, _ = examined(t, dir, nil, "wrong.yaml", "own.yaml", "gone.yaml")
	has(t, d, checkFail, `there is no key "modl"`, "pawl check wrong.yaml")
	has(t, d, checkFail, "MY_KEY: there is no such environment variable")
	has(t, d, checkFail, "gone.yaml: no such file")
}

// Python, the clock and Temporal.
func TestDoctorMachine(t *testing.T) {
	dir := t.TempDir()
	script := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for python, want := range map[string][2]string{
		script("good", "echo Python 3.11.2"): {checkOK, "Python 3.11.2"},
		script("old", "echo Python 3.7.1"):   {checkFail, "needs 3.8"},
		script("bad", "exit 3"):              {checkFail, "does not work"},
		filepath.Join(dir, "gone"):           {checkWarn, "there is no"},
	} {
		x := &examination{python: python}
		x.interpreter()
		has(t, diagnosis{Checks: x.found}, want[0], want[1])
	}
	x := new(examination)
	x.clock(time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	has(t, diagnosis{Checks: x.found}, checkFail, "before this program was built")

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	d, _ := examined(t, dir, map[string]string{"TEMPORAL_ADDRESS": addr})
	has(t, d, checkOK, "a server is at "+addr)
	l.Close()
	d, _ = examined(t, dir, map[string]string{"TEMPORAL_ADDRESS": addr})
	has(t, d, checkFail, "no server answers at TEMPORAL_ADDRESS")
	d, _ = examined(t, dir, map[string]string{"TEMPORAL_ADDRESS": "temporal.invalid:7233"})
	has(t, d, checkOK, "--online connects")
	d, _ = examined(t, dir, map[string]string{"TEMPORAL_ADDRESS": "temporal"})
	has(t, d, checkFail, "not HOST:PORT")
}
