package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/pawl-go/pawl/internal/test/pgtest"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/postgres"
	"github.com/pawl-go/pawl/store/storetest"
)

var (
	server = pgtest.Postgres()
	lite   = pgtest.PGlite("testdata/pglite")
)

// TestMain is also the worker process that is killed: with PAWL_WORKER it resumes the runs of that
// database and does nothing else.
func TestMain(m *testing.M) {
	if at := os.Getenv("PAWL_WORKER"); at != "" {
		if err := works(at, os.Getenv("PAWL_WORLD")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(withServers{m})
}

// withServers stops the servers at the end.
type withServers struct{ *testing.M }

func (w withServers) Run() int {
	defer server.Stop()
	defer lite.Stop()
	if _, err := server.Start(); errors.Is(err, pgtest.ErrAbsent) {
		fmt.Fprintln(os.Stderr, "the example is skipped, too:", err)
		flag.Set("test.skip", "^ExampleOpen$")
	}
	return w.M.Run()
}

// fresh returns the address of a new schema on a server. The schema is dropped with the test.
func fresh(t *testing.T, at string) string {
	t.Helper()
	schema := "t" + strings.ToLower(rand.Text()[:12])
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", schema+",public")
	u.RawQuery = q.Encode()
	t.Cleanup(func() { exec(t, at, "drop schema if exists "+schema+" cascade") })
	return u.String()
}

func version(t *testing.T, at string) (v string) {
	t.Helper()
	direct(t, at, func(ctx context.Context, c *pgx.Conn) error { return c.QueryRow(ctx, "show server_version").Scan(&v) })
	return v
}

func exec(t *testing.T, at, statement string) {
	t.Helper()
	direct(t, at, func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, statement)
		return err
	})
}

// direct connects to the database without the store.
func direct(t *testing.T, at string, fn func(ctx context.Context, c *pgx.Conn) error) {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Del("pool_max_conns")
	u.RawQuery = q.Encode()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	if err := fn(ctx, c); err != nil {
		t.Fatal(err)
	}
}

// open opens a store whose leases hold by the clocks of its callers, because tests have clocks of
// their own.
func open(t *testing.T, at string) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), at, &postgres.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// backends are the servers on which the suite runs. A subtest whose server is absent is skipped.
var backends = map[string]*pgtest.Server{"PostgreSQL": server, "PGlite with pgvector": lite}

func TestStore(t *testing.T) { runSuite(t, server) }

// PGlite differs from PostgreSQL by its vectors, which knowledge and memories use.
func TestStoreOnPGlite(t *testing.T) {
	if soak.On() {
		runSuite(t, lite)
		return
	}

	at := lite.URL(t)
	opened := func(t *testing.T) *postgres.DB {
		db := open(t, fresh(t, at))
		t.Cleanup(func() { db.Close() })
		return db
	}
	t.Run("knowledge", func(t *testing.T) {
		storetest.TestKnowledge(t, func(t *testing.T) store.Knowledge { return opened(t) })
	})
	t.Run("memories", func(t *testing.T) {
		storetest.TestMemories(t, func(t *testing.T) store.Memories { return opened(t) })
	})
}

// runSuite runs the suite of all stores on a server.
func runSuite(t *testing.T, s *pgtest.Server) {
	at := s.URL(t)
	db := open(t, fresh(t, at))
	t.Logf("full suite on %s (%s)", db, version(t, at))
	db.Close()
	storetest.TestStore(t, func(t *testing.T) store.Store { return open(t, fresh(t, at)) })
}

// PAWL_SCALE=100000 go test -v -run Scale ./store/postgres prints the cost of searches among that
// many chunks.
func TestScale(t *testing.T) {
	for name, s := range backends {
		if os.Getenv("PAWL_SCALE") != "" && name != "PostgreSQL" {
			t.Logf("%s at that scale is no measure of anything", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			at := s.URL(t)
			db := open(t, fresh(t, at))
			defer db.Close()
			storetest.Scale(t, db)
		})
	}
}

func ExampleOpen() {
	address, err := server.Start() // "postgres://pawl@db.example.com/app"
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, alice := context.Background(), store.Scope{Tenant: "acme", User: "alice"}
	db, err := postgres.Open(ctx, address, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	_, err = db.PutDocument(ctx, alice, store.Document{ID: "handbook", Title: "Handbook"}, []store.Chunk{{Text: "Everybody has twelve days of leave."}})
	if err != nil {
		fmt.Println(err)
		return
	}
	hits, err := db.SearchChunks(ctx, alice, store.Query{Text: "How many days of leave?"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(hits[0].Title+":", hits[0].Text)
	hits, err = db.SearchChunks(ctx, store.Scope{Tenant: "acme", User: "bob"}, store.Query{Text: "leave"})
	fmt.Println(len(hits), err)
	// Output:
	// Handbook: Everybody has twelve days of leave.
	// 0 <nil>
}
