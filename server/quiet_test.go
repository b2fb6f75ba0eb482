package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/edge"
	"github.com/pawl-go/pawl/internal/test/parts"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server"
)

// quiet is a server with the agents clerk, whose tool takes long behind a write, and finder, which
// has structured output, behind a proxy that closes silent connections.
func quiet(t *testing.T, beat time.Duration, times edge.Options) (*edge.Edge, *serving, *atomic.Int32) {
	var wrote atomic.Int32
	var front atomic.Pointer[edge.Edge]
	refund := pawl.Func("refund", "Refunds.", func(context.Context, struct{}) (string, error) {
		wrote.Add(1)
		return "refunded", nil
	})
	refund.Effect = pawl.EffectWrite // the other call waits for it, so there is one order
	hold := pawl.Func("hold", "Waits.", func(ctx context.Context, in struct {
		Name string `json:"name"`
	}) (string, error) {
		return "held", front.Load().Hold(ctx, in.Name)
	})
	hold.Effect = pawl.EffectRead
	look := pawl.Func("look", "Looks.", func(context.Context, struct{}) (string, error) { return "Oslo", nil })
	look.Effect = pawl.EffectRead
	const output = `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`
	turn := func(req *llm.Request) script.Turn {
		word, name, _ := strings.Cut(req.Messages[0].Text(), " ")
		switch res := script.Results(req); {
		case word == "slow" && res == nil:
			return script.Together(script.Call("refund", nil), script.Call("hold", map[string]string{"name": name}))
		case word == "slow":
			return script.Say("Done: " + res[0].Text() + "; " + res[1].Text())
		case res == nil:
			return script.Together(script.Say("Let me look first."), script.Call("look", nil))
		}
		return script.Together(script.Say("Here it is."), script.Call("final_answer", `{"city":"Oslo"}`))
	}
	model := &script.Model{Turns: []script.Turn{script.Loop(script.Func(turn))}}
	v := serve(t, func(o *options) {
		o.Times.Beat, o.A2A = beat, &server.A2A{}
		o.Agents = []*pawl.Agent{
			{Name: "clerk", Model: model, Tools: []pawl.Toolset{refund, hold},
				Middleware: []pawl.Middleware{pawl.Approve(allow)}},
			{Name: "finder", Model: model, Tools: []pawl.Toolset{look}, Output: json.RawMessage(output)}}
	})
	front.Store(edge.New(t, v.url, times))
	return front.Load(), v, &wrote
}

// A tool that takes 40 s, behind a proxy that closes connections after 30 s of silence: each client
// gets the answer of its first request, and a write is executed once. Outside make soak, the tool
// ends after three heartbeats. Structured output behind prose comes as the protocols have it.
func TestQuietTools(t *testing.T) {
	sdk := filepath.Join("..", "pawltest", "testdata", "sdk")
	ui := filepath.Join("testdata", "ui")
	a2a := filepath.Join("testdata", "a2a")
	node := parts.Packages(t, sdk, "@langchain/openai/package.json")
	parts.Packages(t, ui, "react7/package.json")
	parts.Packages(t, a2a, "@a2a-js/sdk/package.json")
	e, _, wrote := quiet(t, soak.N(5*time.Millisecond, 0), edge.Options{Silence: soak.N(0, 40*time.Second)})
	const held, city = "Done: refunded; held", `{"city":"Oslo"}`
	want := map[string]string{}
	for _, api := range []string{"openai-chat", "openai-responses", "ai-chat", "ai-responses", "ai-compatible", "ai-messages", "anthropic-messages", "langchain-chat",
		"langchain-responses", "agents-chat", "agents-responses"} {
		want[api] = "answer " + held
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	got, posts := map[string]string{}, 0
	run := func(prefix, dir string, want map[string]string, args ...string) {
		all.Go(func() {
			cmd := exec.CommandContext(t.Context(), node, args...)
			cmd.Dir = dir
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			var said map[string]string
			if err = errors.Join(err, json.Unmarshal(out, &said)); err != nil {
				t.Errorf("%v: %v: %s%s", args, err, out, stderr.String())
			}
			mu.Lock()
			defer mu.Unlock()
			for name, text := range want {
				if said[name] != text {
					t.Errorf("%s%s: got %q, want %q", prefix, name, said[name], text)
				}
				if got[prefix+name] = text; strings.Contains(text, held) {
					posts++
				}
			}
		})
	}
	run("", sdk, want, "lost.mjs", e.URL, "none", "quiet")
	pages := map[string]string{}
	for _, name := range []string{"useChat 6", "useChat 7", "AG-UI 1", "AG-UI 0"} {
		pages[name+" quiet"] = "refunded | held | " + held
		pages[name+" prose"] = "Let me look first. | Oslo | Here it is. | This is the answer. | " + city
	}
	run("", ui, pages, "quiet.mjs", e.URL)
	for _, binding := range []string{"rpc", "rest"} {
		run(binding+" ", a2a, map[string]string{"quiet": held, "prose": "completed: " + city},
			"client.mjs", e.URL, "none", binding, "quiet")
	}
	all.Wait()
	for text, n := range e.Posts() {
		if n != 1 {
			t.Errorf("%s: %d requests", text, n)
		}
	}
	if e.Cuts() != 0 || int(wrote.Load()) != posts || len(e.Posts()) != posts {
		t.Errorf("%d connections broke, %d writes and %d tasks of %d", e.Cuts(), wrote.Load(), len(e.Posts()), posts)
	}
}

// The control: without signs of life the proxy closes the connection.
func TestQuietToolsControl(t *testing.T) {
	e, v, _ := quiet(t, time.Hour, edge.Options{Patience: 20 * time.Millisecond})
	res, err := v.client.Do(request(t, "POST", e.URL+"/v1/chat/completions", `{"model":"clerk","stream":true,"messages":[{"role":"user","content":"slow quiet-x"}]}`))
	var b []byte
	if err == nil { // the answer has begun before the cut
		defer res.Body.Close()
		b, err = io.ReadAll(res.Body)
	}
	if err == nil || e.Cuts() != 1 {
		t.Errorf("%d connections broke; got %s", e.Cuts(), b)
	}
}
