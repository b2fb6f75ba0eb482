package assemble

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
)

// If two chats continue one conversation, the second one cannot store its turn, and the messages of
// the first one stay unchanged.
func TestTwoChatsOfOneThread(t *testing.T) {
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "pawl.db"), &sqlite.Options{NoSync: true})
	must(t, err)
	defer db.Close()
	a, from, err := OpenThread(t.Context(), db, store.Scope{}, "x", time.Now())
	must(t, err)
	from.Messages = append(from.Messages, llm.User("one"), llm.Assistant(llm.Text{Text: "1"}))
	must(t, a.Save(t.Context(), from))
	b, other, err := OpenThread(t.Context(), db, store.Scope{}, "last", time.Now())
	must(t, err)
	from.Messages = append(from.Messages, llm.User("two"), llm.Assistant(llm.Text{Text: "2"}))
	must(t, a.Save(t.Context(), from))
	other.Messages = append(other.Messages, llm.User("three"), llm.Assistant(llm.Text{Text: "3"}))
	err = b.Save(t.Context(), other)
	var f *cli.Failure
	if !errors.As(err, &f) || !strings.Contains(f.Error(), "another program has continued") || f.Hint == "" {
		t.Errorf("the second chat is told %v", err)
	}
	_, kept, err := OpenThread(t.Context(), db, store.Scope{}, "x", time.Now())
	must(t, err)
	if diff := cmp.Diff(from.Messages, kept.Messages); diff != "" {
		t.Errorf("kept is not what the first chat said: %s", diff)
	}
}

// After any end of a turn, a stored conversation resumes exactly as an open one does, and its
// stored messages are complete: each call has its result. If another program has changed Meta, the
// pending calls are lost, and all else stays.
func TestThreadGoesOn(t *testing.T) {
	call := func(id string) llm.ToolCall {
		return llm.ToolCall{ID: id, Name: "t", Args: json.RawMessage(`{"x":1}`)}
	}
	said := []llm.Message{llm.User("go"), llm.Assistant(llm.Text{Text: "a"}), llm.User("on"),
		llm.Assistant(call("1"), call("2"))}
	first := llm.Results(llm.ToolResult{CallID: "1", Parts: []llm.Part{llm.Text{Text: "r"}}})
	for what, res := range map[string]*pawl.Result{
		"an answer": {Messages: said[:2], Stop: pawl.StopAnswer, Values: pawl.Values{"k": json.RawMessage(`1`)}},
		"two calls that wait": {Messages: said, Stop: pawl.StopPending,
			Pending: []pawl.PendingCall{{Key: "run/2/0", Call: call("1")}, {Key: "run/2/1", Call: call("2")}}},
		"one of them has settled": {Messages: append(said[:4:4], first), Stop: pawl.StopPending,
			Pending: []pawl.PendingCall{{Key: "run/2/1", Call: call("2")}}},
		"a first call that waits": {Messages: []llm.Message{llm.Assistant(call("1"))}, Stop: pawl.StopPending,
			Pending: []pawl.PendingCall{{Key: "run/1/0", Call: call("1")}}},
	} {
		db, err := sqlite.Open(filepath.Join(t.TempDir(), "pawl.db"), &sqlite.Options{NoSync: true})
		must(t, err)
		th, _, err := OpenThread(t.Context(), db, store.Scope{}, "x", time.Now())
		must(t, err)
		must(t, th.Save(t.Context(), res))
		_, from, err := OpenThread(t.Context(), db, store.Scope{}, "x", time.Now())
		must(t, err)
		want, err := json.Marshal(res)
		must(t, err)
		got, err := json.Marshal(from)
		must(t, err)
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s: goes on with %s", what, diff)
		}
		_, err = db.PutThread(t.Context(), store.Scope{}, store.Thread{ID: "x", Meta: []byte(`["of another program"]`)})
		must(t, err)
		_, from, err = OpenThread(t.Context(), db, store.Scope{}, "x", time.Now())
		must(t, err)
		if len(from.Calls()) > 0 || len(from.Messages) > len(res.Messages) {
			t.Errorf("%s: the store has half of a turn: %v", what, from.Messages)
		}
		must(t, db.Close())
	}
}
