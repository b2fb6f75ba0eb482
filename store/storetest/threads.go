package storetest

import (
	"encoding/json"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

func (s *suite) threads() {
	made := must(s.db.PutThread(s.ctx, alice, store.Thread{ID: "t1", Title: "Leave", Meta: json.RawMessage(`{"a":1}`)}))
	if made.Messages != 0 || made.Created.IsZero() || made.Updated.IsZero() {
		s.Errorf("a new thread is %+v", made)
	}
	msgs := []llm.Message{llm.User("How many days of leave do I have?"),
		{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "I will look."},
			llm.ToolCall{ID: "c1", Name: "leave", Args: json.RawMessage(`{"who":"secretword"}`)}}},
		{Role: llm.RoleTool, Parts: []llm.Part{llm.ToolResult{CallID: "c1", Parts: []llm.Part{llm.Text{Text: "resultword 12"}}}}},
		{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "You have twelve days of leave."}}}}
	s.ok(s.db.AppendMessages(s.ctx, alice, "t1", 0, msgs[:2]...))
	s.is(s.db.AppendMessages(s.ctx, alice, "t1", 1, msgs[2:]...), store.ErrConflict, "appending behind the wrong message")
	s.ok(s.db.AppendMessages(s.ctx, alice, "t1", 2, msgs[2:]...))
	s.is(s.db.AppendMessages(s.ctx, alice, "no", 0, msgs[0]), store.ErrNotFound, "appending to no thread")

	var got []llm.Message
	for _, m := range must(s.db.Messages(s.ctx, alice, "t1", 0, 0)) {
		got = append(got, m.Message)
	}
	if a, b := asJSON(s, msgs), asJSON(s, got); a != b {
		s.Errorf("the messages came back changed: %s, want %s", b, a)
	}
	if part := must(s.db.Messages(s.ctx, alice, "t1", 1, 2)); len(part) != 2 || part[0].Seq != 1 || part[1].Seq != 2 {
		s.Errorf("messages 1 and 2 are %+v", part)
	}
	if n := must(s.db.Thread(s.ctx, alice, "t1")).Messages; n != 4 {
		s.Errorf("the thread has %d messages", n)
	}
	again := must(s.db.PutThread(s.ctx, alice, store.Thread{ID: "t1", Title: "Days off"}))
	if again.Messages != 4 || again.Title != "Days off" || !again.Created.Equal(made.Created) {
		s.Errorf("the changed thread is %+v", again)
	}

	s.threadVersions()

	must(s.db.PutThread(s.ctx, alice, store.Thread{ID: "t2"}))
	s.ok(s.db.AppendMessages(s.ctx, alice, "t2", 0, llm.User("Please leave the door open.")))
	found := func(sc store.Scope, text string) (ids []string) {
		for _, h := range must(s.db.SearchMessages(s.ctx, sc, store.Query{Text: text})) {
			ids = append(ids, h.Thread+"/"+string(rune('0'+h.Seq)))
		}
		return ids
	}
	if ids := found(alice, "days leave"); len(ids) != 3 || ids[2] != "t2/0" {
		s.Errorf("the words are in two messages of t1, one of them in t2: found %v", ids)
	}
	in := alice
	in.Thread = "t2"
	if len(found(in, "days leave")) != 1 {
		s.Errorf("in t2: found %v", found(in, "days leave"))
	}
	if ids := append(found(alice, "secretword"), found(alice, "resultword")...); len(ids) > 0 {
		s.Errorf("arguments and results are not searched: found %v", ids)
	}
	if ids := found(bob, "leave"); len(ids) > 0 {
		s.Errorf("Bob found Alice's messages: %v", ids)
	}
	if list := must(s.db.Threads(s.ctx, alice, store.Page{After: "t1"})); len(list) != 1 || list[0].ID != "t2" {
		s.Errorf("after t1 there are %+v", list)
	}
	s.ok(s.db.DeleteThread(s.ctx, alice, "t1"))
	s.is(s.db.DeleteThread(s.ctx, alice, "t1"), store.ErrNotFound, "deleting twice")
	if ids := found(alice, "twelve"); len(ids) > 0 {
		s.Errorf("found in a deleted thread: %v", ids)
	}
}

func asJSON(s *suite, v any) string {
	b, err := json.MarshalIndent(v, "", " ")
	s.ok(err)
	return string(b)
}

// threadVersions checks that a thread changes only in the version that the change names.
func (s *suite) threadVersions() {
	was := must(s.db.PutThread(s.ctx, alice, store.Thread{ID: "t9", Title: "Doors"}))
	if read := must(s.db.Thread(s.ctx, alice, "t9")); was.Version == "" || read.Version != was.Version {
		s.Errorf("the version is %q as put and %q as read", was.Version, read.Version)
	}
	first := store.Thread{ID: "t9", Title: "Doors", Meta: json.RawMessage(`{"a":2}`), Version: was.Version}
	changed := must(s.db.PutThread(s.ctx, alice, first))
	if changed.Version == was.Version || string(changed.Meta) != `{"a":2}` || !changed.Created.Equal(was.Created) {
		s.Errorf("the changed thread is %+v", changed)
	}

	// The same change again, of a program that read the thread before it.
	_, err := s.db.PutThread(s.ctx, alice, first)
	s.is(err, store.ErrConflict, "a change to an old version")
	_, err = s.db.PutThread(s.ctx, alice, store.Thread{ID: "none", Version: was.Version})
	s.is(err, store.ErrConflict, "a change to a version of no thread")

	// A message makes another version, too.
	s.ok(s.db.AppendMessages(s.ctx, alice, "t9", 0, llm.User("Shut.")))
	first.Version = changed.Version
	_, err = s.db.PutThread(s.ctx, alice, first)
	s.is(err, store.ErrConflict, "a change to the version before a message")
	s.ok(s.db.DeleteThread(s.ctx, alice, "t9"))
}
