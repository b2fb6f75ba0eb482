package mcp

import (
	"io"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/mcp/internal/wire"
)

// A change of the tools that is announced again and again is delivered once for each request of the
// list.
func TestChangesAnnounced(t *testing.T) {
	const (
		changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n"
		other   = `{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"notifications/tools/list_changed"}}` + "\n"
	)
	m := new(repairer)
	deliver := func(in string) string {
		out, err := io.ReadAll(m.reader(wire.Source{}).Lines(io.NopCloser(strings.NewReader(in))))
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}

	if got := deliver(strings.Repeat(changed, 20_000) + other + other); got != changed+other+other {
		t.Errorf("%d bytes were delivered: %.200s", len(got), got)
	}
	m.sent([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`))
	if got := deliver(changed); got != "" {
		t.Errorf("after a call: %s", got)
	}
	m.sent([]byte(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`))
	if got := deliver(changed + changed); got != changed {
		t.Errorf("after the list was requested: %s", got)
	}
}
