package thread_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
	"github.com/pawl-go/pawl/thread"
)

// counts answers with the number of the user's messages that it sees.
func counts() *pawl.Agent {
	turn := script.Func(func(req *llm.Request) script.Turn {
		n := 0
		for _, m := range req.Messages {
			if m.Role == llm.RoleUser {
				n++
			}
		}
		return script.Say(fmt.Sprintf("message %d", n))
	})
	return &pawl.Agent{Model: &script.Model{Turns: []script.Turn{script.Loop(turn)}}}
}

func ExampleRunner() {
	dir, err := os.MkdirTemp("", "chat")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	db, err := sqlite.Open(filepath.Join(dir, "chats.db"), nil)
	if err != nil {
		panic(err)
	}
	defer db.Close()
	chat := &thread.Runner{Agent: counts(), DB: db, Scope: store.Scope{User: "ann"}, ID: "trip"}
	for _, text := range []string{"Plan a trip.", "To Oslo."} {
		res, err := pawl.Collect(chat.Stream(context.Background(), llm.User(text)), nil)
		fmt.Println(res.Text(), err)
	}
	t, _ := db.Thread(context.Background(), chat.Scope, "trip")
	fmt.Println(t.Title, t.Messages)
	// Output:
	// message 1 <nil>
	// message 2 <nil>
	// Plan a trip. 4
}

func opened(t *testing.T) store.Threads {
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "t.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// Of two runs at the same time the second to end gets ErrConflict and changes nothing; another
// user's conversation of the same name is another one.
func TestConflict(t *testing.T) {
	db := opened(t)
	ann := store.Scope{User: "ann"}
	first, from, err := thread.Load(t.Context(), db, ann, "x")
	if err != nil {
		t.Fatal(err)
	}
	chat := &thread.Runner{Agent: counts(), DB: db, Scope: ann, ID: "x"}
	if _, err := pawl.Collect(chat.Stream(t.Context(), llm.User("a")), nil); err != nil {
		t.Fatal(err)
	}
	from.Messages = append(from.Messages, llm.User("b"))
	if err := first.Save(t.Context(), from); !errors.Is(err, store.ErrConflict) {
		t.Errorf("the second run is stored: %v", err)
	}
	_, from, err = thread.Load(t.Context(), db, ann, "x")
	if err != nil || len(from.Messages) != 2 || from.Messages[0].Text() != "a" {
		t.Errorf("the conversation is %v, %v", from.Messages, err)
	}
	if _, from, err = thread.Load(t.Context(), db, store.Scope{User: "bob"}, "x"); err != nil || len(from.Messages) != 0 {
		t.Errorf("bob sees %v, %v", from.Messages, err)
	}
	if _, _, err = thread.Load(t.Context(), db, ann, strings.Repeat("x", 1000)); err == nil {
		t.Error("a name of 1,000 characters is valid")
	}
}

// A pending call is stored with the conversation, and an approval continues it. A reader that
// breaks off loses nothing: the calls so far are stored.
func TestPendingAndBreak(t *testing.T) {
	db := opened(t)
	paid := 0
	pay := pawl.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) { paid++; return "paid", nil })
	agent := &pawl.Agent{Model: script.New(script.Call("pay", nil), script.Say("Done.")), Tools: []pawl.Toolset{pay},
		Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)}}
	chat := &thread.Runner{Agent: agent, DB: db, ID: "x"}
	res, err := pawl.Collect(chat.Stream(t.Context(), llm.User("pay")), nil)
	var stop *pawl.StopError
	if !errors.As(err, &stop) || stop.Reason != pawl.StopPending || paid != 0 {
		t.Fatalf("got %v, %v", res, err)
	}
	res, err = pawl.Collect(chat.Stream(t.Context(), llm.DecisionMessage(stop.Result.Pending[0].Approve("ann"))), nil)
	if err != nil || res.Text() != "Done." || paid != 1 {
		t.Fatalf("got %v, %v, %d payments", res, err, paid)
	}
	chat.Agent, chat.ID = counts(), "y"
	for range chat.Stream(t.Context(), llm.User("hello")) {
		break
	}
	_, from, err := thread.Load(t.Context(), db, store.Scope{}, "y")
	if err != nil || len(from.Messages) == 0 || from.Messages[0].Text() != "hello" {
		t.Errorf("after a break the conversation is %v, %v", from.Messages, err)
	}
}
