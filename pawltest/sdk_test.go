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

	"github.com/pawl-go/pawl/internal/test/parts"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

// sdkTurns answers the scripts in testdata/sdk.
func sdkTurns() llm.Model {
	usage := &llm.Usage{Input: 30, Output: 12, Reasoning: 5}
	return &script.Model{Turns: []script.Turn{script.Loop(script.Func(func(req *llm.Request) script.Turn {
		if results := script.Results(req); results != nil {
			return script.Say("There is " + results[0].Text() + " and " + results[1].Text() + images(results[1].Parts) + ".")
		}
		var turn script.Turn
		last := req.Messages[len(req.Messages)-1]
		switch last.Text() {
		case "image":
			turn = script.Say("I see it" + images(last.Parts) + ".")
		case "text":
			turn = script.Say("Grüße, 世界. A text that comes in pieces.")
		case "calls":
			turn = script.Together(script.Think("Let me see both."), script.Say("I look."),
				script.Call("look", `{"at":"the sky"}`), script.Call("find", `{"at":"a \"cloud\" in it"}`))
		case "cut":
			turn = script.Cut(script.Say("And then"))
		default:
			return script.Fail(&llm.ProviderError{Status: 429, Code: llm.CodeRateLimit, Message: "too many"})
		}
		turn.Usage = usage
		return turn
	}))}}
}

// images describes the images among parts.
func images(parts []llm.Part) (said string) {
	for _, p := range parts {
		if m, ok := p.(llm.Media); ok {
			said += fmt.Sprintf(", %d bytes of %s", len(m.Data), m.MIME)
		}
	}
	return said
}

type sdkReply struct {
	Text  string
	Calls []struct {
		Name string
		Args map[string]any
	}
	Finish string
	Usage  [2]int
}

type sdkError struct {
	Status  int
	Name    string
	Nothing json.RawMessage // the answer that came in place of an error
}

// The official clients read the output of the simulator, streamed and whole: texts, parallel calls,
// a loop with results, finish reasons, usage, and errors.
func TestOfficialClients(t *testing.T) {
	node := sdkNode(t)
	for _, test := range []struct {
		script, model             string
		stop, calls, cut          string // finish reasons
		refused, refusedInStreams string // classes of errors: status 429
		dangling                  string // and 400
		noIDs                     bool
	}{
		{"chat.mjs", "", "stop", "tool_calls", "length", "RateLimitError", "RateLimitError", "BadRequestError", false},
		{"responses.mjs", "", "completed", "completed", "max_output_tokens", "RateLimitError", "RateLimitError", "BadRequestError", false},
		{"anthropic.mjs", "", "end_turn", "tool_use", "max_tokens", "RateLimitError", "RateLimitError", "BadRequestError", false},
		{"gemini.mjs", "gemini-3-flash-preview", "STOP", "STOP", "MAX_TOKENS", "ApiError", "ApiError", "ApiError", false},
		{"gemini.mjs", "gemini-2.5-flash", "STOP", "STOP", "MAX_TOKENS", "ApiError", "ApiError", "ApiError", true},
	} {
		t.Run(test.script+" "+test.model, func(t *testing.T) {
			s := simulate(t, sdkTurns(), &pawltest.SimulatorOptions{Key: "test-key", NoIDs: test.noIDs})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			args := []string{test.script, s.Root}
			if test.model != "" {
				args = append(args, test.model)
			}
			cmd := exec.CommandContext(ctx, node, args...)
			cmd.Dir = filepath.Join("testdata", "sdk")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr.Bytes())
			}
			var got map[string]json.RawMessage
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if len(got) != 14 {
				t.Errorf("%d answers, want 14: %s", len(got), out)
			}
			calls := `[{"name":"look","args":{"at":"the sky"}},{"name":"find","args":{"at":"a \"cloud\" in it"}}]`
			for mode, refused := range map[string]string{"whole": test.refused, "streamed": test.refusedInStreams} {
				for name, want := range map[string]string{
					"text":  `{"text":"Grüße, 世界. A text that comes in pieces.","calls":[],"usage":[30,12],"finish":"` + test.stop + `"}`,
					"calls": `{"text":"I look.","calls":` + calls + `,"usage":[30,12],"finish":"` + test.calls + `"}`,
					"image": `{"text":"I see it, 8 bytes of image/png.","calls":[],"usage":[30,12],"finish":"` + test.stop + `"}`,
					"cut":   `{"text":"And then","calls":[],"usage":[30,12],"finish":"` + test.cut + `"}`,
				} {
					var w sdkReply
					if err := json.Unmarshal([]byte(want), &w); err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(decode[sdkReply](t, got[mode+" "+name]), w); diff != "" {
						t.Errorf("%s %s: got -, want +\n%s", mode, name, diff)
					}
				}
				loop := decode[sdkReply](t, got[mode+" loop"])
				want := "There is one and two, 8 bytes of image/png."
				if test.script == "chat.mjs" { // whose results are text
					want = "There is one and two."
				}
				if loop.Text != want || loop.Finish != test.stop {
					t.Errorf("%s loop: got %+v", mode, loop)
				}
				if diff := cmp.Diff(decode[sdkError](t, got[mode+" refused"]), sdkError{Status: 429, Name: refused}); diff != "" {
					t.Errorf("%s refused: got -, want +\n%s", mode, diff)
				}
				if diff := cmp.Diff(decode[sdkError](t, got[mode+" dangling"]),
					sdkError{Status: 400, Name: test.dangling}); diff != "" {
					t.Errorf("%s dangling: got -, want +\n%s", mode, diff)
				}
			}
			dangling := 0
			for _, r := range s.Received() {
				if len(r.Violations) > 0 {
					dangling++
				}
			}
			if dangling != 2 {
				t.Errorf("the checker refuses %d requests, want the two that are made to be wrong", dangling)
			}
		})
	}
}

func decode[V any](t *testing.T, raw json.RawMessage) (v V) {
	t.Helper()
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Errorf("%v: %s", err, raw)
	}
	return v
}

// sdkNode returns the path of node. It skips the test if node or the packages are not installed.
func sdkNode(t *testing.T) string {
	t.Helper()
	return parts.Packages(t, filepath.Join("testdata", "sdk"), "openai", "@anthropic-ai/sdk", "@google/genai")
}
