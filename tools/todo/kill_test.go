package todo_test

import (
	"bytes"
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

// mortal is the journal of a process that dies at a write. Its leases expire before the next
// process begins.
type mortal struct {
	store.Journal
	ahead time.Duration
	kill  context.CancelCauseFunc
	dies  death
	count int  // of writes
	dead  bool // since the write at which it died
}

// death reports whether the process dies at the write number n, which has the records rs.
type death func(n int, rs []store.Record) bool

// never is the death of a process that lives to the end of its run.
func never(int, []store.Record) bool { return false }

// atWrite is a death at the write number at.
func atWrite(at int) death {
	return func(n int, _ []store.Record) bool { return n == at }
}

// withNotes is a death after a call of file_write was made, and before its outcome is stored.
func withNotes(_ int, rs []store.Record) bool {
	return slices.ContainsFunc(rs, func(r store.Record) bool {
		return r.Kind == "outcome" && bytes.Contains(r.Body, []byte(`"file_write"`))
	})
}

func (j *mortal) AppendJournal(ctx context.Context, l store.Lease, c *store.JournalChange,
	rs ...store.Record) (int64, error) {
	j.count++
	if j.dead || j.dies(j.count, rs) {
		j.dead = true
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

// live makes the run. The first process dies as dies says, and the ones after it live.
func live(t *testing.T, dies death) (l lived) {
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
		j := &mortal{Journal: journal, kill: kill, ahead: time.Duration(n) * time.Hour, dies: never}
		if n == 0 {
			j.dies = dies
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
			t.Fatalf("process %d: %v", n, err)
		}
	}
	t.Fatal("the run does not end")
	return l
}

// A run that keeps a list and notes is killed at each of its writes. Afterwards both are as in the
// run without a kill, and so are the requests. A person is asked about notes at most once, and
// always if the process died after it had written them.
func TestKilledWithNotes(t *testing.T) {
	whole := live(t, never)
	if whole.list != "[x] a\n[x] b\n[ ] c" || whole.notes != "step 2 was odd\n" || len(whole.requests) != 11 || whole.asked > 0 {
		t.Fatalf("without a kill: %+v", whole)
	}
	same := func(t *testing.T, got lived) {
		t.Helper()
		distinct := slices.Compact(got.requests)
		kept := got.list == whole.list && got.notes == whole.notes
		if !kept || !slices.Equal(distinct, whole.requests) || got.asked > 1 {
			t.Errorf("list %q, notes %q, %d requests, %d questions", got.list, got.notes, len(distinct), got.asked)
		}
	}

	for at := 1; at <= whole.writes; at++ {
		t.Run(fmt.Sprintf("at write %d", at), func(t *testing.T) { same(t, live(t, atWrite(at))) })
	}
	t.Run("with notes written", func(t *testing.T) {
		got := live(t, withNotes)
		same(t, got)
		if got.asked != 1 {
			t.Errorf("%d questions about the notes, want 1", got.asked)
		}
	})
}
