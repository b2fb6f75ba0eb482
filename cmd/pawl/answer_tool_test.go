package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/test/answertest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/sandbox"
)

// pawl run prints the answer that a terminal tool gave. The tool is file_read, and its result the
// report.
func TestAnswerOfATool(t *testing.T) {
	answertest.PlayReport(t, "command", func(t *testing.T, task string) string {
		dir := t.TempDir()
		t.Chdir(dir)
		said := llm.Assistant(llm.ToolCall{ID: "c1", Name: "file_read", Args: json.RawMessage(`{"path":"report.txt"}`)})
		if strings.Contains(task, "speak") {
			said.Parts = append([]llm.Part{llm.Text{Text: "I submit it."}}, said.Parts...)
		}
		turns, err := json.Marshal(map[string]any{"turns": []any{map[string]any{"message": said, "finish": "tool_calls"}}})
		ok(t, err)

		write := writer(t, dir)
		write("turns.json", string(turns))
		write("report.txt", answertest.Report)
		file := write("agent.yaml", "agent: writer\nmodel: script:turns.json\ntools: [file]\nterminal_tools: [file_read]\n")
		var out, errs bytes.Buffer
		sys := &cli.System{In: strings.NewReader(""), Out: &out, Err: &errs, Env: func(string) string { return "" }}
		if status := execute([]string{"run", file, task}, sys); status != 0 {
			t.Fatalf("status %d: %s", status, errs.String())
		}
		return strings.TrimSuffix(out.String(), "\n")
	})
}

// pawl run gives --max-rounds, and rounds in a file, the meaning of Limits.Rounds. The provider
// obeys tool_choice.
func TestRounds(t *testing.T) {
	if err := sandbox.Check(sandbox.Strict); err != nil {
		t.Skip(err) // its tool is a command
	}
	answertest.PlayRounds(t, "command", func(t *testing.T, l *answertest.Looker, rounds int) string {
		sim, err := pawltest.NewSimulator(l.Model, nil)
		ok(t, err)
		t.Cleanup(func() { ok(t, sim.Close()) })
		dir := t.TempDir()
		t.Chdir(dir)
		const look = "tools:\n  - command:\n      name: look\n      description: Looks.\n      effect: read\n" +
			"      input: {type: object, properties: {N: {type: integer}}}\n      run: [/bin/echo, seen]\n"
		write := writer(t, dir)
		model := "model: {name: \"openai-chat:sim\", base_url: \"" + sim.URL + "\"}\n"
		byFlag := write("flag.yaml", "agent: looker\n"+model+look)
		byFile := write("file.yaml", fmt.Sprintf("agent: looker\nlimits: {rounds: %d}\n", rounds)+model+look)

		var shown [2]string
		var looks [2]int
		for i, args := range [][]string{{"run", byFile, "go"}, {"run", byFlag, "--max-rounds", fmt.Sprint(rounds), "go"}} {
			var out, errs bytes.Buffer
			sys := &cli.System{In: strings.NewReader(""), Out: &out, Err: &errs, Env: func(string) string { return "" }}
			before := len(l.Model.Requests())
			execute(args, sys) // the status says that a limit was reached
			if n := len(l.Model.Requests()) - before; n != rounds+1 {
				t.Errorf("%q: %d requests: %s", args, n, errs.String())
			}
			shown[i] = out.String()
			looks[i] = strings.Count(errs.String(), "→ look")
		}
		if shown[0] != shown[1] || looks[0] != looks[1] {
			t.Errorf("by the file it is %q with %d calls, by the flag %q with %d", shown[0], looks[0], shown[1], looks[1])
		}
		l.Looks = func() int { return looks[0] }
		l.Requests = func() int { return rounds + 1 } // of each
		return shown[0]
	})
}
