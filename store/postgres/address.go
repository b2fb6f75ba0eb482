package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// defaultSchema is the schema of the tables if the address names none.
const defaultSchema = "pawl"

// parse parses an address. Its errors contain no secrets.
func parse(address string) (*pgxpool.Config, error) {
	if strings.TrimSpace(address) == "" {
		return nil, errors.New("the address of the database is empty")
	}
	cfg, err := pgxpool.ParseConfig(address)
	if err != nil {
		var bad *pgconn.ParseConfigError
		inner := err
		if errors.As(err, &bad) { // its text begins with the address
			inner = errors.Unwrap(bad)
			if inner == nil {
				inner = errors.New("it has no form of libpq")
			}
			err = inner
		}
		return nil, fmt.Errorf("the address of the database is not understood: %w", clean(err, address, ""))
	}
	c := cfg.ConnConfig
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, 10*time.Second)
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "pawl"
	}
	return cfg, nil
}

// searchIn makes every connection use the search_path of the address, or the default, and returns
// its first schema, which contains the tables. It is set after connecting, because poolers and
// PGlite ignore startup parameters.
func searchIn(cfg *pgxpool.Config) (schema string) {
	path := cmp.Or(cfg.ConnConfig.RuntimeParams["search_path"], defaultSchema+",public")
	delete(cfg.ConnConfig.RuntimeParams, "search_path")
	cfg.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "select set_config('search_path', $1, false)", path)
		return err
	}
	first, _, _ := strings.Cut(path, ",")
	first = strings.TrimSpace(first)
	if strings.HasPrefix(first, `"`) {
		return strings.Trim(first, `"`)
	}
	return strings.ToLower(first)
}

// place describes the database without secrets.
func place(cfg *pgxpool.Config, schema string) string {
	c := cfg.ConnConfig
	return fmt.Sprintf("%s/%s, schema %s", net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))), c.Database, schema)
}

// passwordIn finds passwords in an address of either form, also in a malformed one.
var passwordIn = regexp.MustCompile(`//[^/@:]*:(.*)@|(?i:password)\s*=\s*('[^']*'|[^\s&]+)`)

// cleaned is an error whose text hides secrets.
type cleaned struct {
	text string
	err  error
}

func (e *cleaned) Error() string { return e.text }

// Is compares causes. There is no Unwrap, because the text of a cause could show the hidden
// secrets.
func (e *cleaned) Is(target error) bool { return errors.Is(e.err, target) }

// clean hides the address and its passwords in the text of err.
func clean(err error, address, password string) error {
	secrets := []string{address, password}
	for _, m := range passwordIn.FindAllStringSubmatch(address, -1) {
		for _, p := range m[1:] {
			p = strings.Trim(p, "'")
			secrets = append(secrets, p)
			if plain, err := url.PathUnescape(p); err == nil {
				secrets = append(secrets, plain)
			}
		}
	}
	text := err.Error()
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		text = pg.Message
		if pg.Hint != "" {
			text += " (" + pg.Hint + ")"
		}
	}
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "…")
		}
	}
	return &cleaned{text, err}
}
