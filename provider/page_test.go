package provider

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/wiretest"
)

// The table of servers in docs/providers.md is generated from the list of Open. -update writes it.
func TestServersPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("| name | key | address |\n|---|---|---|\n")
	for _, s := range servers {
		key := "`" + s.KeyEnv + "`"
		if s.Keyless {
			key += ", where it wants one"
		}
		address := "`" + s.BaseURL + "`"
		if s.BaseURL == "" {
			address = "`" + s.BaseEnv + "`, or `--base-url`"
		}
		fmt.Fprintf(&b, "| `%s:%s` | %s | [%s](%s) |\n", s.Name, s.example, key, address, s.source)
	}
	wiretest.Part(t, "providers.md", "servers", b.String())
}
