package core_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
)

// The conversations in testdata show whole runs: every event in order, and the transcript. -update
// rewrites them; review the diff.
func TestConversations(t *testing.T) {
	weather := pawl.Func("weather", "Weather in a city.", func(ctx context.Context, in struct {
		City string `json:"city"`
	}) (string, error) {
		pawl.InvocationFrom(ctx).Emit("asking", json.RawMessage(`{"city":"`+in.City+`"}`))
		return "rain in " + in.City, nil
	})
	weather.Effect = pawl.EffectRead
	remove := says("remove", "gone")
	remove.Effect = pawl.EffectWrite
	for name, test := range map[string]struct {
		what   string
		turns  []script.Turn
		limits pawl.Limits
	}{
		"answer": {what: "A model that needs no tool: its words come in fragments.",
			turns: []script.Turn{script.Together(script.Think("easy"), script.Say("No, it is dry."))}},
		"parallel": {what: "Two calls in one reply, one of them of a tool that is not there; the results stand in call order.",
			turns: []script.Turn{script.Together(script.Say("I look."), script.Call("weather", `{"city":"Oslo"}`), script.Call("wether", `{"city":"Bergen"}`)), script.Say("Take one.")}},
		"leak": {what: "The model writes its call as text too; the text was shown, and is taken back.",
			turns: []script.Turn{script.Together(script.Say(`{"city":"Oslo"}`), script.Call("weather", `{"city":"Oslo"}`)), script.Say("Take one.")}},
		"pending": {what: "A call that may change the world waits for a person; the other one is carried out.",
			turns: []script.Turn{script.Together(script.Call("remove", `{}`), script.Call("weather", `{"city":"Oslo"}`))}},
		"cut": {what: "The reply ends in the middle of a call, at the bound of its length; the call is not run, and the model is told.",
			turns: []script.Turn{script.Cut(script.Call("weather", `{"city":"Os`)), script.Call("weather", `{"city":"Oslo"}`), script.Say("Take one.")}},
		"limit": {what: "One round, after which the model is asked to answer and calls once more.", limits: pawl.Limits{Rounds: 1},
			turns: []script.Turn{script.Call("weather", `{"city":"Oslo"}`), script.Call("weather", `{"city":"Bergen"}`)}},
		"failure": {what: "The provider fails in the middle of a reply; the transcript is as it was before the request.",
			turns: []script.Turn{script.Call("weather", `{"city":"Oslo"}`), script.Together(script.Say("Take"), script.Fail(errors.New("the connection was lost")))}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // its clock starts at the same time in each run
				a := &pawl.Agent{Name: "ann", Model: script.New(test.turns...),
					Tools: []pawl.Toolset{weather, remove}, Limits: test.limits,
					Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)},
					Parallel:   pawl.Parallel{Limit: 1}}
				var events bytes.Buffer
				var res *pawl.Result
				seen := func(e pawl.Event) {
					if x := e.Execution; x != nil {
						timeless := *x
						timeless.Started, timeless.Ended = time.Time{}, time.Time{}
						e.Execution = &timeless
					}
					if e.Kind == pawl.EventRunEnded {
						res = e.Result
					}
					fmt.Fprintln(&events, jsonOf(t, e))
				}
				run := a.Stream(t.Context(), llm.User("Do I need an umbrella in Oslo?"))
				var fault error
				for e, err := range run {
					if fault = err; err == nil {
						seen(e)
					}
				}
				got := txtar.Archive{Comment: []byte(test.what + "\n"),
					Files: []txtar.File{{Name: "events", Data: events.Bytes()}, {Name: "transcript", Data: []byte(say(res.Messages))}}}
				if fault != nil {
					got.Files = append(got.Files, txtar.File{Name: "error", Data: []byte(fault.Error() + "\n")})
				}
				path := filepath.Join("testdata", name+".txtar")
				if *update {
					if err := os.WriteFile(path, txtar.Format(&got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(strings.Split(string(txtar.Format(&got)), "\n"),
					strings.Split(string(want), "\n")); diff != "" {
					t.Errorf("%s: got -, want +\n%s", path, diff)
				}
				mustBeValid(t, res)
			})
		})
	}
}
