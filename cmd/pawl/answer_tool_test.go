package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/test/answertest"
	"github.com/pawl-go/pawl/llm"
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
