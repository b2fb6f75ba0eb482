package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

// With history: all, an agent that reads more than its window fails, and the hint names the key
// that helps. The control: with that key the same task ends.
func TestHistoryAllNamesTheWindow(t *testing.T) {
	dir := t.TempDir()
	write := writer(t, dir)
	write("models.json", `[{"provider":"openai","id":"sim","calling":true,"window":8000}]`)
	for i := range 20 {
		write(fmt.Sprintf("page%d.txt", i), strings.Repeat(fmt.Sprintf("line of page %d\n", i), 200))
	}
	for key, status := range map[string]int{"all": 1, "window": 0} {
		replies := 0
		model := script.New(script.Loop(script.Func(func(*llm.Request) script.Turn {
			if replies++; replies > 20 {
				return script.Say("All read.")
			}
			return script.Call("file_read", map[string]any{"path": fmt.Sprintf("page%d.txt", replies-1)})
		})))
		sim, err := pawltest.NewSimulator(model, &pawltest.SimulatorOptions{Quiet: true,
			Fault: func(_ int, r *pawltest.Received) *pawltest.Fault {
				if len(r.Body)/4 > 8000 {
					return &pawltest.Fault{Status: 400, Code: "context_length_exceeded", Message: "maximum context length"}
				}
				return nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		defer sim.Close()
		write("agent.yaml", "agent: reader\nmodel: {name: \"openai:sim\", base_url: \""+sim.URL+
			"\"}\ncatalog: models.json\ntools: [file]\nlimits: {rounds: 60}\nhistory: "+key+"\n")
		c := exec.Command("pawl", "run", "agent.yaml", "Read all pages.")
		c.Dir = dir
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "OPENAI_API_KEY=none", "GORACE=atexit_sleep_ms=0"}
		out, _ := c.CombinedOutput() // the exit status is compared
		said, got := string(out), c.ProcessState.ExitCode()
		hinted := strings.Contains(said, "pawl: hint: ") && strings.Contains(said, "history: window in the agent's file")
		if got != status || hinted != (status == 1) || strings.Contains(said, "All read.") != (status == 0) {
			t.Errorf("history: %s: status %d\n%s", key, got, said)
		}
	}
}
