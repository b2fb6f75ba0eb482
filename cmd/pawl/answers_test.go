package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/answertest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
)

// Answers by pawl inbox have the outcomes of the table.
func TestAnswerTable(t *testing.T) {
	var path string
	answertest.Play(t, "command", answertest.Over(func(t *testing.T) store.Journal {
		path = filepath.Join(t.TempDir(), "runs.db")
		db, err := sqlite.Open(path, &sqlite.Options{NoSync: true})
		ok(t, err)
		t.Cleanup(func() { db.Close() })
		return db
	}, func(_ *durable.Engine, id string, to answertest.To, d llm.Decision) string {
		verb, key := "deny", string(d.Key)
		if d.Approve {
			verb = "approve"
		}
		if d.Args != nil {
			key += fmt.Sprintf("=%s", d.Args)
		}
		user := answertest.Owner.User
		if to.User == answertest.Stranger {
			user = to.User
		}
		var out bytes.Buffer
		sys := &cli.System{In: strings.NewReader(""), Out: &out, Err: &out, Env: func(string) string { return "" }}
		status := execute([]string{"inbox", verb, id, key, "--db", path, "--user", user, "--by", d.By}, sys)
		if status == 0 {
			return answertest.Taken
		}
		return answertest.WordOf(out.String())
	}))
}
