package core_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/script"
)

const canary = `cAnary/7f3+"k\9?`

// canaries are the forms in which the canary appears.
func canaries() []string {
	quoted, _ := json.Marshal(canary)
	out := []string{canary, url.QueryEscape(canary), url.PathEscape(canary), string(quoted[1 : len(quoted)-1])}
	for _, before := range []string{"", "u", "u:"} {
		text := base64.StdEncoding.EncodeToString([]byte(before + canary + "xyz"))
		out = append(out, text[4:20], strings.NewReplacer("+", "-", "/", "_").Replace(text[4:20]))
	}
	return out
}

func mustHide(t testing.TB, where, text string) {
	t.Helper()
	for _, c := range canaries() {
		if strings.Contains(text, c) {
			t.Errorf("%s tells %q: %s", where, c, text)
		}
	}
}

// planted is a run with the canary in every place that a model or a tool can write.
func planted() (*pawl.Agent, *[]string) {
	var ran []string
	var mu sync.Mutex // calls of one reply run in parallel
	look := func(name string, run func() (llm.ToolResult, error)) *pawl.Tool {
		return does(name, func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
			mu.Lock()
			ran = append(ran, string(c.Args))
			mu.Unlock()
			v := pawl.InvocationFrom(ctx)
			v.Emit("at work with "+canary, json.RawMessage(jsonOf(noFatal{}, map[string]string{"key": canary})))
			_ = v.Set("key", map[string]string{"k": canary})
			return run()
		})
	}
	basic := base64.StdEncoding.EncodeToString([]byte("u:" + canary))
	quoted, _ := json.Marshal(canary)
	a := &pawl.Agent{Model: script.New(
		script.Turn{Parts: []llm.Part{
			llm.Reasoning{Text: "the key is " + canary,
				Opaque: &llm.Opaque{Provider: "p", Data: json.RawMessage(`{"k":` + string(quoted) + `}`)}},
			text("I use " + canary), call("a", "result", `{"key":`+string(quoted)+`}`), call("b", "error", `{"key":"`+url.QueryEscape(canary)+`"}`),
			call("c", "panic", `{"auth":"`+basic+`"}`), call("d", "data", `{}`), call("e", canary, `{}`), call("f", "strict", `{"n":`+string(quoted)+`}`),
			call("g", "strict", `{"n": `+canary)}},
		script.Say("it was "+canary+".")),
		Tools: []pawl.Toolset{
			look("result", func() (llm.ToolResult, error) {
				return llm.ToolResult{Parts: []llm.Part{text("got " + canary),
					llm.Media{MIME: "text/plain", Data: []byte(canary)}, llm.Media{URL: "https://x/?k=" + url.QueryEscape(canary)}}}, nil
			}),
			look("error", func() (llm.ToolResult, error) {
				return llm.ToolResult{}, fmt.Errorf("refused: Authorization: Bearer %s", canary)
			}),
			look("panic", func() (llm.ToolResult, error) { panic("with " + canary) }),
			look("data", func() (llm.ToolResult, error) {
				return llm.ToolResult{Data: json.RawMessage(`{"\u0063Anary/7f3+\"k\\9?":[` + string(quoted) + `]}`)}, nil
			}),
			&pawl.Tool{Name: "strict", Input: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`), Run: says("", "").Run},
		}}
	return a, &ran
}

type noFatal struct{}

func (noFatal) Helper()           {}
func (noFatal) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// A secret in arguments, results, errors, panics, headers, text and reasoning is in no output. The
// model and the tools get it unchanged.
func TestNoSecretLeaves(t *testing.T) {
	var r redact.Redactor
	if err := r.Add(canary); err != nil {
		t.Fatal(err)
	}
	bare, _ := planted()
	var open bytes.Buffer // the control: without redaction each kind of sink receives it
	for e := range bare.Stream(t.Context(), llm.User("with "+canary)) {
		open.WriteString(jsonOf(t, e))
	}
	for _, c := range []string{canaries()[0], canaries()[1]} {
		quoted, _ := json.Marshal(c)
		if !strings.Contains(open.String(), string(quoted[1:len(quoted)-1])) {
			t.Errorf("the control does not tell %s", c)
		}
	}

	a, ran := planted()
	var logged bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&logged, nil))
	told := map[string]string{}
	var seq int64
	for e, err := range redact.Runner(a, &r).Stream(t.Context(), llm.User("with "+canary)) {
		if err != nil {
			t.Fatal(err)
		}
		if seq++; e.Seq != seq {
			t.Fatalf("event %d has the number %d", seq, e.Seq)
		}
		log.Info("event", "event", e)
		mustHide(t, string(e.Kind), jsonOf(t, e))
		mustHide(t, string(e.Kind)+" in Go", fmt.Sprintf("%+v %+v %+v", e, e.Execution, e.Completed))
		switch e.Kind {
		case pawl.EventText, pawl.EventReasoning, pawl.EventCallDelta:
			key := fmt.Sprint(e.Kind, e.Step, e.Index)
			told[key] += e.Text
		case pawl.EventRunEnded:
			mustHide(t, "the result", jsonOf(t, e.Result))
		}
	}
	mustHide(t, "a log", logged.String())
	for key, text := range told {
		mustHide(t, key, text)
		if strings.HasPrefix(key, "text") && text != "I use [redacted]" && text != "it was [redacted]." {
			t.Errorf("%s was told as %q", key, text)
		}
	}
	if len(*ran) != 4 || !strings.Contains(strings.Join(*ran, " "), jsonOf(t, canary)) {
		t.Errorf("the tools got %q", *ran)
	}

	a, _ = planted()
	var sent []llm.Message
	a.Middleware = []pawl.Middleware{{Model: func(m llm.Model) llm.Model {
		return modelFunc(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
			sent = req.Messages
			return m.Stream(ctx, req)
		})
	}}}
	res, err := a.Run(t.Context(), llm.User("with "+canary))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(say(sent), "got "+canary) {
		t.Error("the model does not get the truth")
	}
	before := jsonOf(t, res)
	mustHide(t, "Redactor.Result", jsonOf(t, r.Result(res)))
	if jsonOf(t, res) != before {
		t.Error("the Result itself was changed")
	}
	if err := valid(r.Result(res).Messages); err != nil {
		t.Error(err)
	}
}

func TestErrorsTellNoSecrets(t *testing.T) {
	var r redact.Redactor
	r.Add(canary)
	inner := errors.New("dial with " + canary)
	pe := &llm.ProviderError{Provider: "p", Status: 401, Code: llm.CodeAuthentication, Message: "bad key " + canary, Err: inner}
	te := &pawl.ToolError{Execution: pawl.Execution{Error: canary,
		Call: call("a", "f", `{"k":"`+url.QueryEscape(canary)+`"}`)}, Err: inner}
	for _, err := range []error{pe, te, fmt.Errorf("step 1: %w", pe), fmt.Errorf("step 1: %w", te), inner, errors.Join(inner, context.Canceled),
		&pawl.TranscriptError{Text: canary}, &llm.ProviderError{Message: "said little", Err: inner}} {
		safe := r.Error(err)
		var p *llm.ProviderError
		var o *pawl.ToolError
		var tr *pawl.TranscriptError
		told := fmt.Sprintf("%v %+v %v", safe, safe, errors.Unwrap(safe))
		if errors.As(safe, &p) != errors.As(err, new(*llm.ProviderError)) ||
			errors.As(safe, &o) != errors.As(err, new(*pawl.ToolError)) ||
			errors.As(safe, &tr) != errors.As(err, new(*pawl.TranscriptError)) {
			t.Errorf("%v: errors.As finds something else in %v", err, safe)
		}
		if p != nil {
			told += fmt.Sprintf("%+v %v", p, p.Err)
		}
		if o != nil {
			told += fmt.Sprintf("%+v %v", o, o.Err)
		}
		mustHide(t, "an error", told)
		if errors.Is(safe, context.Canceled) != errors.Is(err, context.Canceled) {
			t.Errorf("%v: errors.Is says something else", safe)
		}
	}
	if plain := errors.New("nothing"); r.Error(plain) != plain || r.Error(nil) != nil {
		t.Error("an error without secrets was changed")
	}

	a := &pawl.Agent{Model: script.New(script.Turn{Err: pe})}
	for e, err := range redact.Runner(a, &r).Stream(t.Context(), llm.User("go")) {
		mustHide(t, "a run that failed", jsonOrNone(e)+fmt.Sprint(err))
		var p *llm.ProviderError
		if err != nil && (!errors.As(err, &p) || p.Code != llm.CodeAuthentication) {
			t.Errorf("the code is lost: %v", err)
		}
	}
}

func jsonOrNone(e pawl.Event) string {
	b, _ := json.Marshal(e)
	return string(b)
}

// For any cut of a reply into fragments, no sequence of fragments shows a secret, the fragments
// join to the redacted reply, and no text is held back at the end.
func TestFragmentsTellNoSecrets(t *testing.T) {
	var r redact.Redactor
	r.Add(canary, "cAnary/7f3-other", "second-secret")
	rapid.Check(t, func(t *rapid.T) {
		pieces := []string{canary, canary[:7], "cAnary/7f3-other", "second-", "second-secret", "second-second-secret", " and ", "é", "x"}
		draw := func(name string) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 8).Draw(t, name), "")
		}
		reply, thought, arg := draw("text"), draw("reasoning"), jsonOf(noFatal{}, map[string]string{"a": draw("args")})
		var deltas []llm.Delta
		rest := map[int]string{0: thought, 1: reply, 2: arg}
		deltas = append(deltas, llm.Delta{Index: 2, Part: llm.ToolCall{ID: "c", Name: "f"}})
		deltas = append(deltas, llm.Delta{Index: 0, Part: llm.Reasoning{}}, llm.Delta{Index: 1, Part: llm.Text{}})
		deltas = deltas[1:]
		started := false
		for len(rest) > 0 {
			i := rapid.IntRange(0, 2).Draw(t, "part")
			if rest[i] == "" {
				delete(rest, i)
				continue
			}
			n := rapid.IntRange(1, len(rest[i])).Draw(t, "bytes")
			switch piece := rest[i][:n]; i {
			case 0:
				deltas = append(deltas, llm.Delta{Index: i, Part: llm.Reasoning{Text: piece}})
			case 1:
				deltas = append(deltas, llm.Delta{Index: i, Part: llm.Text{Text: piece}})
			case 2:
				c := llm.ToolCall{Args: json.RawMessage(piece)}
				if !started {
					c.ID, c.Name, started = "c", "f", true
				}
				deltas = append(deltas, llm.Delta{Index: i, Part: c})
			}
			rest[i] = rest[i][n:]
		}
		deltas = append(deltas, llm.Delta{Finish: llm.FinishReasonToolCalls})
		a := &pawl.Agent{Model: script.New(script.Turn{Deltas: deltas}, script.Say("done")), Tools: []pawl.Toolset{says("f", "1")}}
		told := map[int]string{}
		for e, err := range redact.Runner(a, &r).Stream(context.Background(), llm.User("go")) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == pawl.EventResponseReceived {
				break
			}
			switch e.Kind {
			case pawl.EventText, pawl.EventReasoning, pawl.EventCallDelta:
				told[e.Index] += e.Text
			}
		}
		for i, want := range map[int]string{0: r.String(thought), 1: r.String(reply), 2: r.String(arg)} {
			if told[i] != want {
				t.Fatalf("part %d: told %q, want %q", i, told[i], want)
			}
		}
	})
}

const login = `{"type":"object","properties":{"user":{"type":"string"},"password":{"type":"string","writeOnly":true},"pin":{"type":"integer","x-secret":true},
	"keys":{"type":"array","items":{"$ref":"#/$defs/key"}}},"$defs":{"key":{"type":"object","properties":{"value":{"type":"string","x-secret":true},"name":{"type":"string"}}}},"required":["user"]}`

// Arguments that the schema marks as secret are redacted wherever the call appears, in fragments
// too, and so are their values elsewhere.
func TestMarkedArgumentsAreHidden(t *testing.T) {
	for args, want := range map[string]string{
		`{"user":"ann","password":"hunter2!","pin":90210001234567}`:         `{"user":"ann","password":"[redacted]","pin":"[redacted]"}`,
		`{"user":"ann","Password":"hunter2!"}`:                              `{"user":"ann","Password":"[redacted]"}`,
		`{"user":"ann","keys":[{"name":"a","value":"hunter2!"}]}`:           `{"user":"ann","keys":[{"name":"a","value":"[redacted]"}]}`,
		`{"user":"ann","keys":{"name":"a","value":"hunter2!"}}`:             `{"user":"ann","keys":{"name":"[redacted]","value":"[redacted]"}}`,
		`{"user":"ann","keys":"[{\"value\":\"hunter2!\"}]"}`:                `{"user":"ann","keys":"[redacted]"}`,
		`{"arguments":{"user":"ann","password":"hunter2!"}}`:                `{"arguments":{"user":"ann","password":"[redacted]"}}`,
		`"{\"user\":\"ann\",\"password\":\"hunter2!\"}"`:                    `"[redacted]"`,
		`{"user":"ann","password":"hunter2!",}`:                             `[redacted]`,
		`{"user":"ann"}`:                                                    `{"user":"ann"}`,
		`{"user":"ann","password":null}`:                                    `{"user":"ann","password":null}`,
		`{"user":"ann","password":"hunter2!","note":"hunter2! is my word"}`: `{"user":"ann","password":"[redacted]","note":"[redacted] is my word"}`,
	} {
		got := ""
		tool := &pawl.Tool{Name: "login", Input: json.RawMessage(login),
			Run: func(_ context.Context, c llm.ToolCall) (llm.ToolResult, error) {
				got = string(c.Args)
				if strings.Contains(got, "hunter2!") {
					return llm.TextResult("welcome; your password is hunter2!"), nil
				}
				return llm.TextResult("welcome"), nil
			}}
		var fragments []llm.Delta
		fragments = append(fragments, llm.Delta{Part: llm.ToolCall{ID: "c", Name: "login"}})
		for i := range len(args) {
			fragments = append(fragments, llm.Delta{Part: llm.ToolCall{Args: json.RawMessage(args[i : i+1])}})
		}
		a := &pawl.Agent{Model: script.New(script.Turn{Deltas: append(fragments,
			llm.Delta{Finish: llm.FinishReasonToolCalls})}, script.Say("in")), Tools: []pawl.Toolset{tool}}
		var r redact.Redactor
		delta, ready := "", ""
		for e, err := range redact.Runner(a, &r).Stream(t.Context(), llm.User("go")) {
			if err != nil {
				t.Fatal(err)
			}
			if text := jsonOf(t, e); strings.Contains(text, "hunter2!") || strings.Contains(text, "90210001234567") {
				t.Errorf("%s: %s tells it: %s", args, e.Kind, text)
			}
			switch e.Kind {
			case pawl.EventCallDelta:
				delta += e.Text
			case pawl.EventCallReady:
				ready = string(e.Call.Args)
			}
		}
		if diff := cmp.Diff([]string{delta, ready}, []string{want, want}); diff != "" {
			t.Errorf("%s: got -, want +\n%s", args, diff)
		}
		if strings.Contains(args, `hunter2!"`) && !strings.Contains(got, "hunter2!") {
			t.Errorf("%s: the tool got %s", args, got)
		}
		res, err := (&pawl.Agent{Model: script.New(script.Turn{Parts: []llm.Part{call("c", "login", args)}},
			script.Say("in")), Tools: []pawl.Toolset{tool}}).Run(t.Context(), llm.User("go"))
		if err != nil {
			t.Fatal(err)
		}
		r.AddTools(tool)
		if text := jsonOf(t, r.Result(res)); strings.Contains(text, "hunter2!") {
			t.Errorf("%s: the Result tells it: %s", args, text)
		}
	}
}

// The secret arguments of stored calls are redacted in every place. The redaction changes a copy
// and not the original.
func TestLearnFromKeptCalls(t *testing.T) {
	r := new(redact.Redactor)
	r.AddTools(&pawl.Tool{Name: "login", Input: json.RawMessage(login)})
	c := r.Clone()
	c.Learn(call("1", "login", `{"user":"annabel","password":"hunter2!","pin":12}`), call("2", "other", `{"password":"swordfish"}`), llm.ToolCall{Name: "login"})
	if got, want := c.String("annabel hunter2! 12 swordfish"), "annabel [redacted] 12 swordfish"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := r.String("hunter2!"); got != "hunter2!" {
		t.Errorf("what it was copied from hides it, too: %q", got)
	}
	var none *redact.Redactor
	if got := none.Clone().String("hunter2!"); got != "hunter2!" {
		t.Errorf("a copy of nothing gives %q", got)
	}
}

// A call whose arguments were redacted when it was stored does not run with the placeholder.
func TestHiddenArgumentsAreNotRun(t *testing.T) {
	var ran []string
	tool := probe(login, &ran)
	var r redact.Redactor
	r.AddTools(tool)
	a := &pawl.Agent{Model: script.New(script.Turn{Parts: []llm.Part{call("c", "probe", `{"user":"ann","password":"hunter2!"}`), call("d", "probe", `{"user":"bob"}`)}}, script.Say("done")),
		Tools: []pawl.Toolset{tool}, Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)}}
	res, err := runtest.Ended(a.Run(t.Context(), llm.User("go")))
	if err != nil || res.Stop != pawl.StopPending {
		t.Fatal(res, err)
	}
	stored := r.Result(res)
	a.Middleware = nil
	if res, err = a.Resume(t.Context(), stored); err != nil || res.Stop != pawl.StopAnswer {
		t.Fatal(res, err)
	}
	if len(ran) != 1 || ran[0] != `{"user":"bob"}` || !strings.Contains(say(res.Messages), "Send it again, with all of its arguments") {
		t.Errorf("ran %q\n%s", ran, say(res.Messages))
	}
}

func TestRedactorOfNothing(t *testing.T) {
	var none *redact.Redactor
	var zero redact.Redactor
	if err := zero.Add("", "abc"); err == nil || strings.Contains(err.Error(), "abc") {
		t.Errorf("a short secret: %v", err)
	}
	a := &pawl.Agent{Model: script.New(script.Say("abc"), script.Say("abc"), script.Say("abc"))}
	for _, r := range []*redact.Redactor{none, &zero} {
		if r.String("abc") != "abc" || string(r.JSON(json.RawMessage(`{"a": 1}`))) != `{"a": 1}` || r.Error(errBlock) != errBlock {
			t.Error("something was hidden")
		}
		_, res, err := collect(redact.Runner(a, r).Stream(t.Context(), llm.User("go")))
		if err != nil || res.Text() != "abc" {
			t.Error(res, err)
		}
	}
}

var errBlock = errors.New("a block")
