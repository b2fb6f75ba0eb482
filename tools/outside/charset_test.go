package outside_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
)

// The model reads what a server or a program writes in another charset, or after a byte order mark.
// JSON is then data, too.
func TestCharsetsOfAnswers(t *testing.T) {
	for _, c := range []struct{ kind, body, want, data string }{
		{"application/json", `{"a":"hällo"}`, `{"a":"hällo"}`, `{"a":"hällo"}`},
		{"application/json; charset=iso-8859-1", "{\"a\":\"h\xe4llo\"}", `{"a":"hällo"}`, `{"a":"hällo"}`},
		{"application/json", "{\"a\":\"h\xe4llo\"}", `{"a":"hällo"}`, `{"a":"hällo"}`},
		{"application/json", "\ufeff{\"a\":1}", `{"a":1}`, `{"a":1}`},
		{"application/json", "\xff\xfe{\x00\"\x00a\x00\"\x00:\x001\x00}\x00", `{"a":1}`, `{"a":1}`},
		{"text/plain; charset=iso-8859-1", "h\xe4llo", "hällo", ""},
		{"text/plain", "\xff\xfeh\x00\xe4\x00", "hä", ""},
	} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.kind)
			_, _ = w.Write([]byte(c.body))
		}))
		x := call(t, set(t, options(), `[{http: {name: a, description: d, url: "`+web.URL+`"}}]`), "a", `{}`)
		web.Close()
		if x.Outcome != pawl.OutcomeOK || x.Result.Text() != c.want || string(x.Result.Data) != c.data {
			t.Errorf("%s: %q: %s, %q, data %q; want %q", c.kind, c.body, x.Outcome, x.Result.Text(), x.Result.Data, c.want)
		}
	}
}

func TestCharsetsOfCommands(t *testing.T) {
	for _, c := range []struct{ body, want, data string }{
		{"\ufeff{\"a\":1}", `{"a":1}`, `{"a":1}`},
		{"\xff\xfe{\x00\"\x00a\x00\"\x00:\x001\x00}\x00", `{"a":1}`, `{"a":1}`},
		{"\xfe\xff\x00h\x00\xe4", "hä", ""},
		{"h\xe4llo", "h\ufffdllo", ""},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "out"), []byte(c.body), 0o600); err != nil {
			t.Fatal(err)
		}
		o := options()
		o.Dir = dir
		x := call(t, set(t, o, fmt.Sprintf("[{command: {name: a, description: d, run: [cat, out], dir: %q}}]", dir)), "a", `{}`)
		text := strings.TrimSpace(x.Result.Text())
		if x.Outcome != pawl.OutcomeOK || text != c.want || string(x.Result.Data) != c.data {
			t.Errorf("%q: %s, %q, data %q; want %q", c.body, x.Outcome, text, x.Result.Data, c.want)
		}
	}
}
