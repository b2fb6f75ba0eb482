package remember_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/tooltest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
	"github.com/pawl-go/pawl/tools/remember"
)

func call(ctx context.Context, set pawl.Toolset, name, args string) pawl.Execution {
	return pawl.Toolsets{set}.Execute(ctx, llm.ToolCall{ID: "c", Name: name, Args: json.RawMessage(args)})
}

func TestRemember(t *testing.T) {
	set := remember.New(tooltest.DB(t, nil), nil)
	alice := store.WithScope(t.Context(), store.Scope{User: "alice"})
	bob := store.WithScope(t.Context(), store.Scope{User: "bob"})
	for _, step := range []struct {
		ctx        context.Context
		name, args string
		outcome    pawl.Outcome
		text       string
	}{
		{alice, "memory_list", `{}`, pawl.OutcomeOK, "Nothing is remembered."},
		{alice, "remember", `{"content":"Alice likes tea."}`, pawl.OutcomeOK, "Remembered as m0000000001."},
		{alice, "remember", `{"content":" alice LIKES tea. "}`, pawl.OutcomeOK, "That is known already, as m0000000001."},
		{alice, "remember", `{"content":"Alice\nhas a dog."}`, pawl.OutcomeOK, "Remembered as m0000000002."},
		{bob, "remember", `{"content":"Bob likes tea."}`, pawl.OutcomeOK, "Remembered as m0000000003."},
		{alice, "memory_list", `{}`, pawl.OutcomeOK, "Alice has a dog."},
		{alice, "memory_list", `{"limit":1}`, pawl.OutcomeOK, `[there is more; continue with after "m0000000001"]`},
		{alice, "memory_list", `{"after":"m0000000001"}`, pawl.OutcomeOK, "m0000000002"},
		{alice, "memory_list", `{"query":"dogs"}`, pawl.OutcomeOK, "Alice has a dog."},
		{alice, "memory_list", `{"query":"cats"}`, pawl.OutcomeOK, `Nothing is remembered that has words of "cats".`},
		{bob, "memory_forget", `{"id":"m0000000001"}`, pawl.OutcomeError, `Nothing is remembered as "m0000000001"`},
		{alice, "memory_forget", `{"id":"m0000000001"}`, pawl.OutcomeOK, "Forgotten: Alice likes tea."},
		{alice, "memory_forget", `{"id":"m0000000001"}`, pawl.OutcomeError, "memory_list shows the ids"},
		{alice, "remember", `{"content":"  "}`, pawl.OutcomeInvalid, "content"},
		{alice, "remember", `{"content":"` + strings.Repeat("x", 2001) + `"}`, pawl.OutcomeInvalid, "content"},
		{alice, "remember", `{"text":"x"}`, pawl.OutcomeInvalid, "content"},
		{t.Context(), "remember", `{"content":"x"}`, pawl.OutcomeError, "did not say whose memory this is"},
		{t.Context(), "memory_list", `{}`, pawl.OutcomeError, "did not say whose memory this is"},
	} {
		x := call(step.ctx, set, step.name, step.args)
		if text := x.Result.Text(); x.Outcome != step.outcome || !strings.Contains(text, step.text) {
			t.Errorf("%s %s: %s, %q; want %s, %q", step.name, step.args, x.Outcome, text, step.outcome, step.text)
		}
		if strings.Contains(x.Result.Text(), "Bob") && step.ctx == alice {
			t.Errorf("Alice sees Bob's memory: %s", x.Result.Text())
		}
	}
}

// A fixed scope takes precedence over the scope of the context.
func TestFixedScope(t *testing.T) {
	db := tooltest.DB(t, nil)
	set := remember.New(db, &remember.Options{Scope: &store.Scope{User: "alice"}})
	if x := call(store.WithScope(t.Context(), store.Scope{User: "bob"}), set, "remember", `{"content":"x"}`); x.Outcome != pawl.OutcomeOK {
		t.Fatal(x.Result.Text())
	}
	if list, err := db.Memories(t.Context(), store.Scope{User: "alice"}, store.Page{}); err != nil || len(list) != 1 {
		t.Errorf("Alice has %v, %v", list, err)
	}
}

func ExampleNew() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	db, err := sqlite.Open(filepath.Join(dir, "pawl.db"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	memory := remember.New(db, nil)
	ctx := store.WithScope(context.Background(), store.Scope{User: "alice"})
	fmt.Println(call(ctx, memory, "remember", `{"content":"Alice likes tea."}`).Result.Text())
	fmt.Println(call(ctx, memory, "memory_forget", `{"id":"m0000000001"}`).Result.Text())
	// Output:
	// Remembered as m0000000001.
	// Forgotten: Alice likes tea.
}
