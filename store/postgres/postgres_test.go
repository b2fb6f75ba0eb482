package postgres_test

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/postgres"
	"github.com/pawl-go/pawl/store/storetest"
)

var (
	server = pgtest.Postgres()
	lite   = pgtest.PGlite("testdata/pglite")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(withServers{m}) }

// withServers stops the servers at the end.
type withServers struct{ *testing.M }

func (w withServers) Run() int {
	defer server.Stop()
	defer lite.Stop()
	return w.M.Run()
}

// fresh is the address of a schema of its own on a server, which goes with the test.
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

func exec(t *testing.T, at, statement string) {
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
	if _, err := c.Exec(ctx, statement); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, at string) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), at, nil)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// backends are the servers that the suite runs on.
func backends(t *testing.T) map[string]string {
	all := map[string]string{}
	for name, s := range map[string]*pgtest.Server{"PostgreSQL": server, "PGlite with pgvector": lite} {
		if at := s.URL(t); at != "" {
			all[name] = at
		}
	}
	return all
}

func TestStore(t *testing.T) {
	for name, at := range backends(t) {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) store.Store { return open(t, fresh(t, at)) })
		})
	}
}
