package pawltest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

// The official clients send the requests of the 60 conversations that changed their provider, and
// read the reply, whole and streamed. Their requests mean the same as pawl's requests.
func TestOfficialClientsContinueConversations(t *testing.T) {
	node := sdkNode(t)
	answer := script.Loop(script.Together(script.Say("I go on."), script.Call("look", `{"at":"the \"sea\""}`), script.Call("find", `{"at":"世界"}`)))
	const want = `{"text":"I go on.","calls":[{"name":"look","args":{"at":"the \"sea\""}},{"name":"find","args":{"at":"世界"}}]}`
	at := map[string]*pawltest.Simulator{}
	for _, w := range wires {
		at[w.api] = simulate(t, script.New(answer), &pawltest.SimulatorOptions{Key: "test-key"})
	}
	var in bytes.Buffer
	var names []string
	sent := map[string][][]string{} // what pawl sent, by API
	for _, a := range wires {
		for _, b := range wires {
			if a.api == b.api {
				continue
			}
			for _, c := range talks {
				modelA, _ := a.on(t, c.model(), pawltest.SimulatorOptions{})
				modelB, atB := b.on(t, c.model(), pawltest.SimulatorOptions{})
				first, _ := run(t, modelA, c.effort, false, nil, llm.Message{Role: llm.RoleUser, Parts: c.words})
				run(t, modelB, c.effort, false, first, c.answers(first, "first"))
				got := atB.Received()[0]
				for _, stream := range []bool{false, true} {
					line,
						err := json.Marshal(map[string]any{"api": b.api, "root": at[b.api].Root, "model": "gemini-3-flash-preview",
						"body": json.RawMessage(got.Body), "stream": stream})
					if err != nil {
						t.Fatal(err)
					}
					in.Write(append(line, '\n'))
					names = append(names, fmt.Sprintf("%s to %s, %s, streamed %t", a.name, b.name, c.name, stream))
					sent[b.api] = append(sent[b.api], meaning(got.Request.Messages))
				}
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, "cross.mjs")
	cmd.Dir = filepath.Join("testdata", "sdk")
	cmd.Stdin = &in
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if len(lines) != 120 || len(names) != 120 {
		t.Fatalf("%d answers to %d requests, want 120", len(lines), len(names))
	}
	for i, line := range lines {
		if canonical(line) != canonical(json.RawMessage(want)) {
			t.Errorf("%s: the client reads %s", names[i], line)
		}
	}
	for _, w := range wires {
		all := at[w.api].Received()
		if len(all) != 30 {
			t.Fatalf("%s: %d requests, want 30", w.name, len(all))
		}
		for i, r := range all {
			if diff := cmp.Diff(meaning(r.Request.Messages), sent[w.api][i]); diff != "" || len(r.Violations) > 0 {
				t.Errorf("%s, request %d: %v; the client sent -, pawl +\n%s", w.name, i, r.Violations, diff)
			}
		}
	}
}
