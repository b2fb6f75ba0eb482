package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

func threadParts() []part[store.Threads] {
	return []part[store.Threads]{
		{"life", threadLife},
		{"messages", threadMessages},
		{"versions", threadVersions},
		{"search", threadSearch},
		{"lists", threadLists},
		{"race", threadRace},
		{"scopes", func(s *suite[store.Threads]) { s.scopes(threadItems(s.db)) }},
		{"property", func(s *suite[store.Threads]) { s.property(threadItems(s.db)) }},
		{"bad input", threadBad},
	}
}

// threadItems are threads with one message. A scope of threads has no Thread.
func threadItems(db store.Threads) items {
	return items{
		kind: "thread",
		flat: true,
		put: func(ctx context.Context, sc store.Scope, name, words string) error {
			if err := db.DeleteThread(ctx, sc, name); err != nil && !isAbsent(err) {
				return err
			}
			if _, err := db.PutThread(ctx, sc, store.Thread{ID: name, Title: words}); err != nil {
				return err
			}
			return db.AppendMessages(ctx, sc, name, 0, llm.User(words))
		},
		remove: db.DeleteThread,
		get: func(ctx context.Context, sc store.Scope, name string) (string, error) {
			v, err := db.Thread(ctx, sc, name)
			if err != nil {
				return "", err
			}
			msgs, err := db.Messages(ctx, sc, name, 0, 0)
			if err != nil || len(msgs) != 1 || msgs[0].Message.Text() != v.Title {
				return "", fmt.Errorf("the messages of %q are %+v, %v", v.Title, msgs, err)
			}
			return v.Title, nil
		},
		list: func(ctx context.Context, sc store.Scope) ([]string, error) {
			return wordsOf(func(v store.Thread) string { return v.Title })(db.Threads(ctx, sc, store.Page{}))
		},
		find: func(ctx context.Context, sc store.Scope, q store.Query) ([]string, error) {
			said := func(h store.MessageHit) string { return h.Message.Message.Text() }
			return wordsOf(said)(db.SearchMessages(ctx, sc, q))
		},
	}
}

// leave is a conversation with a call.
func leave() []llm.Message {
	look := llm.ToolCall{ID: "c1", Name: "leave", Args: json.RawMessage(`{"who":"secretword"}`)}
	found := llm.ToolResult{CallID: "c1", Parts: []llm.Part{llm.Text{Text: "resultword 12"}}}
	return []llm.Message{
		llm.User("How many days of leave do I have?"),
		{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "I will look."}, look}},
		{Role: llm.RoleTool, Parts: []llm.Part{found}},
		{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "You have twelve days of leave."}}},
	}
}

func threadLife(s *suite[store.Threads]) {
	want := store.Thread{ID: "t1", Title: "Leave", Meta: json.RawMessage(`{"a":1}`)}
	made := must(s.db.PutThread(s.ctx, alice, want))
	if made.Created.IsZero() || made.Updated.IsZero() {
		s.Errorf("a new thread is %+v", made)
	}
	want.Created = made.Created
	want.Updated = made.Updated
	s.same(want, made)
	s.same(made, must(s.db.Thread(s.ctx, alice, "t1")))
	s.ok(s.db.AppendMessages(s.ctx, alice, "t1", 0, leave()...))

	again := must(s.db.PutThread(s.ctx, alice, store.Thread{ID: "t1", Title: "Days off"}))
	if again.Messages != 4 || again.Title != "Days off" || !again.Created.Equal(made.Created) {
		s.Errorf("the changed thread is %+v", again)
	}
	s.same(again, must(s.db.Thread(s.ctx, alice, "t1")))

	dated := must(s.db.PutThread(s.ctx, alice, store.Thread{ID: "old", Created: noon}))
	if !dated.Created.Equal(noon) {
		s.Errorf("a thread of %v is created at %v", noon, dated.Created)
	}

	s.ok(s.db.DeleteThread(s.ctx, alice, "t1"))
	_, err := s.db.Thread(s.ctx, alice, "t1")
	s.is(err, store.ErrNotFound, "a deleted thread")
	_, err = s.db.Messages(s.ctx, alice, "t1", 0, 0)
	s.is(err, store.ErrNotFound, "its messages")
	s.is(s.db.DeleteThread(s.ctx, alice, "t1"), store.ErrNotFound, "deleting twice")

	// A new thread with the ID of a deleted one has none of its messages.
	must(s.db.PutThread(s.ctx, alice, store.Thread{ID: "t1"}))
	if left := must(s.db.Messages(s.ctx, alice, "t1", 0, 0)); len(left) > 0 {
		s.Errorf("a new thread has the messages %+v", left)
	}
}

func threadMessages(s *suite[store.Threads]) {
	msgs := leave()
	must(s.db.PutThread(s.ctx, alice, store.Thread{ID: "t1"}))
	s.ok(s.db.AppendMessages(s.ctx, alice, "t1", 0, msgs[:2]...))
	for _, have := range []int{0, 1, 3} {
		err := s.db.AppendMessages(s.ctx, alice, "t1", have, msgs[2:]...)
		s.is(err, store.ErrConflict, fmt.Sprintf("appending behind message %d of 2", have))
	}
	s.ok(s.db.AppendMessages(s.ctx, alice, "t1", 2, msgs[2:]...))
	s.is(s.db.AppendMessages(s.ctx, alice, "no", 0, msgs[0]), store.ErrNotFound, "appending to no thread")

	var got []llm.Message
	for i, m := range must(s.db.Messages(s.ctx, alice, "t1", 0, 0)) {
		got = append(got, m.Message)
		if m.Seq != i || m.Thread != "t1" || m.Time.IsZero() {
			s.Errorf("message %d is %+v", i, m)
		}
	}
	s.same(msgs, got)
	if part := must(s.db.Messages(s.ctx, alice, "t1", 1, 2)); len(part) != 2 || part[0].Seq != 1 || part[1].Seq != 2 {
		s.Errorf("messages 1 and 2 are %+v", part)
	}
	if n := must(s.db.Thread(s.ctx, alice, "t1")).Messages; n != 4 {
		s.Errorf("the thread has %d messages", n)
	}
	if err := s.db.AppendMessages(s.ended(), alice, "t1", 4, msgs[0]); err == nil {
		s.Errorf("a message was appended under a context that has ended")
	}
	if n := len(must(s.db.Messages(s.ctx, alice, "t1", 0, 0))); n != 4 {
		s.Errorf("%d messages are stored, want 4", n)
	}
}

// threadVersions checks that a thread changes only in the version that the change names.
func threadVersions(s *suite[store.Threads]) {
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
}

func threadSearch(s *suite[store.Threads]) {
	must(s.db.PutThread(s.ctx, alice, store.Thread{ID: "t1"}))
	s.ok(s.db.AppendMessages(s.ctx, alice, "t1", 0, leave()...))
	must(s.db.PutThread(s.ctx, alice, store.Thread{ID: "t2"}))
	s.ok(s.db.AppendMessages(s.ctx, alice, "t2", 0, llm.System("Be a doorkeeper."),
		llm.User("Please leave the door open.")))
	found := func(sc store.Scope, q store.Query) string {
		var ids []string
		for _, h := range must(s.db.SearchMessages(s.ctx, sc, q)) {
			ids = append(ids, fmt.Sprintf("%s/%d", h.Thread, h.Seq))
		}
		return strings.Join(ids, " ")
	}

	// The words are in two messages of t1, and one of them in t2.
	got := found(alice, store.Query{Text: "days leave"})
	if got != "t1/0 t1/3 t2/1" && got != "t1/3 t1/0 t2/1" {
		s.Errorf("found %s", got)
	}
	if got := found(alice, store.Query{Text: "days leave", Limit: 1}); len(strings.Fields(got)) != 1 {
		s.Errorf("one hit at most: found %s", got)
	}
	in := alice
	in.Thread = "t2"
	if got := found(in, store.Query{Text: "days leave"}); got != "t2/1" {
		s.Errorf("in t2: found %s", got)
	}
	for _, word := range []string{"secretword", "resultword", "doorkeeper"} {
		if got := found(alice, store.Query{Text: word}); got != "" {
			s.Errorf("arguments, results and system prompts are not searched: %s finds %s", word, got)
		}
	}
	if got := found(bob, store.Query{Text: "leave"}); got != "" {
		s.Errorf("Bob found Alice's messages: %s", got)
	}
	s.ok(s.db.DeleteThread(s.ctx, alice, "t1"))
	if got := found(alice, store.Query{Text: "twelve"}); got != "" {
		s.Errorf("found in a deleted thread: %s", got)
	}
}

func threadLists(s *suite[store.Threads]) {
	for _, id := range []string{"c", "a", "b"} {
		must(s.db.PutThread(s.ctx, alice, store.Thread{ID: id}))
	}
	for _, row := range []struct {
		page store.Page
		want string
	}{
		{store.Page{}, "a b c"},
		{store.Page{Limit: 2}, "a b"},
		{store.Page{After: "a"}, "b c"},
		{store.Page{After: "a", Limit: 1}, "b"},
		{store.Page{After: "c"}, ""},
	} {
		var got []string
		for _, v := range must(s.db.Threads(s.ctx, alice, row.page)) {
			got = append(got, v.ID)
		}
		if is := strings.Join(got, " "); is != row.want {
			s.Errorf("%+v: %q, want %q", row.page, is, row.want)
		}
	}
}

// threadRace tests that one of many concurrent changes of a thread succeeds.
func threadRace(s *suite[store.Threads]) {
	was := must(s.db.PutThread(s.ctx, alice, store.Thread{ID: "t"}))
	var appended, changed atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if s.db.AppendMessages(s.ctx, alice, "t", 0, llm.User(fmt.Sprint("first ", i)),
				llm.User("second")) == nil {
				appended.Add(1)
			}
		})
	}
	wg.Wait()
	msgs := must(s.db.Messages(s.ctx, alice, "t", 0, 0))
	if appended.Load() != 1 || len(msgs) != 2 {
		s.Errorf("%d of 8 appended behind message 0, and %d messages are stored", appended.Load(), len(msgs))
	}

	was = must(s.db.Thread(s.ctx, alice, "t"))
	for i := range 8 {
		wg.Go(func() {
			mine := store.Thread{ID: "t", Title: fmt.Sprint("title ", i), Version: was.Version}
			if _, err := s.db.PutThread(s.ctx, alice, mine); err == nil {
				changed.Add(1)
			}
		})
	}
	wg.Wait()
	if changed.Load() != 1 {
		s.Errorf("%d of 8 changed one version of a thread", changed.Load())
	}
}

func threadBad(s *suite[store.Threads]) {
	put := func(sc store.Scope, t store.Thread) error { return only(s.db.PutThread(s.ctx, sc, t)) }
	s.refused(put(alice, store.Thread{}), "a thread without an ID")
	s.refused(put(alice, store.Thread{ID: "a\x00b"}), "an ID with a NUL")
	s.refused(put(alice, store.Thread{ID: "t", Meta: []byte("{")}), "a meta that is not JSON")
	s.refused(put(store.Scope{Thread: "t"}, store.Thread{ID: "t"}), "a thread in a thread")
	s.refused(put(store.Scope{Tenant: strings.Repeat("t", 257)}, store.Thread{ID: "t"}), "a long tenant")
	s.refused(only(s.db.Threads(s.ctx, store.Scope{User: "\xff"}, store.Page{})), "a user that is no UTF-8")
}
