package sqlite_test

import (
	"database/sql"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata/columns.txt again")

// columns returns the tables of a file with their columns, its indexes and its triggers.
func columns(t *testing.T, path string) string {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var b strings.Builder
	rows, err := db.Query(`select t.name, t.type, c.name, c.type, c."notnull", coalesce(c.dflt_value, ''), c.pk from pragma_table_list t, pragma_table_info(t.name) c
		where t.schema = 'main' and t.name not like 'sqlite_%' and t.type <> 'shadow' order by t.name, c.cid`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var table, kind, name, typ, def string
		var notNull, key int
		if err := rows.Scan(&table, &kind, &name, &typ, &notNull, &def, &key); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s.%s %s notnull=%d default=%q key=%d\n", kind, table, name, typ, notNull, def, key)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	more, err := db.Query(`select m.type, m.tbl_name, m.name, coalesce((select group_concat(coalesce(i.name, '-'), ',') from pragma_index_info(m.name) i), '') from sqlite_schema m
		where m.type in ('index', 'trigger') order by 1, 2, 3`)
	if err != nil {
		t.Fatal(err)
	}
	defer more.Close()
	for more.Next() {
		var kind, table, name, of string
		if err := more.Scan(&kind, &table, &name, &of); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s.%s %s\n", kind, table, name, of)
	}
	if err := more.Err(); err != nil {
		t.Fatal(err)
	}
	var id, version int
	if err := db.QueryRow("select (select application_id from pragma_application_id), (select user_version from pragma_user_version)").Scan(&id, &version); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&b, "application %#x, version %d\n", id, version)
	return b.String()
}

// Tables, columns, indexes and triggers keep their names, because existing files have them.
func TestColumnsStay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	db := open(t, path)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	got, name := columns(t, path), filepath.Join("testdata", "columns.txt")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-golden +now):\n%s", name, diff)
	}
	exec(t, path, "alter table threads rename column title to heading")
	if columns(t, path) == got {
		t.Error("a column was renamed, and the list is the same")
	}
}
