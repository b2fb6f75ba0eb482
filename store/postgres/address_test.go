package postgres

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// The driver hides passwords itself. The second protection is tested with errors that do not.
func TestClean(t *testing.T) {
	const secret = "s3cr3t"
	cause := errors.New("a cause")
	for _, row := range []struct{ address, said string }{
		{"postgres://u:s3cr3t@h/db", "cannot reach postgres://u:s3cr3t@h/db"},
		{"postgres://u:s3cr3t@h/db", "password s3cr3t is wrong"},
		{"postgres://u:s%33cr3t@h/db", "password s3cr3t is wrong"},
		{"postgres://h/db?user=u&password=s3cr3t", "password s3cr3t is wrong"},
		{"host=h password=s3cr3t", "password s3cr3t is wrong"},
		{"host=h password = 's3cr3t'", "password s3cr3t is wrong"},
	} {
		err := clean(errors.Join(errors.New(row.said), cause), row.address, "")
		if text := err.Error(); strings.Contains(text, secret) || !strings.Contains(text, "…") {
			t.Errorf("%s: %s", row.address, text)
		}
		if !errors.Is(err, cause) {
			t.Errorf("%s: the cause is lost", row.address)
		}
	}
	if text := clean(errors.New("from the environment: s3cr3t"), "postgres://h/db", secret).Error(); strings.Contains(text, secret) {
		t.Error(text)
	}
	if text := clean(&pgconn.PgError{Message: "no", Hint: "try"}, "postgres://h/db", "").Error(); text != "no (try)" {
		t.Error(text)
	}
}
