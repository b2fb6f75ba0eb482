// Package wiretest is how the adapters prove their wires: the same proofs for each, so that an
// adapter's tests say only what is particular to its wire.
//
//	                    ┌─ Answers    each recorded answer is what an independent reader finds
//	recorded traffic ───┼─ Requests   each recorded request is encoded again, to the same
//	                    ├─ Streams    each stream, cut anywhere and in any pieces, is the
//	                    │             same reply or an error
//	                    └─ Lost       each stream with an event lost or doubled has the same
//	                                  calls or is an error, and what cannot be known is counted
//	rows of a table ────── Replies, Requested, Failures: docs/…-wire.md, field by field
//
// The recordings are in a folder next to the project. Without them the proofs over recordings are
// skipped, and the proofs over the streams of a test remain. For words that
// all adapters' tests share there are Render, Outcome, Events, Transport and Reply.
package wiretest

import (
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/corpora"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
)

// Wire is an adapter's side of one API.
type Wire struct {
	API      string // as pawltest names it
	Provider string // the adapter's name in Settings.Options and in Opaque tags
	Encode   func(*llm.Request) ([]byte, error)
	Decode   func(status int, sse bool, body []byte) (*llm.Response, error)

	// Open returns a Model over http that requests without retries. Its tags must equal the tags of
	// Decode.
	Open func(http http.RoundTripper) llm.Model

	// Excluded returns the reason why a recorded exchange does not concern the adapter; empty means
	// that it does. nil means that all do.
	Excluded func(*pawltest.Exchange) string
}

var update = flag.Bool("update", false, "write the pages of docs that tests make")

// Cassettes loads the recordings of an API, as pawltest names it.
func Cassettes(t *testing.T, api string) []pawltest.Cassette {
	t.Helper()
	dir := filepath.Dir(corpora.Path(t, "provider-traffic/dev/"+api+".jsonl.gz"))
	all, err := pawltest.LoadCassettes(dir, api)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// exchanges loads the recorded exchanges that concern the adapter, or skips the test. out counts
// the other exchanges by reason.
func (w *Wire) exchanges(t *testing.T) (all []*pawltest.Exchange, out map[string]int) {
	t.Helper()
	out = map[string]int{}
	for _, c := range Cassettes(t, w.API) {
		for i := range c.Exchanges {
			e := &c.Exchanges[i]
			if w.Excluded != nil {
				if why := w.Excluded(e); why != "" {
					out[why]++
					continue
				}
			}
			all = append(all, e)
		}
	}
	return all, out
}

// lossHead begins the section of a page that Lost writes.
const lossHead = "\n## Losses that a stream shows, and losses that it cannot show\n"

// Page compares a page of docs with the expected text, except the section about losses. With
// -update it writes the page.
func Page(t *testing.T, name, want string) {
	t.Helper()
	path := filepath.Join("..", "..", "docs", name)
	got, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatalf("%v; go test -run %s -update writes it", err, t.Name())
	}
	if _, losses, ok := strings.Cut(string(got), lossHead); ok {
		want += lossHead + losses
	}
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(got) != want {
		t.Errorf("docs/%s is not what the tests say; go test -run %s -update writes it", name, t.Name())
	}
}
