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
	"errors"
	"flag"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

// Corpora returns the folder of the recordings: $PAWL_CORPORA, or a folder next to the project.
func Corpora() string {
	if root := os.Getenv("PAWL_CORPORA"); root != "" {
		return root
	}
	return filepath.Join(filepath.Dir(module()), "shared", "data")
}

// Lines returns the lines of a file of the recordings, or skips the test if the file does not
// exist.
func Lines(t *testing.T, name ...string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{Corpora()}, name...)...))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("corpora absent: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// cassettes loads the recordings of the wire, or skips the test.
func (w *Wire) cassettes(t *testing.T) []pawltest.Cassette {
	t.Helper()
	all, err := pawltest.LoadCassettes(filepath.Join(Corpora(), "provider-traffic", "dev"), w.API)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("corpora absent: %v", err)
	}
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
	for _, c := range w.cassettes(t) {
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
