package misuse_test

// packages_test.go: mistakes with durable runs, conversations, policies, teams, MCP and the server.

import (
	"context"
	"errors"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/server/uistream"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
	"github.com/pawl-go/pawl/team"
	"github.com/pawl-go/pawl/thread"
	"github.com/pawl-go/pawl/tools/file"
	"github.com/pawl-go/pawl/tools/remember"
)

func opened(t *testing.T) *sqlite.DB {
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "x.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// engine returns an Engine with a run "a" of an agent, which has answered.
func engine(t *testing.T) *durable.Engine {
	e := &durable.Engine{Journal: new(store.MemoryJournal)}
	if _, err := e.Runner("a", &pawl.Agent{Model: says("first")}).Run(t.Context(), ask); err != nil {
		t.Fatal(err)
	}
	return e
}

var durables = []row{
	{"closed store", func(t *testing.T) error {
		db := opened(t)
		db.Close()
		return failed((&durable.Engine{Journal: db}).Runner("a", &pawl.Agent{Model: says("x")}).Run(t.Context(), ask))
	}, "database is closed"},
	{"engine without a journal", func(t *testing.T) error {
		return failed(new(durable.Engine).Runner("a", &pawl.Agent{Model: says("x")}).Run(t.Context(), ask))
	}, "durable.Engine has no Journal; set one"},
	{"other question under the ID of a run", func(t *testing.T) error {
		_, err := engine(t).Runner("a", &pawl.Agent{Model: says("x")}).Run(t.Context(), llm.User("Another?"))
		if !errors.Is(err, store.ErrConflict) {
			t.Errorf("got %v", err)
		}
		return err
	}, "run a was started with other messages; resume it without messages"},
	{"other agent under the ID of a run", func(t *testing.T) error {
		_, err := engine(t).Runner("a", &pawl.Agent{Name: "other", Model: says("x")}).Run(t.Context(), ask)
		if !errors.Is(err, durable.ErrChanged) {
			t.Errorf("got %v", err)
		}
		return err
	}, "resume it with that agent, or take another ID"},
	{"run without an ID", func(t *testing.T) error {
		return failed(engine(t).Runner("", &pawl.Agent{Model: says("x")}).Run(t.Context(), ask))
	}, `the run has no ID; name it, such as "invoice-7"`},
	{"ID of another owner's run", func(t *testing.T) error {
		ctx := store.WithScope(t.Context(), store.Scope{User: "anna"})
		res, err := engine(t).Runner("a", &pawl.Agent{Model: says("second")}).Run(ctx, ask)
		if err == nil && res.Text() != "second" {
			err = errors.New("she reads " + res.Text())
		}
		return err
	}, ""}, // an ID is unique for an owner
	{"run that a tool of a durable run starts", func(t *testing.T) error {
		inner := &pawl.Agent{Name: "inner", Model: says("inside")}
		tool := pawl.Func("t", "Asks.", func(ctx context.Context, _ none) (string, error) {
			res, err := inner.Run(ctx, ask)
			if err != nil {
				return "", err
			}
			return res.Text(), nil
		})
		a := &pawl.Agent{Model: calls("t"), Tools: []pawl.Toolset{tool}}
		return answered(engine(t).Runner("b", a).Run(t.Context(), ask))
	}, ""}, // it is part of the effect of the tool
	{"conversation without a store", func(t *testing.T) error {
		chat := &thread.Runner{Runner: &pawl.Agent{Model: says("x")}, ID: "t"}
		return failed(pawl.Collect(chat.Stream(t.Context(), ask), nil))
	}, "a conversation needs a store (DB), such as one of store/sqlite"},
	{"conversation without an ID", func(t *testing.T) error {
		chat := &thread.Runner{Runner: &pawl.Agent{Model: says("x")}, DB: opened(t)}
		return failed(pawl.Collect(chat.Stream(t.Context(), ask), nil))
	}, "the id is empty"},
	{"memory without a scope", func(t *testing.T) error {
		memory := remember.New(opened(t), nil)
		a := &pawl.Agent{
			Model:      says("x"),
			Tools:      []pawl.Toolset{memory},
			Middleware: []pawl.Middleware{memory.Middleware()},
		}
		return failed(a.Run(t.Context(), llm.User("My name is Bo.")))
	}, "set store.WithScope in the context of the run, or Options.Scope"},
}

// with runs an agent with a middleware and the tool a, which its model calls.
func with(w ...pawl.Middleware) func(*testing.T) error {
	return func(t *testing.T) error {
		a := &pawl.Agent{Model: calls("a"), Tools: []pawl.Toolset{does("a")}, Middleware: w}
		return failed(a.Run(t.Context(), ask))
	}
}

func approves(a pawl.Approval) pawl.Middleware {
	return pawl.Approve(func(context.Context, llm.ToolCall, *pawl.Tool) (pawl.Approval, error) { return a, nil })
}

var policies = []row{
	{"panic in an approver", func(t *testing.T) error {
		w := pawl.Approve(func(context.Context, llm.ToolCall, *pawl.Tool) (pawl.Approval, error) { panic("boom") })
		a := &pawl.Agent{Model: calls("a"), Tools: []pawl.Toolset{does("a")}, Middleware: []pawl.Middleware{w}}
		return executed(t, a, pawl.OutcomeDenied)
	}, "approval policy: panic: boom"},
	{"approver without a verdict", func(t *testing.T) error {
		w := approves(pawl.Approval{})
		a := &pawl.Agent{Model: calls("a"), Tools: []pawl.Toolset{does("a")}, Middleware: []pawl.Middleware{w}}
		return executed(t, a, pawl.OutcomeDenied)
	}, "Denied: this call may not run."},
	{"the same approver twice", with(pawl.Approve(policy.AskBeforeWrites), pawl.Approve(policy.AskBeforeWrites)),
		"pending: calls wait for an answer: a;"}, // one question
	{"fallback without models", with(policy.Fallback{}.Middleware()), "there is no model to fall back to; set Models"},
	{"rate without an interval", with(policy.Rate{}.Middleware()), "Every is 0s, and must be longer than nothing"},
	{"rule for a tool that does not exist", with(policy.Rules{Deny: []string{"rm"}}.Middleware()),
		`deny: no tool is named "rm"; there are: a`},
	{"guard without a check", with(policy.Guard{}.Middleware()), "Check is nil; set it"},
}

var packages = []row{
	{"network without workers", func(*testing.T) error {
		_, err := team.Network(&pawl.Agent{Name: "lead", Model: says("x")})
		return err
	}, "team lead: there is no worker"},
	{"agent that hands over to itself", func(*testing.T) error {
		a := &pawl.Agent{Name: "a", Model: says("x")}
		_, err := team.Handoff(a, nil, team.Worker{Agent: a, Description: "Itself."})
		return err
	}, "team a: the lead is among its own workers"},
	{"MCP client after its end", func(t *testing.T) error {
		s := &mcp.Service{Name: "s", Version: "1", Tools: []pawl.Toolset{does("a")}}
		h, err := s.Handler(t.Context(), nil)
		if err != nil {
			return err
		}
		w := httptest.NewServer(h)
		defer w.Close()
		c, err := mcp.New(mcp.Server{Name: "s", URL: w.URL}, nil)
		if err != nil {
			return err
		}
		c.Close()
		return failed((&pawl.Agent{Model: says("x"), Tools: []pawl.Toolset{c}}).Run(t.Context(), ask))
	}, "Tools[0]: mcp server s: it is closed"},
	{"MCP server that does not answer", func(t *testing.T) error {
		c, err := mcp.New(mcp.Server{Name: "s", URL: "http://127.0.0.1:1"}, nil)
		if err != nil {
			return err
		}
		return failed((&pawl.Agent{Model: says("x"), Tools: []pawl.Toolset{c}}).Run(t.Context(), ask))
	}, "Tools[0]: mcp server s: "},
	{"server without agents", func(*testing.T) error {
		_, err := server.New(nil, new(store.MemoryJournal), nil)
		return err
	}, "the server has no agents"},
	{"two agents of one name", func(*testing.T) error {
		agents := []*pawl.Agent{{Name: "a", Model: says("x")}, {Name: "a", Model: says("x")}}
		_, err := server.New(agents, new(store.MemoryJournal), nil)
		return err
	}, `two agents are named "a"`},
	{"stream of a run that cannot start", func(t *testing.T) error {
		return uistream.Write(httptest.NewRecorder(), new(pawl.Agent).Stream(t.Context(), ask), uistream.Options{})
	}, "Model: the agent has no model; set one"},
	{"file tools without a folder", func(*testing.T) error {
		_, err := file.New("", nil)
		return err
	}, "the root is empty; name a folder"},
}
