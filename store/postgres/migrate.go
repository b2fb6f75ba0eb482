package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/store"
)

var (
	//go:embed schema.sql
	schema1 string
	//go:embed schema2.sql
	schema2 string
	//go:embed schema3.sql
	schema3 string

	// migrations lists the statements that create each version from the previous one.
	migrations = []string{schema1, schema2, schema3}
)

// migrating is the key of the lock that one process at a time holds to create tables: "pawl".
const migrating = 0x7061776c

// migrate updates the schema to the current version and detects how vectors are stored.
func (b *backend) migrate(ctx context.Context, schema string, noCreate bool) error {
	return pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
		// Processes that start at the same time create the tables one after the other.
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock($1)", migrating); err != nil {
			return err
		}
		have, err := version(ctx, tx, schema)
		switch {
		case err != nil:
			return err
		case have > len(migrations):
			return fmt.Errorf("it was written by a newer version (its version is %d, this program supports %d)", have, len(migrations))
		case have == 0 && noCreate:
			return fmt.Errorf("there is no store: %w", store.ErrNotFound)
		case have == 0:
			if err := begin(ctx, tx, schema); err != nil {
				return err
			}
		}
		kind, err := vectorKindOf(ctx, tx, schema, have == 0)
		if err != nil {
			return err
		}
		b.vectors = kind
		for ; have < len(migrations); have++ {
			if _, err := tx.Exec(ctx, strings.ReplaceAll(migrations[have], "VECTOR", kind.column)); err != nil {
				return fmt.Errorf("creating version %d: %w", have+1, err)
			}
			if _, err := tx.Exec(ctx, "update version set version = $1", have+1); err != nil {
				return err
			}
		}
		return nil
	})
}

// version returns the version of the tables in schema. 0 means that there are none.
func version(ctx context.Context, tx pgx.Tx, schema string) (have int, err error) {
	table := pgx.Identifier{schema, "version"}.Sanitize()
	var there bool
	if err = tx.QueryRow(ctx, "select to_regclass($1) is not null", table).Scan(&there); err != nil || !there {
		return 0, err
	}
	err = tx.QueryRow(ctx, "select version from "+table).Scan(&have)
	return have, err
}

// begin creates the schema if it does not exist, and the table of the version.
func begin(ctx context.Context, tx pgx.Tx, schema string) error {
	var there bool
	if err := tx.QueryRow(ctx, "select exists (select from pg_namespace where nspname = $1)", schema).Scan(&there); err != nil {
		return err
	}
	// CREATE SCHEMA IF NOT EXISTS needs the right to create a schema even if the schema exists
	if !there {
		if _, err := tx.Exec(ctx, "create schema "+pgx.Identifier{schema}.Sanitize()); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, "create table version (version integer not null); insert into version values (0)")
	return err
}
