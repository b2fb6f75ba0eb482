package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

// pawl run --record of release 0 wrote the recording. It must not be written again, because users
// keep such files: -update writes it only if none exists. The tools are the tools of a rehearsal,
// because the descriptions of built-in tools are part of each request and may change.
const release0Recording = "../../recording/testdata/release0.json"

const release0Tools = `[
  {"name": "weather", "description": "Weather in a city.", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}, "results": ["rain", "sun"]}
]`

// ran runs pawl in this process.
func ran(t *testing.T, args []string, env map[string]string) (status int, out, failed string) {
	t.Helper()
	for name, value := range env {
		t.Setenv(name, value)
	}
	var stdout, stderr bytes.Buffer
	sys := &cli.System{In: strings.NewReader(""), Out: &stdout, Err: &stderr, Env: os.Getenv, Width: 80}
	status = execute(args, sys)
	return status, stdout.String(), stderr.String()
}

// A recording of release 0 answers its own run and no other run.
func TestRecordingOfRelease0IsPlayed(t *testing.T) {
	dir := t.TempDir()
	tools := filepath.Join(dir, "tools.json")
	if err := os.WriteFile(tools, []byte(release0Tools), 0o600); err != nil {
		t.Fatal(err)
	}
	command := []string{"run", "--model", "openai:sim", "--rehearse", tools}
	const task = "Do I need an umbrella?"
	if _, err := os.Stat(release0Recording); *update && os.IsNotExist(err) {
		both := script.Together(script.Call("weather", map[string]any{"city": "Oslo"}),
			script.Call("weather", map[string]any{"city": "Bergen"}))
		sim, err := pawltest.NewSimulator(script.New(both, script.Say("Only in Oslo: <rain> & ☂.")), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer sim.Close()
		if err := os.MkdirAll(filepath.Dir(release0Recording), 0o755); err != nil {
			t.Fatal(err)
		}
		status, _, failed := ran(t, append(command, "--record", release0Recording, task), map[string]string{"OPENAI_BASE_URL": sim.URL, "OPENAI_API_KEY": "test-key", "HOME": dir})
		if status != 0 {
			t.Fatalf("status %d: %s", status, failed)
		}
	}
	env := map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": "", "HOME": dir}
	status, out, failed := ran(t, append(command, "--replay", release0Recording, task), env)
	if status != 0 || out != "Only in Oslo: <rain> & ☂.\n" || strings.Contains(failed, "not asked") {
		t.Errorf("status %d, %q: %s", status, out, failed)
	}
	status, _, failed = ran(t, append(command, "--replay", release0Recording, "Do I need a coat?"), env)
	if status != cli.StatusUsage || !strings.Contains(failed, "request 1 was not recorded") {
		t.Errorf("another task is answered: status %d: %s", status, failed)
	}
}
