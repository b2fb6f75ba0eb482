package temporal

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/caller"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
)

// header is the header of a workflow. It is both ends of a propagator.
type header map[string]*commonpb.Payload

func (h header) Set(key string, value *commonpb.Payload) { h[key] = value }

func (h header) Get(key string) (*commonpb.Payload, bool) {
	value, ok := h[key]
	return value, ok
}

func (h header) ForEachKey(do func(string, *commonpb.Payload) error) error {
	for key, value := range h {
		if err := do(key, value); err != nil {
			return err
		}
	}
	return nil
}

// personal is a Toolset that has a tool for the caller alone, as an MCP server with a session for
// each caller has. Without a caller it has no tools, and in a run that is an error.
type personal struct {
	mu    sync.Mutex
	calls []string
}

func (p *personal) Tools(ctx context.Context) ([]*pawl.Tool, error) {
	by, ok := caller.From(ctx)
	switch {
	case caller.IsOutsideRuns(ctx):
		return nil, nil
	case !ok || by.Token == "":
		return nil, fmt.Errorf("there is %w with a token", caller.ErrNone)
	}
	return []*pawl.Tool{{Name: "mail_of_" + by.User, Effect: pawl.EffectWrite, Input: []byte(`{"type":"object"}`),
		Run: func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
			by, _ := caller.From(ctx)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.calls = append(p.calls, by.Tenant+"/"+by.User+" with "+by.Token.Reveal())
			return llm.TextResult("sent"), nil
		}}}, nil
}

// started returns the environment of a run that c started, in workers with the Credential.
func started(t *testing.T, a *pawl.Agent, c *caller.Caller, credential Credential) (*env, header) {
	t.Helper()
	e := start(t, a)
	at := header{}
	ctx := t.Context()
	if c != nil {
		ctx = caller.With(ctx, *c)
	}
	if err := Callers(nil).Inject(ctx, at); err != nil { // a client needs no Credential
		t.Fatal(err)
	}
	e.SetContextPropagators([]workflow.ContextPropagator{Callers(credential)})
	e.SetHeader(&commonpb.Header{Fields: at})
	return e, at
}

// keyring has the credentials of two users.
func keyring(_ context.Context, c caller.Caller) (caller.Token, error) {
	if c.User != "ann" && c.User != "bob" {
		return "", fmt.Errorf("%s is unknown", c.User)
	}
	return caller.Token("key-of-" + c.Tenant + "-" + c.User), nil
}

// The caller of a run has his tools and his credential in the workers, also in an agent that the
// run calls and after another person has approved a call. The history has no credential.
func TestCallers(t *testing.T) {
	for _, user := range []string{"ann", "bob"} {
		mine := new(personal)
		inner := &pawl.Agent{Name: "inner", Tools: []pawl.Toolset{mine},
			Model:      script.New(script.Call("mail_of_"+user, map[string]any{}), script.Say("inner is done")),
			Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)}}
		outer := &pawl.Agent{Name: "outer", Tools: []pawl.Toolset{inner.Tool("mails")},
			Model: script.New(script.Call("inner", map[string]any{"task": "go"}), script.Say("done"))}
		by := caller.Caller{Name: "web", Tenant: "acme", User: user, Token: "of-the-client"}
		e, at := started(t, outer, &by, keyring)
		asked := 0
		e.tick = func() error {
			s, err := e.state()
			if err != nil || !s.Waits {
				return err
			}
			asked++
			return e.update(updateDecide, string(s.Pending[0].Key), []llm.Decision{s.Pending[0].Approve("eve")})
		}
		out, err := e.run(input{Messages: ask})
		if err != nil {
			t.Fatal(err)
		}
		want := "acme/" + user + " with key-of-acme-" + user
		if out.Result.Text() != "done" || asked != 1 || len(mine.calls) != 1 || mine.calls[0] != want {
			t.Errorf("%s: %q, asked %d times, calls %q, want %q", user, out.Result.Text(), asked, mine.calls, want)
		}
		for key, value := range at {
			if strings.Contains(string(value.Data), "of-the-client") {
				t.Errorf("the header %s has the credential of the client: %s", key, value.Data)
			}
		}
	}
}

// Without a caller, without a Credential and for a caller whom it does not know, a tool has no
// credential. The token of the client that started the run never comes with it.
func TestNoCaller(t *testing.T) {
	ann := &caller.Caller{Name: "web", Tenant: "acme", User: "ann", Token: "of-the-client"}
	eve := &caller.Caller{Name: "web", Tenant: "acme", User: "eve", Token: "of-the-client"}
	for name, c := range map[string]struct {
		by         *caller.Caller
		credential Credential
		want       string
	}{
		"no caller":      {nil, keyring, ""},
		"no credential":  {ann, nil, ""},
		"unknown caller": {eve, keyring, ""},
		"the control":    {ann, keyring, "key-of-acme-ann"},
	} {
		calls := 0
		got := ""
		tool := &pawl.Tool{Name: "mail", Effect: pawl.EffectWrite, Input: []byte(`{"type":"object"}`),
			Run: func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
				calls++
				by, _ := caller.From(ctx)
				got = by.Token.Reveal()
				return llm.TextResult("sent"), nil
			}}
		a := &pawl.Agent{Name: "agent", Tools: []pawl.Toolset{tool},
			Model: script.New(script.Call("mail", map[string]any{}), script.Say("done"))}
		e, _ := started(t, a, c.by, c.credential)
		if _, err := e.run(input{Messages: ask}); err != nil || calls != 1 || got != c.want {
			t.Errorf("%s: %v, %d calls, credential %q, want %q", name, err, calls, got, c.want)
		}
	}
}

// A run without a caller, of an agent that has no tools without one, fails once and says why. It
// does not wait for a worker that knows better.
func TestRunNeedsCaller(t *testing.T) {
	a := &pawl.Agent{Name: "agent", Tools: []pawl.Toolset{new(personal)}, Model: script.New(script.Say("done"))}
	e, _ := started(t, a, nil, keyring)
	_, err := e.run(input{Messages: ask})
	if err == nil || !strings.Contains(err.Error(), "there is no caller with a token") {
		t.Errorf("got %v", err)
	}
}
