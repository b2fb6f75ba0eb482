package thread_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/answertest"
	"github.com/pawl-go/pawl/internal/test/runtest"
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
	chat := &thread.Runner{Runner: counts(), DB: db, Scope: store.Scope{User: "ann"}, ID: "trip"}
	for _, text := range []string{"Plan a trip.", "To Oslo."} {
		res, err := pawl.Run(context.Background(), chat, llm.User(text))
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
	chat := &thread.Runner{Runner: counts(), DB: db, Scope: ann, ID: "x"}
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
	chat := &thread.Runner{Runner: agent, DB: db, ID: "x"}
	res, err := pawl.Collect(chat.Stream(t.Context(), llm.User("pay")), nil)
	var stop *pawl.StopError
	if !errors.As(err, &stop) || stop.Reason != pawl.StopPending || paid != 0 {
		t.Fatalf("got %v, %v", res, err)
	}
	res, err = pawl.Collect(chat.Stream(t.Context(), llm.DecisionMessage(stop.Result.Pending[0].Approve("ann"))), nil)
	if err != nil || res.Text() != "Done." || paid != 1 {
		t.Fatalf("got %v, %v, %d payments", res, err, paid)
	}
	chat.Runner, chat.ID = counts(), "y"
	for range chat.Stream(t.Context(), llm.User("hello")) {
		break
	}
	_, from, err := thread.Load(t.Context(), db, store.Scope{}, "y")
	if err != nil || len(from.Messages) == 0 || from.Messages[0].Text() != "hello" {
		t.Errorf("after a break the conversation is %v, %v", from.Messages, err)
	}
}

type chats = store.Threads

// racing is a store whose first readers of a thread wait for each other, so that all of them read
// the same version.
type racing struct {
	chats
	readers *sync.WaitGroup
}

func (r racing) Thread(ctx context.Context, s store.Scope, id string) (store.Thread, error) {
	t, err := r.chats.Thread(ctx, s, id)
	r.readers.Done()
	r.readers.Wait()
	return t, err
}

// paying returns an agent that pays once after an approval, and the number of its payments. The
// payment waits for begun if it is not nil.
func paying(begun chan<- struct{}, end <-chan struct{}) (*pawl.Agent, *atomic.Int32) {
	paid := new(atomic.Int32)
	pay := pawl.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) {
		paid.Add(1)
		if begun != nil {
			begun <- struct{}{}
			<-end
		}
		return "paid", nil
	})
	turn := script.Func(func(req *llm.Request) script.Turn {
		if len(script.Results(req)) > 0 {
			return script.Say("Done.")
		}
		return script.Call("pay", nil)
	})
	return &pawl.Agent{
		Model:      script.New(script.Loop(turn)),
		Tools:      []pawl.Toolset{pay},
		Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)},
	}, paid
}

// asked starts a conversation that asks whether it may pay, and returns the question.
func asked(t *testing.T, chat *thread.Runner) pawl.PendingCall {
	t.Helper()
	_, err := pawl.Collect(chat.Stream(t.Context(), llm.User("pay")), nil)
	stop, ok := errors.AsType[*pawl.StopError](err)
	if !ok || stop.Reason != pawl.StopPending {
		t.Fatal(err)
	}
	return stop.Result.Pending[0]
}

// A double click pays once: of ten requests with the same decision that have read the same
// question, one executes the call, and the others get store.ErrConflict.
func TestDecisionCountsOnce(t *testing.T) {
	const clicks = 10
	db := opened(t)
	agent, paid := paying(nil, nil)
	question := asked(t, &thread.Runner{Runner: agent, DB: db, ID: "x"})

	readers := new(sync.WaitGroup)
	readers.Add(clicks)
	var done sync.WaitGroup
	var answered, refused atomic.Int32
	for range clicks {
		done.Go(func() {
			chat := &thread.Runner{Runner: agent, DB: racing{db, readers}, ID: "x"}
			res, err := pawl.Collect(chat.Stream(t.Context(), llm.DecisionMessage(question.Approve("ann"))), nil)
			switch {
			case err == nil && res.Text() == "Done.":
				answered.Add(1)
			case errors.Is(err, store.ErrConflict):
				refused.Add(1)
			default:
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
	done.Wait()
	if paid.Load() != 1 || answered.Load() != 1 || refused.Load() != clicks-1 {
		t.Errorf("%d payments, %d answers and %d refusals, want 1, 1 and %d", paid.Load(), answered.Load(), refused.Load(), clicks-1)
	}
}

// A click while the call is executed pays nothing: the call asks whether it took effect, and the
// decision about its first question does not count. The run that executes it stores its answer.
func TestDecisionDuringTheCall(t *testing.T) {
	db := opened(t)
	begun, end := make(chan struct{}), make(chan struct{})
	agent, paid := paying(begun, end)
	chat := &thread.Runner{Runner: agent, DB: db, ID: "x"}
	yes := llm.DecisionMessage(asked(t, chat).Approve("ann"))

	first := make(chan error, 1)
	go func() {
		_, err := pawl.Collect(chat.Stream(context.Background(), yes), nil)
		first <- err
	}()
	<-begun
	_, err := pawl.Collect(chat.Stream(t.Context(), yes), nil)
	stop, ok := errors.AsType[*pawl.StopError](err)
	if !ok || stop.Reason != pawl.StopPending || stop.Result.Pending[0].Outcome != pawl.OutcomeUnknown {
		t.Errorf("the second click ends with %v", err)
	}
	close(end)
	if err := <-first; err != nil || paid.Load() != 1 {
		t.Errorf("%v, %d payments", err, paid.Load())
	}
	_, from, err := thread.Load(t.Context(), db, store.Scope{}, "x")
	if err != nil || from.Text() != "Done." || len(from.Pending) > 0 {
		t.Errorf("the conversation ends with %q, %+v, %v", from.Text(), from.Pending, err)
	}
}

// A process that ends during the call leaves a question, whose answer settles the call. A message
// that answers nothing leaves the question as it was.
func TestClaimWithoutSave(t *testing.T) {
	db := opened(t)
	agent, paid := paying(nil, nil)
	chat := &thread.Runner{Runner: agent, DB: db, ID: "x"}
	question := asked(t, chat)
	if _, err := pawl.Collect(chat.Stream(t.Context(), llm.User("hurry")), nil); err == nil {
		t.Error("a message is no answer to the question")
	}
	x, from, err := thread.Load(t.Context(), db, store.Scope{}, "x")
	if err != nil || len(from.Pending) != 1 || from.Pending[0].Digest != question.Digest {
		t.Fatalf("after a message: %+v, %v", from.Pending, err)
	}
	if err := x.Claim(t.Context(), from); err != nil {
		t.Fatal(err)
	}

	_, err = pawl.Collect(chat.Stream(t.Context(), llm.DecisionMessage(question.Approve("ann"))), nil)
	stop, ok := errors.AsType[*pawl.StopError](err)
	if !ok || len(stop.Result.Pending) != 1 || paid.Load() != 0 {
		t.Fatalf("%v, %d payments", err, paid.Load())
	}
	happened := stop.Result.Pending[0].Answer("ann", llm.TextResult("It is on the statement."))
	res, err := pawl.Collect(chat.Stream(t.Context(), llm.DecisionMessage(happened)), nil)
	if err != nil || res.Text() != "Done." || paid.Load() != 0 {
		t.Errorf("%+v, %v, %d payments", res, err, paid.Load())
	}
}

// trip has a check of its own.
type trip struct {
	Days int `json:"days"`
}

func (t trip) Validate() error {
	if t.Days < 1 {
		return errors.New("days must be 1 or more")
	}
	return nil
}

// Into holds an answer of a conversation to a type. The conversation has the corrections, and
// continues as text.
func TestIntoOfAConversation(t *testing.T) {
	m := script.New(script.Say("Where to?"), script.Say(`{"days":"x"}`), script.Say(`{"days":0}`),
		script.Say(`{"days":3}`), script.Say("Booked."))
	chat := chatWith(t, &pawl.Agent{Model: m})
	if _, err := pawl.Collect(chat.Stream(t.Context(), llm.User("Plan a trip.")), nil); err != nil {
		t.Fatal(err)
	}
	got, res, err := pawl.Into[trip](t.Context(), chat, llm.User("How long?"))
	if err != nil || got.Days != 3 || res.Spent.Corrections != 2 {
		t.Fatalf("%+v, %+v, %v", got, res, err)
	}
	res, err = pawl.Collect(chat.Stream(t.Context(), llm.User("Book it.")), nil)
	if err != nil || res.Text() != "Booked." || len(res.Messages) != 10 || m.Requests()[4].Output != nil {
		t.Errorf("%d messages, %q, %v", len(res.Messages), res.Text(), err)
	}
}

// A conversation has the answer that a tool gave.
func TestAnswerOfATool(t *testing.T) {
	answertest.PlayReport(t, "thread.Runner", func(t *testing.T, task string) string {
		res, err := pawl.Collect(chatWith(t, answertest.Writer()).Stream(t.Context(), llm.User(task)), nil)
		if err != nil {
			t.Fatal(err)
		}
		return res.Answer.Text
	})
}

// A number of rounds means the same in a conversation.
func TestRounds(t *testing.T) {
	answertest.PlayRounds(t, "thread.Runner", func(t *testing.T, l *answertest.Looker, _ int) string {
		res, err := runtest.Ended(pawl.Collect(chatWith(t, l.Agent).Stream(t.Context(), llm.User("go")), nil))
		if err != nil {
			t.Fatal(err)
		}
		return answertest.ShownBy(res)
	})
}

// chatWith returns a new conversation with an agent.
func chatWith(t *testing.T, a *pawl.Agent) *thread.Runner {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "chats.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return &thread.Runner{Runner: a, DB: db, Scope: store.Scope{User: "ann"}, ID: "chat"}
}
