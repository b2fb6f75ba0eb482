package durable_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
)

var ledgerScope = store.Scope{Tenant: "acme", User: "ann", Thread: "t"}

// ledgerFile is a database with a run that is over and a run that waits, signed and anchored, and a
// copy of it from before the answer.
type ledgerFile struct {
	path, older string
	ids         []string
	key         ed25519.PublicKey
	anchors     []store.Anchor
}

func writeLedger(t *testing.T) *ledgerFile {
	t.Helper()
	dir := t.TempDir()
	f := &ledgerFile{path: filepath.Join(dir, "pawl.db"), older: filepath.Join(dir, "older.db"), ids: []string{"done", "waits"}}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	f.key = public
	ledger := &store.Ledger{Key: private, Anchor: func(_ context.Context, a store.Anchor) error {
		f.anchors = append(f.anchors, a)
		return nil
	}}
	ctx := store.WithScope(t.Context(), ledgerScope)
	agent := func() *pawl.Agent {
		pay := pawl.Func("pay", "pays", func(context.Context, struct {
			Amount int `json:"amount"`
		}) (string, error) {
			return "paid " + strings.Repeat("x", 40<<10), nil
		})
		return &pawl.Agent{Name: "clerk", Model: script.New(script.Call("pay", `{"amount":5}`), script.Say("done")),
			Tools: []pawl.Toolset{pay}, Middleware: []pawl.Middleware{pawl.Approve(
				func(context.Context, llm.ToolCall, *pawl.Tool) (pawl.Approval, error) {
					return pawl.Approval{Verdict: pawl.VerdictAsk, ValidFor: -1}, nil
				})}}
	}
	f.with(t, f.path, ledger, func(eng *durable.Engine) {
		for _, id := range f.ids {
			if _, err := runtest.Ended(eng.Runner(id, agent()).Run(ctx, llm.User("pay"))); err != nil {
				t.Fatal(err)
			}
		}
	})
	copyFile(t, f.path, f.older)
	f.with(t, f.path, ledger, func(eng *durable.Engine) {
		ws, err := eng.Pending(ctx, "done")
		if err != nil || len(ws) != 1 {
			t.Fatal(ws, err)
		}
		if err := eng.Decide(ctx, "done", ws[0].Approve("boss")); err != nil {
			t.Fatal(err)
		}
		if res, err := eng.Runner("done", agent()).Run(ctx); err != nil || res.Stop != pawl.StopAnswer {
			t.Fatal(res, err)
		}
	})
	return f
}

// with opens a file for do, and closes it.
func (f *ledgerFile) with(t *testing.T, path string, l *store.Ledger, do func(*durable.Engine)) {
	t.Helper()
	db, err := sqlite.Open(path, &sqlite.Options{NoSync: true, Ledger: l})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	do(&durable.Engine{Journal: db})
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// verify returns the first error of the runs of a file.
func (f *ledgerFile) verify(t *testing.T, path string, o *durable.VerifyOptions) (err error) {
	t.Helper()
	f.with(t, path, nil, func(eng *durable.Engine) {
		for _, id := range f.ids {
			_, e := eng.Verify(store.WithScope(t.Context(), ledgerScope), id, o)
			err = errors.Join(err, e)
		}
	})
	return err
}

// changed returns a copy of the file after fn has written to it.
func (f *ledgerFile) changed(t *testing.T, fn func(db *sql.DB) error) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "changed.db")
	copyFile(t, f.path, path)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := fn(db); err != nil {
		t.Fatal(err)
	}
	return path
}

// Each column of each table of journals, changed by hand, is found with the key and the anchors.
// The control without them finds all but signatures, which nothing reads then.
func TestTamperedColumns(t *testing.T) {
	f := writeLedger(t)
	all := &durable.VerifyOptions{Keys: []ed25519.PublicKey{f.key}, Anchors: f.anchors}
	for _, o := range []*durable.VerifyOptions{nil, all} {
		if err := f.verify(t, f.path, o); err != nil {
			t.Fatal("unchanged:", err)
		}
	}
	var columns [][2]string
	f.changed(t, func(db *sql.DB) error {
		rows, err := db.Query(`select t.name, c.name from pragma_table_list t, pragma_table_info(t.name) c
			where t.name in ('journals', 'records', 'bodies') order by 1, 2`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var c [2]string
			if err := rows.Scan(&c[0], &c[1]); err != nil {
				return err
			}
			columns = append(columns, c)
		}
		return rows.Err()
	})
	if len(columns) < 30 {
		t.Fatalf("the tables have the columns %v", columns)
	}
	var unseen []string
	for _, c := range columns { // of the seal, the signature is changed
		path := f.changed(t, func(db *sql.DB) error {
			row := fmt.Sprintf("select min(rowid) from %s", c[0])
			if c[0] == "records" {
				row = "select min(journal * 1000 + seq) from records where fence = 0"
			}
			where := "rowid = (" + row + ")"
			if c[0] == "records" {
				where = "journal * 1000 + seq = (" + row + ")"
			}
			res, err := db.Exec(fmt.Sprintf(`update %s set %s = case when typeof(%[2]s) = 'integer' then %[2]s + 1001
				when %[2]s is null then 'x' when json_valid(%[2]s) then '{"stop":"answer"}' else %[2]s || 'x' end where %s`, c[0], c[1], where))
			if err != nil {
				return err
			}
			if n, _ := res.RowsAffected(); n != 1 {
				return fmt.Errorf("%v: %d rows were changed", c, n)
			}
			return nil
		})
		err := f.verify(t, path, all)
		if !errors.Is(err, durable.ErrCorrupt) {
			t.Errorf("%s.%s was changed: %v", c[0], c[1], err)
		}
		if named := c[0] != "journals" || slices.Contains([]string{"n", "tenant", "user", "thread", "id", "records", "head", "seal"}, c[1]) ||
			strings.Contains(err.Error(), c[1]); !named {
			t.Errorf("%s.%s was changed, and the error does not name it: %v", c[0], c[1], err)
		}
		if f.verify(t, path, nil) == nil {
			unseen = append(unseen, c[0]+"."+c[1])
		}
	}
	if diff := cmp.Diff([]string{"journals.seal", "records.signature"}, unseen); diff != "" {
		t.Errorf("without key and anchors (-want +got):\n%s", diff)
	}
	moved := f.changed(t, func(db *sql.DB) error { _, err := db.Exec("update journals set tenant = 'evil'"); return err })
	f.with(t, moved, nil, func(eng *durable.Engine) {
		who := store.Scope{Tenant: "evil", User: "ann", Thread: "t"}
		ctx := store.WithScope(t.Context(), who)
		if _, err := eng.Verify(ctx, "done", nil); err == nil || !strings.Contains(err.Error(), "in its head: tenant") {
			t.Errorf("in its new tenant: %v", err)
		}
		if err := eng.Cancel(ctx, "waits"); !errors.Is(err, durable.ErrCorrupt) {
			t.Errorf("a changed run is cancelled: %v", err)
		}
	})
}

func moment(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}

// written computes the chain, the head and the seal of a run again, as a person who knows the
// program can do, after its bodies were changed and only the first n records are left.
func written(t *testing.T, db *sql.DB, id string, n int, change func(*store.Record)) error {
	t.Helper()
	var j int64
	if err := db.QueryRow("select n from journals where id = ?", id).Scan(&j); err != nil {
		return err
	}
	rows, err := db.Query(`select seq, key, kind, fence, at, elapsed, coalesce(r.body, b.body) from records r
		left join bodies b on b.journal = r.journal and b.digest = r.digest where r.journal = ? and seq <= ? order by seq`, j, n)
	if err != nil {
		return err
	}
	var all []store.Record
	for rows.Next() {
		var r store.Record
		var at int64
		var body string
		if err := rows.Scan(&r.Seq, &r.Key, &r.Kind, &r.Fence, &at, (*int64)(&r.Elapsed), &body); err != nil {
			return err
		}
		r.At, r.Body = moment(at), []byte(body)
		change(&r)
		all = append(all, r)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	if _, err := db.Exec("delete from records where journal = ? and seq > ?", j, n); err != nil {
		return err
	}
	prev := ""
	for _, r := range all {
		prev = r.Chain(id, prev)
		body, digest := any(string(r.Body)), any(nil)
		if len(r.Body) >= 16<<10 {
			sum := sha256.Sum256(r.Body)
			digest = hex.EncodeToString(sum[:])
			if _, err := db.Exec("insert into bodies (journal, digest, body) values (?, ?, ?) on conflict do nothing", j, digest, body); err != nil {
				return err
			}
			body = nil
		}
		if _, err := db.Exec("update records set body = ?, digest = ?, hash = ? where journal = ? and seq = ?", body, digest, prev, j, r.Seq); err != nil {
			return err
		}
	}
	if _, err := db.Exec("update journals set records = ?, head = ? where n = ?", len(all), prev, j); err != nil {
		return err
	}
	return resealed(db, j)
}

// resealed computes the seal of a head again, without the key.
func resealed(db *sql.DB, j int64) error {
	var r store.JournalRun
	var summary sql.NullString
	var until, created, updated int64
	if err := db.QueryRow(`select tenant, user, thread, id, agent, task, state, summary, owner, fence, until, records, head, created, updated
		from journals where n = ?`, j).Scan(&r.Scope.Tenant, &r.Scope.User, &r.Scope.Thread, &r.ID, &r.Agent, &r.Task, &r.State,
		&summary, &r.Owner, &r.Fence, &until, &r.Records, &r.Head, &created, &updated); err != nil {
		return err
	}
	r.Summary, r.Until, r.Created, r.Updated = []byte(summary.String), moment(until), moment(created), moment(updated)
	seal, err := (*store.Ledger)(nil).Seal(r)
	if err != nil {
		return err
	}
	_, err = db.Exec("update journals set seal = ? where n = ?", seal, j)
	return err
}

// A person who computes all hashes again, and one who puts an older copy in place, are found by the
// key, the anchors, or both. The table says by which, and that without them neither is found.
func TestForgedRuns(t *testing.T) {
	f := writeLedger(t)
	count := func(db *sql.DB) (n int) {
		_ = db.QueryRow("select records from journals where id = 'done'").Scan(&n) // 0 fails below
		return n
	}
	same := func(*store.Record) {}
	keys := []ed25519.PublicKey{f.key}
	other, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		what         string
		do           func(db *sql.DB) error
		key, anchors bool // found with the key alone, with the anchors alone
		older        bool
	}{
		{what: "a result was changed, and the chain written anew", key: true, anchors: true, do: func(db *sql.DB) error {
			return written(t, db, "done", count(db), func(r *store.Record) {
				if r.Kind == "outcome" {
					r.Body = []byte(strings.Replace(string(r.Body), "paid", "lost", 1))
				}
			})
		}},
		{what: "another person approved", key: true, anchors: true, do: func(db *sql.DB) error {
			return written(t, db, "done", count(db), func(r *store.Record) {
				r.Body = []byte(strings.ReplaceAll(string(r.Body), `"boss"`, `"thief"`))
			})
		}},
		{what: "the last three records are gone", key: true, anchors: true, do: func(db *sql.DB) error {
			return written(t, db, "done", count(db)-3, same)
		}},
		{what: "the state was changed, and sealed again", key: true, anchors: true, do: func(db *sql.DB) error {
			if _, err := db.Exec("update journals set state = 'open' where id = 'done'"); err != nil {
				return err
			}
			return resealed(db, 1)
		}},
		{what: "an older copy of the file", anchors: true, older: true},
		{what: "a run was deleted", anchors: true, do: func(db *sql.DB) error { _, err := db.Exec("delete from journals where id = 'waits'"); return err }},
		{what: "the chain was computed again, and nothing changed", key: true, do: func(db *sql.DB) error {
			return written(t, db, "done", count(db), same)
		}},
	} {
		t.Run(row.what, func(t *testing.T) {
			path := f.older
			if !row.older {
				path = f.changed(t, row.do)
			}
			for _, c := range []struct {
				what  string
				o     *durable.VerifyOptions
				found bool
			}{
				{"key and anchors", &durable.VerifyOptions{Keys: keys, Anchors: f.anchors}, true},
				{"key", &durable.VerifyOptions{Keys: keys}, row.key},
				{"anchors", &durable.VerifyOptions{Anchors: f.anchors}, row.anchors},
				{"neither", nil, false},
			} {
				err := f.verify(t, path, c.o)
				if got := errors.Is(err, durable.ErrCorrupt); got != c.found {
					t.Errorf("with %s it is found: %v, want %v (%v)", c.what, got, c.found, err)
				}
			}
		})
	}
	wrong := &durable.VerifyOptions{Keys: []ed25519.PublicKey{other}}
	if err := f.verify(t, f.path, wrong); !errors.Is(err, durable.ErrCorrupt) {
		t.Errorf("with another key: %v", err)
	}
	forged := slices.Clone(f.anchors)
	forged[0].Records++
	wrong = &durable.VerifyOptions{Keys: keys, Anchors: forged}
	if err := f.verify(t, f.path, wrong); !errors.Is(err, durable.ErrCorrupt) {
		t.Errorf("with a forged anchor: %v", err)
	}
}

// A run whose head is signed is not changed by a process without the key, and an anchor that cannot
// be stored is an error.
func TestLedgerIsKept(t *testing.T) {
	f := writeLedger(t)
	ctx := store.WithScope(t.Context(), ledgerScope)
	f.with(t, f.path, nil, func(eng *durable.Engine) {
		if err := eng.Cancel(ctx, "waits"); err == nil || !strings.Contains(err.Error(), "no key") {
			t.Errorf("a signed run is cancelled without a key: %v", err)
		}
	})
	full := errors.New("the place is full")
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	l := &store.Ledger{Key: private, Anchor: func(context.Context, store.Anchor) error { return full }}
	for _, j := range []store.Journal{&store.MemoryJournal{Ledger: l}, open(t)} {
		eng := &durable.Engine{Journal: j}
		var paid []string
		_, err := eng.Runner("r", paying(&paid, 0)).Run(ctx, llm.User("pay"))
		if _, memory := j.(*store.MemoryJournal); errors.Is(err, full) != memory {
			t.Errorf("%T: %v", j, err)
		}
	}
}

// A file from before there were seals opens, its runs verify, and they are sealed at their next
// change.
func TestUnsealedRuns(t *testing.T) {
	f := writeLedger(t)
	old := f.changed(t, func(db *sql.DB) error {
		_, err := db.Exec(`drop index journals_due; create index journals_open on journals (updated) where state = 'open';
			alter table journals drop column next; alter table journals drop column lapses;
			alter table journals drop column seal; alter table records drop column signature; pragma user_version = 3`)
		return err
	})
	ctx := store.WithScope(t.Context(), ledgerScope)
	f.with(t, old, nil, func(eng *durable.Engine) {
		if v, err := eng.Verify(ctx, "waits", nil); err != nil || v.Sealed {
			t.Fatalf("%+v, %v", v, err)
		}
		if err := eng.Cancel(ctx, "waits"); err != nil {
			t.Fatal(err)
		}
		if v, err := eng.Verify(ctx, "waits", nil); err != nil || !v.Sealed {
			t.Errorf("after a change: %+v, %v", v, err)
		}
		if v, err := eng.Verify(ctx, "done", nil); err != nil || v.Sealed {
			t.Errorf("the other run: %+v, %v", v, err)
		}
	})
}
