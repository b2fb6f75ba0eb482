package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/parts"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
)

// uiTurn answers the scenarios of the clients in testdata/ui: "call pay 1, look Oslo then pay 2"
// calls in two steps.
func uiTurn(count func() int) func(req *llm.Request) script.Turn {
	return func(req *llm.Request) script.Turn {
		asked, steps := "", 0
		for _, m := range req.Messages {
			switch m.Role {
			case llm.RoleUser:
				asked, steps = m.Text(), 0
			case llm.RoleAssistant:
				steps++
			}
		}
		word, rest, _ := strings.Cut(asked, " ")
		switch word {
		case "call":
			all := strings.Split(rest, " then ")
			if steps >= len(all) {
				var said []string
				for _, r := range script.Results(req) {
					said = append(said, r.Text())
				}
				return script.Say("Done: " + strings.Join(said, "; "))
			}
			if all[steps] == "break" {
				return script.Fail(&llm.ProviderError{Provider: "test", Code: llm.CodeInvalidRequest, Message: "no"})
			}
			turns := []script.Turn{script.Say("I call.")}
			for _, one := range strings.Split(all[steps], ", ") {
				name, arg, _ := strings.Cut(one, " ")
				args := map[string]string{"pay": `{"invoice":` + arg + `}`, "look": `{"at":"` + arg + `"}`, "helper": `{"task":"help"}`, "payer": `{"task":"call pay 20"}`}[name]
				turns = append(turns, script.Call(name, args+strings.Repeat("{}", 1-min(1, len(args)))))
			}
			return script.Together(turns...)
		case "think":
			return script.Together(script.Think("Let me see."), script.Say("Seen."))
		case "instructions":
			if m := req.Messages[0]; m.Role == llm.RoleSystem {
				return script.Say(m.Text())
			}
		case "count":
			return script.Say(fmt.Sprintf("Number %d.", count()))
		case "break":
			return script.Fail(&llm.ProviderError{Provider: "test", Code: llm.CodeInvalidRequest, Message: "no"})
		}
		return script.Say("You said: " + asked)
	}
}

// uiAgent returns the agent of the scenarios.
func uiAgent(w *world) *pawl.Agent {
	a := clerk(w)
	n := 0
	a.Model = &script.Model{Turns: []script.Turn{script.Loop(script.Func(uiTurn(func() int { n++; return n })))}}
	fail := pawl.Func("fail", "Fails.", func(context.Context, struct{}) (string, error) { return "", fmt.Errorf("it is broken") })
	fail.Effect = pawl.EffectRead
	end := pawl.Func("end", "Ends the run.", func(context.Context, struct{}) (string, error) {
		return "", pawl.FinishError(llm.TextResult("over"))
	})
	end.Effect = pawl.EffectRead
	quit := pawl.Func("quit", "Ends the run without an answer.", func(context.Context, struct{}) (string, error) {
		return "", pawl.FinishError(llm.TextResult(""))
	})
	quit.Effect = pawl.EffectRead
	a.Tools = append(a.Tools, fail, end, quit)
	report := pawl.Func("report", "Reports.", func(ctx context.Context, _ struct{}) (string, error) {
		pawl.InvocationFrom(ctx).Emit("half", json.RawMessage(`{"done":1}`))
		return "reported", nil
	})
	report.Effect = pawl.EffectRead
	a.Tools = append(a.Tools, report)
	a.Middleware = []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)}
	payer, helper := *a, *a
	payer.Name, helper.Name = "payer", "helper"
	a.Tools = append(a.Tools, payer.Tool("Pays."), helper.Tool("Helps."))
	return a
}

// node runs a script of the UI clients. It skips the test if they are not installed.
func node(t *testing.T, script string, args ...string) map[string]json.RawMessage {
	t.Helper()
	dir := filepath.Join("testdata", "ui")
	path := parts.Packages(t, dir, "react7/package.json")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{script}, args...)...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", script, err, out, stderr.Bytes())
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
	return got
}

// The class behind useChat of two major versions, at its default settings: what the page shows, how
// many requests it makes, and each payment once.
func TestUseChat(t *testing.T) {
	w := &world{gate: make(chan struct{}, 100)}
	v := serve(t, func(o *options) { o.Agents = []*pawl.Agent{uiAgent(w)} })
	front := http.NewServeMux()
	front.Handle("/", v.s)
	front.HandleFunc("POST /test/release", func(http.ResponseWriter, *http.Request) { w.gate <- struct{}{} })
	front.HandleFunc("GET /test/waits", func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, w.waits.Load()) })
	h := httptest.NewServer(front)
	defer h.Close()
	pay := func(n int, outcome string) string { return fmt.Sprintf(`pay({"invoice":%d}) %s`, n, outcome) }
	paid := func(n int) string { return pay(n, fmt.Sprintf(`output-available "paid %d"`, n)) }
	for _, major := range []string{"6", "7"} {
		t.Run(major, func(t *testing.T) {
			w.paid.Store(0)
			got := node(t, "ai.mjs", h.URL, major)
			number := map[string]int{"6": 3, "7": 6}[major]
			const changed = `(Not run as you asked: the approver changed the arguments to {"invoice":60})`
			quoted := strings.Trim(string(must(json.Marshal(changed+"\npaid 60"))), `"`)
			for name, want := range map[string]struct {
				posts int
				shows []string
			}{
				"text":                            {1, []string{"text:You said: hello"}},
				"reasoning":                       {1, []string{"reasoning:Let me see. | text:Seen."}},
				"second message":                  {2, []string{"text:You said: one", "text:You said: two"}},
				"two tools, one fails":            {1, []string{`text:I call. | look({"at":"Oslo"}) output-available "found Oslo" | fail({}) output-error it is broken | text:Done: found Oslo; it is broken`}},
				"question":                        {1, []string{"text:I call. | " + pay(1, "approval-requested")}},
				"approve":                         {2, []string{"text:I call. | " + paid(2) + " | text:Done: paid 2"}},
				"deny":                            {2, []string{"text:I call. | " + pay(3, "output-denied") + " | text:Done: Denied: too much"}},
				"one yes, one no":                 {2, []string{"text:I call. | " + paid(4) + " | " + pay(5, "output-denied") + " | text:Done: paid 4; Denied: too much"}},
				"edited":                          {2, []string{"text:I call. | " + pay(6, `output-available "`+quoted+`"`) + " | text:Done: " + changed + "\npaid 60"}},
				"asks twice":                      {3, []string{"text:I call. | " + paid(7) + " | text:I call. | " + paid(8) + " | text:Done: paid 8"}},
				"user writes instead":             {2, []string{"text:I call. | " + pay(9, "approval-requested"), "text:You said: hello"}},
				"tool of the agent for the page":  {2, []string{`text:I call. | ask({}) output-available "blue" | text:Done: blue`}},
				"tool of the page":                {2, []string{`text:I call. | locate({}) output-available {"city":"Rome"} | text:Done: {"city":"Rome"}`}},
				"tool of the page and a question": {2, []string{`text:I call. | locate({}) output-available {"city":"Rome"} | ` + paid(20) + ` | text:Done: {"city":"Rome"}; paid 20`}},
				"regenerate":                      {3, []string{fmt.Sprintf("text:Number %d.", number)}},
				"edit":                            {3, []string{"text:You said: one", "text:You said: zwei"}},
				"reload while it waits":           {2, []string{`text:I call. | look({"at":"a"}) output-available "found a" | ` + paid(10) + " | text:Done: found a; paid 10"}},
				"reload while it works":           {1, []string{`text:I call. | wait({}) output-available "waited" | text:Done: waited`}},
				"stop":                            {1, []string{"text:I call. | wait({}) output-error context canceled"}},
				"history":                         {3, []string{"text:You said: one", "text:I call. | " + paid(11) + " | text:Done: paid 11"}},
				"failing model":                   {1, []string{""}},
				"failing model behind a write":    {2, []string{"text:I call. | " + paid(12)}},
				"end behind a tool":               {1, []string{`text:I call. | end({}) output-available "over" | text:over`}},
				"end without a text":              {1, []string{`text:I call. | quit({}) output-available ""`}},
				// the control: without the mark of executed calls the page posts again and again
				"end without the mark": {5, nil},
			} {
				var chat struct {
					Posts  int
					Shows  []string
					Errors []string
				}
				if err := json.Unmarshal(got[name], &chat); err != nil {
					t.Errorf("%s: %v in %s", name, err, got[name])
					continue
				}
				if chat.Posts != want.posts || want.shows != nil && !slices.Equal(chat.Shows, want.shows) {
					t.Errorf("%s: got %d requests and %q, want %d and %q", name, chat.Posts, chat.Shows, want.posts, want.shows)
				}
				if failed := len(chat.Errors) > 0; failed != strings.HasPrefix(name, "failing model") && want.shows != nil {
					t.Errorf("%s: errors %q", name, chat.Errors)
				}
			}
			if string(got["nothing to resume"]) != "204" {
				t.Errorf("nothing to resume: got %s", got["nothing to resume"])
			}
			if n := w.paid.Load(); n != 9 { // "asks twice" has two
				t.Errorf("%d payments, want 9", n)
			}
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
