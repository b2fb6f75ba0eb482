package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/internal/test/answertest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
)

func inMemory(*testing.T) store.Journal { return new(store.MemoryJournal) }

// Answers of a Go program have the outcomes of the table.
func TestAnswerTable(t *testing.T) {
	t.Run("memory", func(t *testing.T) { answertest.Play(t, "Go", answertest.Over(inMemory, answertest.Decide)) })
	t.Run("SQLite", func(t *testing.T) {
		answertest.Play(t, "Go", answertest.Over(func(t *testing.T) store.Journal {
			db, err := sqlite.Open(filepath.Join(t.TempDir(), "runs.db"), &sqlite.Options{NoSync: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			return db
		}, answertest.Decide))
	})
}

// The table finds a door that stores answers without a check, and an expectation that is wrong.
func TestAnswerTableFindsFaults(t *testing.T) {
	unchecked := func(eng *durable.Engine, id string, to answertest.To, d llm.Decision) string {
		word := answertest.Decide(eng, id, to, d)
		ctx := store.WithScope(context.Background(), answertest.Owner)
		if errors.As(eng.Decide(ctx, id, d), new(*journal.AnswerError)) {
			return answertest.Taken // as a door that does not check says
		}
		return word
	}
	stored := func(eng *durable.Engine, id string, _ answertest.To, d llm.Decision) string {
		ctx := store.WithScope(context.Background(), answertest.Owner)
		open, err := eng.Pending(ctx, id)
		if err != nil || len(open) == 0 {
			return answertest.Decide(eng, id, answertest.To{}, d)
		}
		given := d
		d.Key, d.Digest = open[0].Key, open[0].Digest
		body, err := json.Marshal(d)
		if err == nil {
			err = eng.Journal.AppendOutside(ctx, answertest.Owner, id, store.JournalOpen, store.Record{
				Key: fmt.Sprint(d.Key, "/question/1/decision"), Kind: "decision", Body: body})
		}
		if errors.Is(err, store.ErrConflict) { // another answer was faster
			return answertest.Decide(eng, id, answertest.To{}, given)
		}
		return answertest.Word(err)
	}
	for _, test := range []struct {
		fault string
		door  answertest.Open
		want  []string
	}{
		{"a door that accepts all", answertest.Over(inMemory, unchecked), []string{
			"arguments that do not fit the schema", "another answer after it", "another answer while the call runs",
			"the same answer after the run ended", "another answer after the run ended", "an unknown call",
			"another digest", "the answer to a call of another run", "a yes of a user without the permission",
			"20 answers at once, 10 yes and 10 no"}},
		{"a door that does not check", answertest.Over(inMemory, stored), []string{
			"arguments that do not fit the schema", "a yes that is not used within its time", "an unknown call",
			"another digest", "the answer to a call of another run", "a yes of a user without the permission"}},
	} {
		got := answertest.Found(t, "Go", test.door)
		if diff := cmp.Diff(got, test.want); diff != "" {
			t.Errorf("%s (-found +want): %s", test.fault, diff)
		}
	}
	row := &answertest.Table[0]
	row.Calls++
	defer func() { row.Calls-- }()
	got := answertest.Found(t, "Go", answertest.Over(inMemory, answertest.Decide))
	if len(got) != 1 || got[0] != row.Answer {
		t.Errorf("a wrong expectation of %q: found %q", row.Answer, got)
	}
}
