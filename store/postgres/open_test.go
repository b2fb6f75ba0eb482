package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/postgres"
)

// Many processes open a new database concurrently: its tables are created once, and all processes
// can use it.
func TestOpenAtOnce(t *testing.T) {
	at := server.URL(t)
	at = fresh(t, at)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			db, err := postgres.Open(t.Context(), at, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer db.Close()
			if _, err := db.PutDocument(t.Context(), store.Scope{}, store.Document{ID: fmt.Sprint(i)},
				[]store.Chunk{{Text: "kept"}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	db := open(t, at)
	defer db.Close()
	hits, err := db.SearchChunks(t.Context(), store.Scope{}, store.Query{Text: "kept"})
	if err != nil || len(hits) != 8 {
		t.Errorf("%d of 8 documents are found, %v", len(hits), err)
	}
}

// A database of a newer version is not changed, and NoCreate creates nothing.
func TestVersions(t *testing.T) {
	server := server.URL(t)
	at := fresh(t, server)
	if _, err := postgres.Open(t.Context(), at, &postgres.Options{NoCreate: true}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("where nothing was made: %v", err)
	}
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	schema, _, _ := strings.Cut(u.Query().Get("search_path"), ",")
	var schemas int
	direct(t, server, func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, "select count(*) from pg_namespace where nspname = $1", schema).Scan(&schemas)
	})
	if schemas != 0 {
		t.Error("NoCreate made a schema")
	}
	open(t, at).Close()
	db, err := postgres.Open(t.Context(), at, &postgres.Options{NoCreate: true})
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	exec(t, server, "update "+schema+".version set version = 99")
	if _, err := postgres.Open(t.Context(), at, nil); err == nil || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("a newer database: %v", err)
	}
}

// A server that cannot be reached is unavailable.
func TestUnavailable(t *testing.T) {
	_, err := postgres.Open(t.Context(), "postgres://pawl@127.0.0.1:1/db?sslmode=disable", nil)
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("%v", err)
	}
}

// No error shows a password, for any form of the address and any failure.
func TestSecrets(t *testing.T) {
	const secret = "s3cr3t!pass"
	quoted := url.QueryEscape(secret)
	for _, address := range []string{
		"postgres://pawl:" + quoted + "@127.0.0.1:1/db",
		"postgres://pawl:" + secret + "@127.0.0.1:1/db?sslmode=disable",
		"postgresql://pawl:" + secret + "@127.0.0.1:1/db?password=" + quoted,
		"postgres://pawl:" + secret + "@127.0.0.1:port/db",
		"postgres://pawl:" + secret + "@[::1/db",
		"postgres://pawl:" + secret + "%zz@127.0.0.1/db",
		"postgres://pawl:" + secret + "@127.0.0.1/db?sslmode=whatever",
		"postgres://pawl:" + secret + "@127.0.0.1/db?pool_max_conns=many",
		"host=127.0.0.1 port=1 user=pawl password=" + secret,
		"host=127.0.0.1 port=1 user=pawl password='" + secret + "'",
		"host=127.0.0.1 port=none user=pawl password='" + secret + "'",
		"password=" + secret + " host='",
	} {
		_, err := postgres.Open(t.Context(), address, nil)
		if err == nil {
			t.Errorf("%s was opened", address)
			continue
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if text := fmt.Sprintf("%v %+v", e, e); strings.Contains(text, secret) || strings.Contains(text, quoted) {
				t.Errorf("%s: %s", address, text)
			}
		}
	}
	at := server.URL(t)
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("nobody", secret)
	_, err = postgres.Open(t.Context(), u.String(), nil)
	if err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "nobody") ||
		errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a role that is not there: %v", err)
	}
	db := open(t, fresh(t, at))
	defer db.Close()
	if text := db.String(); !strings.Contains(text, "127.0.0.1") || strings.Contains(text, "test@") {
		t.Errorf("it is %s", text)
	}
}

// Text that PostgreSQL cannot store is replaced and found. A text longer than an index entry is
// found by its beginning.
func TestOddTexts(t *testing.T) {
	at := server.URL(t)
	db := open(t, fresh(t, at))
	defer db.Close()
	s := store.Scope{User: "a"}
	var long strings.Builder
	long.WriteString("beginning ")
	for i := range 200_000 {
		fmt.Fprintf(&long, "%c%c%d ", rune(0x4e00+i%20000), rune(0x4e00+i%19001), i)
	}
	long.WriteString(" ending")
	for id, text := range map[string]string{"nul": "before\x00after", "bytes": "left\xffright", "long": long.String(), "one": strings.Repeat("x", 1<<20), "none": ""} {
		if _, err := db.PutDocument(t.Context(), s, store.Document{ID: id}, []store.Chunk{{Text: text}}); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	for word, want := range map[string]string{"after": "nul", "left": "bytes", "beginning": "long"} {
		hits, err := db.SearchChunks(t.Context(), s, store.Query{Text: word})
		if err != nil || len(hits) != 1 || hits[0].Document != want {
			t.Errorf("%s finds %d, %v", word, len(hits), err)
		}
	}
	if got, err := db.Chunks(t.Context(), s, "nul", 0, 0); err != nil || got[0].Text != "before\uFFFDafter" {
		t.Errorf("kept as %+v, %v", got, err)
	}
}
