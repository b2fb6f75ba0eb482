package todo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/tooltest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/file"
	"github.com/pawl-go/pawl/tools/todo"
)

var errKilled = errors.New("the process was killed")

// mortal is the journal of a process that dies at its write number at. Its leases expire before the
// next process begins.
type mortal struct {
	store.Journal
	ahead     time.Duration
	kill      context.CancelCauseFunc
	at, count int
}

func (j *mortal) AppendJournal(ctx context.Context, l store.Lease, c *store.JournalChange,
	rs ...store.Record) (int64, error) {
	if j.count++; j.at > 0 && j.count >= j.at {
		j.kill(errKilled)
		return 0, errKilled
	}
	return j.Journal.AppendJournal(ctx, l, c, rs...)
}

func (j *mortal) ClaimJournal(ctx context.Context, s store.Scope, id, owner string,
	now, until time.Time) (store.Lease, error) {
	return j.Journal.ClaimJournal(ctx, s, id, owner, now.Add(j.ahead), until.Add(j.ahead))
}

// lived is what remains of a run that keeps a list, and notes in a file.
type lived struct {
	requests []string
	list     string
	notes    string
	writes   int // of the journal
	asked    int // questions about a write that was interrupted
}

// live makes the run. The first process dies at its write number at; 0 means that it lives.
func live(t *testing.T, at int) (l lived) {
	t.Helper()
	dir := t.TempDir()
	tooltest.Must(t, os.WriteFile(filepath.Join(dir, "notes.md"), []byte("# Notes\n"), 0o644))
	journal := new(store.MemoryJournal)
	var turns []script.Turn
	for i := range 3 {
		pairs := []string{"done", "a", "done", "b", "done", "c"}
		for k := 2 * i; k < 6; k += 2 {
			pairs[k] = "open"
		}
		note, _ := json.Marshal(map[string]string{"path": "notes.md", "content": fmt.Sprintf("step %d was odd\n", i)})
		turns = append(turns, script.Call("todo", json.RawMessage(items(pairs...))), script.Call("file_write", json.RawMessage(note)),
			script.Call("file_read", `{"path":"notes.md"}`))
	}
	turns = append(turns, script.Call("todo", `{}`), script.Say("Noted."))
	msgs := []llm.Message{llm.User("Work, and keep notes.")}
	for n := range 5 {
		files, err := file.New(dir, nil)
		tooltest.Must(t, err)
		m := script.New(turns...)
		a := agent(m)
		a.Tools = append(a.Tools, files)
		ctx, kill := context.WithCancelCause(t.Context())
		j := &mortal{Journal: journal, kill: kill, ahead: time.Duration(n) * time.Hour}
		if n == 0 {
			j.at = at
		}
		res, err := (&durable.Engine{Journal: j}).Runner("r", a).Run(ctx, msgs...)
		for _, r := range m.Requests() {
			b, _ := json.Marshal(r.Messages)
			l.requests = append(l.requests, string(b))
		}
		kill(nil)
		files.Close()
		l.writes += j.count
		var stop *pawl.StopError
		switch msgs = nil; {
		case err == nil:
			list, err := todo.Of(res.Values)
			tooltest.Must(t, err)
			b, err := os.ReadFile(filepath.Join(dir, "notes.md"))
			tooltest.Must(t, err)
			l.list, l.notes = list.String(), string(b)
			return l
		case errors.As(err, &stop) && stop.Result.Stop == pawl.StopPending:
			l.asked++ // a person looks, and lets it write again
			msgs = []llm.Message{llm.DecisionMessage(stop.Result.Pending[0].Approve("anna"))}
		case n > 0 || !errors.Is(err, errKilled) && !errors.Is(err, context.Canceled):
			t.Fatalf("killed at %d, process %d: %v", at, n, err)
		}
	}
	t.Fatalf("killed at %d: the run does not end", at)
	return l
}

// A run that keeps a list and notes is killed at each of its writes. Afterwards both are as in the
// run without a kill, and so are the requests; a person is asked about notes at most once.
func TestKilledWithNotes(t *testing.T) {
	whole := live(t, 0)
	if whole.list != "[x] a\n[x] b\n[ ] c" || whole.notes != "step 2 was odd\n" || len(whole.requests) != 11 || whole.asked > 0 {
		t.Fatalf("without a kill: %+v", whole)
	}
	asked := 0
	for at := 1; at <= whole.writes; at++ {
		got := live(t, at)
		if distinct := slices.Compact(got.requests); got.list != whole.list || got.notes != whole.notes ||
			!slices.Equal(distinct, whole.requests) || got.asked > 1 {
			t.Errorf("killed at write %d: list %q, notes %q, %d requests, %d questions", at, got.list, got.notes, len(distinct), got.asked)
		}
		asked += got.asked
	}
	if asked == 0 {
		t.Error("no kill interrupts a write of notes: nothing is tested")
	}
}
