package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// arrow is a line of the picture in docs/design.md: what the packages that match from may import, by their paths within the
// module. A name that ends in /... stands for itself and all below it. What a package needs beyond std and the
// module stands in modules.
type arrow struct {
	from    string
	to      []string
	modules []string
}

// The JSON modules that the core is built on.
const (
	jsonModule   = "github.com/go-json-experiment/json"
	inferModule  = "github.com/google/jsonschema-go"
	schemaModule = "github.com/santhosh-tekuri/jsonschema/v6"
	textModule   = "golang.org/x/text" // brought by the validator, for its messages
)

// arrows is the picture. Dependencies point to the core: packages that know one job know the core and nothing of each
// other, packages that join things know them all. The first line that matches a package counts; a package that none matches is
// refused until somebody has said here, and in docs/design.md, where it belongs.
var arrows = []arrow{
	// the core
	{from: ".", to: append([]string{"internal/fit", "internal/secret"}, helpers...), modules: []string{jsonModule, inferModule, schemaModule}},

	// helpers: they know nothing of the project
	{from: "internal/secret"},
	{from: "internal/jsonscan"},
	{from: "internal/sse"},
	{from: "internal/http1"},
	{from: "internal/jsonrepair", to: []string{"internal/jsonscan"}},
	{from: "internal/fit", to: []string{"internal/jsonscan", "internal/jsonrepair"}, modules: []string{schemaModule}},
	{from: "internal/schema", to: []string{"internal/jsonscan"}, modules: []string{jsonModule}},
	{from: "internal/retry"},
	{from: "internal/dialect"},
	{from: "internal/netguard"},
	{from: "internal/gate"},
	{from: "tools/internal/webpage", modules: []string{"codeberg.org/readeck/go-readability/v2", "github.com/JohannesKaufmann/html-to-markdown/v2", "golang.org/x/net"}},
	{from: "internal/nearest"},
	{from: "internal/terminal", modules: []string{"github.com/rivo/uniseg", "golang.org/x/term", "golang.org/x/sys"}},
	{from: "internal/markdown", to: []string{"internal/terminal"}},
	{from: "internal/diff"},
	{from: "tools/internal/document", to: []string{"tools/internal/webpage", "internal/jsonscan"}, modules: []string{"github.com/ledongthuc/pdf"}},

	// what the adapters of all providers share
	{from: "provider/internal/wire", to: append([]string{"."}, helpers...)},

	// what the tools of all families share
	{from: "tools/internal/toolrun", to: []string{"."}},
	{from: "internal/test/tooltest", to: []string{".", "store/sqlite"}, modules: []string{schemaModule, "github.com/google/go-cmp"}},

	// what checks the project itself
	{from: "internal/test/archtest"},
	{from: "internal/test/docgen"},
	{from: "internal/test/testreport", to: []string{"internal/test/soak"}},
	{from: "internal/test/soak"},
	{from: "internal/test/testplan"},
	{from: "internal/test/pgtest"},
	{from: "internal/test/clustertest"},
	{from: "internal/test/browser"},
	{from: "internal/test/wiretest", to: []string{".", "pawltest"}},

	// one job each
	{from: "provider", to: []string{".", "store", "provider/...", "internal/..."}},
	{from: "provider/catalog"},
	{from: "provider/...", to: append([]string{".", "store", "provider/internal/wire", "provider/catalog"}, helpers...), modules: []string{jsonModule}},
	{from: "react", to: append([]string{"."}, helpers...), modules: []string{jsonModule}},
	{from: "history", to: []string{"."}},
	{from: "policy", to: []string{".", "internal/nearest"}},
	{from: "leak", to: append([]string{"."}, helpers...)},
	{from: "script", to: []string{".", "internal/diff"}},
	{from: "recording", to: []string{"."}},
	{from: "recording/vcr", to: []string{".", "recording"}, modules: []string{"go.yaml.in/yaml/v3"}},
	{from: "tools/skill", to: []string{".", "store", "tools/internal/toolrun"}, modules: []string{"go.yaml.in/yaml/v3"}},
	{from: "tools/schedule", to: []string{".", "store", "tools/internal/toolrun"}, modules: []string{"github.com/netresearch/go-cron"}},
	{from: "tools/outside", to: append([]string{".", "tools/internal/toolrun", "sandbox", "store", "internal/netguard", "tools/internal/webpage", "tools/internal/document"}, helpers...), modules: []string{"go.yaml.in/yaml/v3"}},
	{from: "tools/code", to: []string{".", "sandbox", "internal/nearest"}, modules: []string{"go.starlark.net"}},
	{from: "tools/...", to: append([]string{".", "tools/internal/toolrun", "sandbox", "sandbox/proxy", "store", "internal/netguard", "tools/internal/webpage", "tools/internal/document"}, helpers...)},
	{from: "sandbox/proxy", to: []string{"internal/netguard"}},
	{from: "sandbox", modules: []string{"golang.org/x/sys"}},
	{from: "mcp", to: append([]string{".", "internal/netguard", "internal/gate"}, helpers...), modules: []string{"github.com/modelcontextprotocol/go-sdk"}},
	{from: "team", to: []string{".", "internal/nearest"}},
	{from: "store", to: []string{"."}},
	{from: "store/internal/words"},
	{from: "store/sqlite", to: []string{".", "store", "store/internal/words"}, modules: []string{"modernc.org/sqlite"}},
	{from: "store/postgres", to: []string{".", "store", "store/internal/words"}, modules: []string{"github.com/jackc/pgx/v5", textModule}},
	{from: "store/storetest", to: []string{".", "store"}},
	{from: "durable", to: []string{".", "store"}},
	{from: "durable/durabletest", to: []string{".", "store", "durable", "script"}, modules: []string{"github.com/google/go-cmp"}},
	{from: "durable/temporal", to: []string{".", "store", "durable"}, modules: []string{"go.temporal.io/sdk", "go.temporal.io/api"}},
	{from: "telemetry", to: []string{"."}, modules: otelModules},
	{from: "telemetry/export", modules: append([]string{"go.opentelemetry.io/otel/sdk"}, otelModules...)},
	{from: "viewer"}, // it knows the server's API over HTTP alone
	{from: "server", to: []string{".", "store", "durable", "internal/gate"}},
	{from: "server/client", to: []string{".", "internal/sse"}},
	{from: "pawltest/hostile", to: []string{".", "script", "leak", "pawltest"}},
	{from: "pawltest/hostile/internal/plain"}, // a loop as it is written by hand: it knows nothing of the project
	{from: "pawltest", to: []string{".", "script", "internal/sse"}, modules: []string{jsonModule}},

	// joins things
	{from: "config", to: []string{".", "sandbox", "sandbox/proxy", "provider/...", "policy", "react", "leak", "history", "script", "tools/...", "mcp", "team", "store/...", "internal/nearest"},
		modules: []string{"go.yaml.in/yaml/v3"}},
	{from: "cmd/pawl/...", to: []string{".", "sandbox", "config", "server", "viewer", "durable", "durable/temporal", "recording/...", "telemetry/...", "mcp", "pawltest/...", "provider/...", "policy", "react", "leak", "history", "script", "tools/...", "store", "store/sqlite", "internal/dialect", "internal/nearest", "internal/http1", "internal/terminal", "internal/markdown", "internal/diff"},
		modules: []string{"github.com/alecthomas/kong", "golang.org/x/term", jsonModule}},
	{from: "examples/...", to: []string{".", "provider/...", "policy", "react", "history", "leak", "script", "tools/...", "mcp", "team", "pawltest"}},
}

// otelModules are what a library needs to speak to any tracer and meter; which ones is the program's business.
var otelModules = []string{"go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/codes", "go.opentelemetry.io/otel/metric", "go.opentelemetry.io/otel/trace"}

// helpers are the internal packages that read bytes and know nothing of the project. Any package may use them.
var helpers = []string{"internal/jsonscan", "internal/sse", "internal/jsonrepair", "internal/schema", "internal/retry", "internal/dialect", "internal/nearest", "internal/http1"}

// coreModules are all modules that reach a program through the core.
var coreModules = []string{jsonModule, inferModule, schemaModule, textModule}

// checkArrows returns what is wrong with the imports of the package from, whose path is within the module. imports are
// full import paths.
func checkArrows(from string, imports []string) []string {
	i := slices.IndexFunc(arrows, func(a arrow) bool { return matches(a.from, from) })
	if i < 0 {
		return []string{fmt.Sprintf("%s: no line of internal/test/archtest/arrows.go names this package. Say there what it may import, and add it to the picture in docs/design.md", from)}
	}
	a := arrows[i]
	var bad []string
	for _, path := range imports {
		switch {
		case path == module || strings.HasPrefix(path, module+"/"):
			to := relative(path)
			if !slices.ContainsFunc(a.to, func(pattern string) bool { return matches(pattern, to) }) {
				bad = append(bad, fmt.Sprintf("%s imports %s: not an arrow of the picture. Dependencies point to the core, and packages that know one job know nothing of each other; "+
					"a new arrow is a decision: change internal/test/archtest/arrows.go and docs/design.md in one commit, or cut the packages differently", from, to))
			}
		case standard(path):
		default:
			if !slices.ContainsFunc(a.modules, func(m string) bool { return path == m || strings.HasPrefix(path, m+"/") }) {
				bad = append(bad, fmt.Sprintf("%s imports %s: this package may use std and %q. A module costs every user of the package: "+
					"say in docs/design.md what it saves and who maintains it, then add it to internal/test/archtest/arrows.go", from, path, a.modules))
			}
		}
	}
	return bad
}

func matches(pattern, path string) bool {
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == base || strings.HasPrefix(path, base+"/")
	}
	return path == pattern
}

// standard reports whether path is of the standard library: its first element has no dot.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// unexplained returns the modules that goMod requires and that have no line of their own in the table of page.
func unexplained(goMod, page string) []string {
	var bad []string
	for line := range strings.Lines(goMod) {
		f := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(f) < 2 || !strings.HasPrefix(f[1], "v") || !strings.Contains(f[0], ".") {
			continue
		}
		if !strings.Contains(page, "\n| `"+f[0]+"` |") {
			bad = append(bad, fmt.Sprintf("go.mod requires %s, and docs/design.md has no line for it: each module needs a sentence that says what it saves, who maintains it and what it pulls in", f[0]))
		}
	}
	return bad
}
