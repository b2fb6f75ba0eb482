package archtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// arrow is a line of the picture in docs/design.md. The packages that match from may import the
// packages that match an element of to, the standard library, and modules.
//
// Paths are relative to the module. A name that ends in /... stands for the package and all
// packages below it.
type arrow struct {
	from    string
	to      []string
	modules []string
}

// The modules that several lines name; the core is built on the JSON modules.
const (
	jsonModule   = "github.com/go-json-experiment/json"
	schemaModule = "github.com/santhosh-tekuri/jsonschema/v6"
	yamlModule   = "go.yaml.in/yaml/v3"
	a2aModule    = "github.com/a2aproject/a2a-go/v2"
	textModule   = "golang.org/x/text" // a dependency of the validator and of pages
)

// planned lists packages that arrows may name before they exist. A package that exists leaves the
// list, so that it only gets shorter.
var planned = []string{}

// arrows is the picture. Dependencies point to the core. A package with one job knows the core and
// no other such package; a package that joins things knows them all. The first line that matches a
// package counts, and a package without a line is refused.
//
// The core is "." and, below it, "llm". A package that needs only llm does not import ".": its line
// loses "." as soon as no package of the line uses it.
var arrows = []arrow{
	// the core
	{from: ".", to: join(low, "delivery", "llm/derivation", "llm", "internal/conversation", "internal/intent",
		"internal/panics", "internal/slots", "internal/schema", "internal/schema/gotype", "internal/text", "internal/jsonform", "internal/plantext"),
		modules: []string{jsonModule, schemaModule}},
	{from: "delivery", to: []string{"llm"}},
	{from: "llm/derivation", to: []string{"llm"}},
	{from: "internal/runtrace"},
	{from: "internal/runerr", to: []string{"."}},
	{from: "internal/background"},
	{from: "caller"},
	{from: "internal/contents", to: []string{"llm", "internal/text"}},
	{from: "internal/conversation", to: []string{"llm"}},
	{from: "internal/panics", to: []string{"llm"}},
	{from: "internal/plantext", modules: []string{jsonModule}},
	{from: "llm", to: []string{"internal/background", "internal/schema", "internal/text", "internal/jsonform"}, modules: []string{jsonModule}},

	// helpers: they know nothing of the project
	{from: "redact/internal/secret"},
	{from: "internal/jsonscan", modules: []string{jsonModule}},
	{from: "internal/sse"},
	{from: "internal/jsonrepair", to: []string{"internal/jsonscan", "internal/jsonform"}},
	{from: "internal/text"},
	{from: "internal/schema/fit", to: []string{"internal/jsonscan", "internal/jsonrepair", "internal/jsonform", "internal/text"}, modules: []string{schemaModule}},
	{from: "internal/schema/gotype", to: []string{"internal/schema", "internal/nearest", "internal/jsonform"}, modules: []string{jsonModule}},
	{from: "internal/schema", to: []string{"internal/schema/fit", "internal/text", "internal/nearest", "internal/jsonscan",
		"internal/jsonrepair"}, modules: []string{jsonModule, schemaModule}},
	{from: "internal/jsonform", modules: []string{jsonModule}},
	{from: "internal/dialect", to: []string{"internal/jsonscan", "internal/text"}},
	{from: "internal/mediatype"},
	{from: "internal/netguard", to: []string{"internal/text"}},
	{from: "internal/outgoing"},
	{from: "internal/callermcp", to: []string{".", "caller", "delivery", "llm", "mcp", "redact"}},
	{from: "internal/intent"},
	{from: "internal/slots"},
	{from: "internal/protect"},
	{from: "internal/guard"},
	{from: "internal/gate"},
	{from: "internal/procgroup", modules: []string{"golang.org/x/sys"}},
	{from: "internal/advice"},
	{from: "internal/nearest"},
	{from: "internal/agentname"},
	{from: "internal/webaddress"},
	{from: "internal/diff"},

	// what the adapters of all providers share
	{from: "provider/internal/wire", to: join(low, "llm")},

	// what the tools of all families share
	{from: "internal/foreign", to: []string{"llm", "internal/jsonform", "internal/mediatype", "internal/text"}, modules: []string{textModule}},
	{from: "tools/internal/toolrun", to: []string{".", "llm", "internal/jsonform"}},
	{from: "tools/internal/sending", to: []string{".", "delivery", "internal/outgoing", "llm"}},
	{from: "tools/internal/webpage", to: []string{"delivery", "internal/mediatype", "internal/text", "tools/internal/sending"}, modules: []string{"codeberg.org/readeck/go-readability/v2",
		"github.com/JohannesKaufmann/html-to-markdown/v2", "golang.org/x/net"}},
	{from: "tools/internal/document", to: []string{"tools/internal/webpage", "internal/jsonscan", "internal/text"},
		modules: []string{"github.com/ledongthuc/pdf"}},

	// test equipment
	{from: "internal/test/archtest", to: []string{"internal/test/docgen"}},
	{from: "internal/test/archtest/onecall"},
	{from: "internal/test/apilist"},
	{from: "internal/test/constants"},
	{from: "internal/test/docgen"},
	{from: "internal/test/site", to: []string{"internal/test/docgen"}, modules: []string{"github.com/yuin/goldmark"}},
	{from: "internal/test/site/make", to: []string{"internal/test/site"}},
	{from: "internal/test/testsum"},
	{from: "internal/test/corpora"},
	{from: "internal/test/soak"},
	{from: "internal/test/load"},
	{from: "bench", to: []string{"llm", "internal/test/docgen", "internal/test/load", "internal/test/speed"}},
	{from: "internal/test/speed", to: []string{".", "llm", "config", "durable", "internal/test/load", "provider/anthropic",
		"provider/gemini", "provider/openai", "server", "store", "store/sqlite", "telemetry"},
		modules: []string{"go.opentelemetry.io/otel/sdk"}},
	{from: "internal/test/machine"},
	{from: "internal/test/bombs", to: []string{"internal/test/machine"}},
	{from: "internal/test/parts"},
	{from: "internal/test/pgtest", to: []string{"internal/test/parts"}},
	{from: "internal/test/clustertest", to: []string{"internal/test/parts"}},
	{from: "internal/test/browser", to: []string{"internal/test/machine", "internal/test/parts"}},
	{from: "internal/test/edge"},
	{from: "internal/test/runtest", to: []string{".", "llm", "script", "internal/test/constants"},
		modules: []string{"github.com/google/go-cmp"}},
	{from: "internal/test/core"},
	{from: "internal/test/obey", to: []string{"llm"}},
	{from: "internal/test/misuse"},
	{from: "internal/test/gotypes", to: []string{".", "llm", "internal/schema/gotype"}},
	{from: "internal/test/buildcache"},
	{from: "internal/test/contract", to: []string{".", "llm", "policy", "script"}},
	{from: "internal/test/answertest", to: []string{".", "llm", "store", "durable", "durable/journal", "script"}},
	{from: "internal/test/longwork", to: []string{".", "llm", "artifact", "durable", "history", "pawltest",
		"provider/anthropic", "provider/gemini", "provider/openai"}},
	{from: "internal/test/release"},
	{from: "internal/test/longreply", to: []string{".", "llm", "pawltest", "provider/openai", "script"}},
	{from: "internal/test/far"},
	{from: "internal/test/plays", to: []string{"pawltest"}},
	{from: "internal/test/wiretest", to: []string{".", "llm", "pawltest", "internal/test/corpora", "internal/test/parts"}},
	{from: "internal/test/tooltest", to: []string{".", "llm", "store/sqlite"},
		modules: []string{schemaModule, "github.com/google/go-cmp"}},

	// one job each
	{from: "provider", to: []string{"llm", "store", "provider/...", "internal/..."}},
	{from: "provider/catalog", to: []string{"llm"}},
	{from: "provider/...", to: join(low, "llm", "store", "provider/internal/wire", "provider/catalog", "internal/background"),
		modules: []string{jsonModule}},
	{from: "react", to: join(low, ".", "llm", "internal/text"), modules: []string{jsonModule}},
	{from: "history", to: []string{".", "llm", "internal/background", "internal/contents", "internal/text", "history/internal/fold"}},
	{from: "history/internal/fold", to: []string{".", "llm", "internal/contents", "internal/text"}},
	{from: "policy", to: []string{".", "internal/advice", "delivery", "llm", "internal/background", "internal/nearest", "internal/schema/gotype", "internal/jsonscan",
		"internal/netguard", "internal/conversation", "policy/internal/origin"}},
	{from: "policy/backtest", to: []string{".", "llm", "policy", "internal/jsonform"}},
	{from: "policy/internal/origin", to: []string{".", "llm/derivation", "llm", "internal/jsonscan"}},
	{from: "leak", to: join(low, ".", "llm")},
	{from: "redact", to: join(low, ".", "llm/derivation", "llm", "internal/jsonform", "internal/schema", "observe", "redact/internal/secret"),
		modules: []string{jsonModule}},
	{from: "observe", to: join(low, ".", "llm", "internal/jsonform", "internal/schema/gotype"), modules: []string{jsonModule}},
	{from: "artifact", to: []string{".", "llm", "internal/contents", "internal/conversation", "internal/text"}},
	{from: "script", to: []string{"llm", "internal/diff"}},
	{from: "recording", to: []string{"llm", "redact", "internal/jsonform", "internal/text"}},
	{from: "tools/skill", to: []string{".", "llm", "store", "tools/internal/toolrun"}, modules: []string{yamlModule}},
	{from: "tools/schedule", to: []string{".", "llm", "store", "internal/runerr", "tools/internal/toolrun"},
		modules: []string{"github.com/netresearch/go-cron"}},
	{from: "tools/file", to: join(shared, ".", "llm"), modules: []string{"github.com/bmatcuk/doublestar/v4", textModule}},
	{from: "tools/remember", to: join(shared, ".", "llm", "store", "internal/conversation")},
	{from: "tools/internal/yamlvalue", modules: []string{yamlModule}},
	{from: "tools/outside", to: join(shared, ".", "llm", "caller", "internal/procgroup", "sandbox", "store", "tools/internal/yamlvalue"), modules: []string{yamlModule, a2aModule, textModule}},
	{from: "tools/code", to: []string{".", "delivery", "llm", "sandbox", "internal/jsonform", "internal/nearest", "internal/text", "tools/internal/toolrun"}, modules: []string{"go.starlark.net"}},
	{from: "tools/...", to: join(shared, ".", "llm", "sandbox", "sandbox/proxy", "store")},
	{from: "sandbox/proxy", to: []string{"internal/netguard"}},
	{from: "sandbox", to: []string{"internal/procgroup", "internal/text"}, modules: []string{"golang.org/x/sys"}},
	{from: "mcp/internal/wire"},
	{from: "mcp/internal/transport", to: []string{"internal/guard", "mcp/internal/wire"},
		modules: []string{"github.com/modelcontextprotocol/go-sdk"}},
	{from: "mcp", to: join(low, ".", "delivery", "llm", "policy", "internal/foreign", "internal/procgroup", "internal/jsonform", "redact", "internal/netguard", "internal/outgoing", "internal/gate", "internal/schema",
		"mcp/internal/transport", "mcp/internal/wire"),
		modules: []string{"github.com/modelcontextprotocol/go-sdk", "golang.org/x/oauth2"}},
	{from: "team", to: []string{".", "llm", "internal/conversation", "internal/jsonform", "internal/nearest", "internal/text"}},
	{from: "store", to: []string{".", "llm", "artifact", "internal/agentname"}},
	{from: "store/internal/words"},
	{from: "store/internal/relational", to: []string{".", "llm", "store", "store/internal/words"}},
	{from: "store/sqlite", to: []string{"store", "store/internal/relational", "store/internal/words"},
		modules: []string{"modernc.org/sqlite"}},
	{from: "store/postgres", to: []string{"store", "store/internal/relational", "store/internal/words"},
		modules: []string{"github.com/jackc/pgx/v5", textModule}},
	{from: "store/storetest/fault", to: []string{".", "llm", "store", "pawltest/mutant"}},
	{from: "store/storetest", to: []string{".", "llm", "store", "pawltest/mutant", "store/storetest/fault"}},
	{from: "durable/internal/record", to: []string{".", "llm", "store", "internal/text"}},
	// it executes nothing
	{from: "durable/journal", to: []string{".", "delivery", "llm/derivation", "llm", "redact", "store", "durable/internal/record", "internal/jsonform"}},
	{from: "durable", to: []string{".", "llm", "redact", "store", "durable/internal/record", "durable/journal", "internal/agentname", "internal/background",
		"internal/runerr", "internal/runtrace", "internal/text"}},
	{from: "durable/whatif", to: []string{".", "llm", "redact", "store", "durable/internal/record", "durable/journal", "internal/jsonform"}},
	{from: "durable/durabletest", to: []string{".", "llm", "store", "durable", "durable/journal", "script", "internal/runerr"},
		modules: []string{"github.com/google/go-cmp"}},
	// a module that users require: nothing internal of the root (modules.go)
	{from: "durable/temporal", to: []string{".", "caller", "delivery", "llm", "store", "durable", "durable/journal"},
		modules: []string{"go.temporal.io/sdk", "go.temporal.io/api"}},
	{from: "telemetry", to: []string{".", "llm", "observe", "redact", "internal/runtrace"}, modules: otelModules},
	{from: "telemetry/export", to: []string{"internal/webaddress"}, modules: join(otelModules, "go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/exporters",
		"github.com/prometheus/client_golang", "github.com/prometheus/otlptranslator")},
	{from: "viewer"}, // it uses the server's API over HTTP alone
	// The server: server → openai, anthropic, ui, a2a → turns, conversation → web → runs → access →
	// api. No protocol knows another, and runs does not import net/http.
	{from: "server", to: join(toWeb, ".", "caller", "llm", "redact", "store", "durable", "durable/journal", "internal/gate",
		"server/internal/a2a", "server/internal/access", "server/internal/anthropic", "server/internal/openai", "server/internal/turns",
		"server/internal/ui")},
	// programs have it without a server
	{from: "server/api", to: []string{".", "llm", "store", "durable/journal"}},
	{from: "server/internal/access", to: []string{"caller", "store", "server/api"}},
	{from: "server/internal/runs", to: []string{".", "caller", "llm", "redact", "store", "durable", "durable/journal",
		"history", "internal/agentname", "internal/schema", "server/api", "server/internal/access"}},
	{from: "server/internal/web", to: []string{"redact", "store", "internal/gate", "server/api",
		"server/internal/access", "server/internal/runs"}},
	{from: "server/internal/conversation", to: join(toWeb, ".", "llm", "store", "server/uistream")},
	{from: "server/internal/turns", to: join(toWeb, ".", "llm", "store", "durable", "durable/journal")},
	{from: "server/internal/anthropic", to: join(toWeb, "llm", "redact", "server/internal/turns", "server/uistream")},
	{from: "server/internal/openai", to: join(toWeb, ".", "llm", "redact", "store", "durable/journal",
		"server/internal/turns", "server/uistream")},
	{from: "server/internal/ui", to: join(toWeb, ".", "llm", "store", "server/internal/conversation", "server/uistream")},
	{from: "server/internal/a2a", to: join(toWeb, ".", "llm", "internal/agentname", "internal/foreign", "durable/journal", "store", "server/internal/conversation", "server/uistream"),
		modules: []string{a2aModule}},
	{from: "thread", to: []string{".", "llm", "store", "internal/text"}},
	{from: "server/uistream", to: []string{".", "llm"}}, // applications have it without a server
	{from: "server/client", to: []string{".", "llm", "internal/sse"}},
	{from: "pawltest/hostile", to: []string{".", "llm", "script", "leak", "pawltest", "internal/runerr"}},
	{from: "pawltest/hostile/cmd/hostile", to: []string{"llm", "provider", "pawltest", "pawltest/hostile"}},
	{from: "pawltest/hostilemcp", to: []string{".", "llm", "script", "mcp", "pawltest"}},
	// a client written by hand, for comparison
	{from: "pawltest/hostilemcp/internal/plain", modules: []string{"github.com/modelcontextprotocol/go-sdk"}},
	{from: "pawltest/cmd/wire", to: []string{".", "llm", "provider", "internal/jsonform"}, modules: []string{jsonModule}},
	{from: "pawltest/hostile/internal/plain"}, // a loop written by hand, for comparison
	{from: "pawltest/mutant", to: []string{".", "llm"}},
	{from: "pawltest/internal/cases", to: []string{".", "llm", "script", "policy", "delivery"}},
	// The simulated providers: reply → summaries, seal → wire. The checker and the reader know no
	// adapter and no simulator.
	{from: "pawltest/internal/wire"},
	{from: "pawltest/internal/seal", to: []string{"llm", "pawltest/internal/wire"}},
	{from: "pawltest/internal/summaries", to: []string{"llm"}},
	{from: "pawltest/internal/check", to: []string{"pawltest/internal/seal", "pawltest/internal/wire"}},
	{from: "pawltest/internal/read", to: []string{"llm", "pawltest/internal/seal", "pawltest/internal/wire"}},
	{from: "pawltest/internal/reply", to: []string{"llm", "pawltest/internal/seal", "pawltest/internal/summaries", "pawltest/internal/wire"}},
	// The suites: each kind of implementation has its own, which know nothing of each other. The
	// suite of adapters is in pawltest, because it needs the Simulator.
	{from: "pawltest/internal/suite", to: []string{".", "llm", "pawltest/mutant"}},
	{from: "pawltest/internal/suite/model", to: join(toSuite, "pawltest/internal/wire")},
	{from: "pawltest/internal/suite/executor", to: join(toSuite, ".", "pawltest/internal/wire")},
	{from: "pawltest/internal/suite/runner", to: join(toSuite, ".", "pawltest/internal/wire")},
	{from: "pawltest", to: []string{".", "llm", "script", "pawltest/mutant", "pawltest/internal/check", "pawltest/internal/read",
		"pawltest/internal/reply", "pawltest/internal/seal", "pawltest/internal/suite", "pawltest/internal/suite/executor",
		"pawltest/internal/suite/model", "pawltest/internal/suite/runner", "pawltest/internal/summaries", "pawltest/internal/wire"}},

	// joins things
	{from: "internal/notify", to: []string{".", "llm", "redact", "store", "internal/webaddress"}},
	{from: "internal/demomodel", to: []string{"llm", "script"}},
	{from: "internal/agentfile/agentframework", to: []string{"llm", "script", "tools/outside", "internal/nearest", "internal/text"}, modules: []string{yamlModule}},
	{from: "config", to: []string{".", "llm", "policy", "mcp", "internal/agentfile"}},
	// evaluations: eval → running → suite → check → match; stats knows nothing of the project
	{from: "eval/internal/stats"},
	{from: "eval/internal/trial", to: []string{".", "llm"}},
	{from: "eval/internal/match", to: []string{"internal/jsonform", "internal/nearest", "internal/schema"}},
	{from: "internal/agentfile", to: []string{".", "internal/notify", "internal/advice", "llm", "artifact", "caller", "internal/agentfile/agentframework", "sandbox", "sandbox/proxy", "provider/...", "policy", "react", "leak", "history", "redact", "script", "tools/...", "mcp", "team", "store/...", "internal/callermcp", "internal/demomodel", "internal/nearest", "internal/protect", "internal/guard", "internal/text", "internal/webaddress"},
		modules: []string{"go.yaml.in/yaml/v3"}},
	{from: "eval/internal/check", to: []string{"eval/internal/match", "eval/internal/trial", "internal/jsonform", "internal/nearest",
		"internal/text", "tools/outside"}},
	{from: "eval/internal/suite", to: []string{"llm", "eval/internal/check", "eval/internal/match", "internal/agentfile",
		"internal/jsonform", "internal/nearest", "tools/outside"}, modules: []string{yamlModule}},
	{from: "eval/internal/running", to: []string{".", "llm", "durable", "durable/journal", "eval/internal/suite", "eval/internal/trial",
		"internal/agentfile", "provider", "recording", "redact", "script", "store"}},
	{from: "eval/internal/stored", to: []string{".", "llm", "durable/journal", "eval/internal/check", "eval/internal/match",
		"eval/internal/suite", "eval/internal/trial", "internal/agentfile", "internal/jsonform", "tools/outside"}},
	{from: "eval/internal/imports", to: []string{"llm", "eval/internal/check", "eval/internal/match", "eval/internal/suite", "eval/internal/trial",
		"internal/agentfile", "internal/jsonform", "internal/nearest", "tools/outside"}, modules: []string{yamlModule}},
	{from: "eval", to: []string{".", "durable", "durable/journal", "eval/internal/check", "eval/internal/imports", "eval/internal/match", "eval/internal/running",
		"eval/internal/stats", "eval/internal/stored", "eval/internal/suite", "eval/internal/trial", "internal/agentfile", "internal/jsonform", "internal/text",
		"store", "store/sqlite"}},
	{from: "eval/evaltest", to: []string{"eval"}},
	// the program: main → serve, runs, doctor → tui → assemble, show → cli → term, and demo → show
	{from: "cmd/pawl/internal/term", modules: []string{"github.com/rivo/uniseg", "golang.org/x/term", "golang.org/x/sys"}},
	{from: "cmd/pawl/internal/show/markdown", to: []string{"cmd/pawl/internal/term"}, modules: []string{"github.com/yuin/goldmark"}},
	{from: "cmd/pawl/internal/cli", to: []string{".", "llm", "provider", "store", "internal/jsonform", "internal/nearest", "cmd/pawl/internal/term"},
		modules: []string{"github.com/alecthomas/kong", "golang.org/x/term", jsonModule}},
	{from: "cmd/pawl/internal/assemble", to: []string{".", "llm", "internal/advice", "observe", "redact", "internal/agentfile", "durable", "durable/journal", "durable/temporal", "mcp", "policy", "provider", "provider/catalog", "recording",
		"store", "telemetry", "telemetry/export", "thread", "tools/outside", "tools/search", "cmd/pawl/internal/cli"}},
	{from: "cmd/pawl/internal/show", to: []string{".", "llm", "tools/todo", "internal/jsonscan", "cmd/pawl/internal/cli", "cmd/pawl/internal/term", "cmd/pawl/internal/show/markdown"}},
	{from: "cmd/pawl/internal/tui", to: []string{".", "llm", "redact", "internal/agentfile", "durable", "history", "mcp", "store", "tools/file", "internal/diff", "internal/nearest",
		"cmd/pawl/internal/assemble", "cmd/pawl/internal/cli", "cmd/pawl/internal/show", "cmd/pawl/internal/term", "cmd/pawl/internal/show/markdown"}},
	{from: "cmd/pawl/internal/runs", to: append([]string{".", "llm/derivation", "llm", "redact", "internal/agentfile", "internal/agentname", "durable", "durable/journal", "durable/temporal", "durable/whatif", "policy/backtest", "history", "store", "tools/schedule", "internal/nearest", "internal/text"}, toTUI...)},
	{from: "cmd/pawl/internal/doctor", to: append([]string{"llm", "internal/agentfile", "provider", "provider/catalog", "sandbox"}, toAssemble...), modules: []string{"golang.org/x/sys"}},
	{from: "cmd/pawl/internal/eval", to: append([]string{".", "eval", "internal/agentfile", "store"}, toAssemble...)},
	{from: "cmd/pawl/internal/demo", to: []string{".", "llm", "pawltest", "provider", "script", "tools/data", "tools/file", "internal/text", "cmd/pawl/internal/cli", "cmd/pawl/internal/show"}},
	{from: "cmd/pawl/internal/serve", to: append([]string{".", "llm", "durable", "internal/notify", "observe", "redact", "internal/agentfile", "durable/temporal", "mcp", "provider/...", "server", "server/api", "store", "telemetry/...",
		"tools/file", "tools/outside", "tools/schedule", "viewer"}, toAssemble...)},
	// at most 250 packages of other modules
	{from: "cmd/pawl/demo", to: []string{"cmd/pawl/internal/cli", "cmd/pawl/internal/demo"}, modules: []string{"github.com/alecthomas/kong"}},
	{from: "cmd/pawl", to: append([]string{".", "cmd/pawl/internal/eval", "llm", "caller", "team", "internal/agentfile", "internal/callermcp", "durable", "mcp", "provider/...", "recording/...", "sandbox", "store", "internal/demomodel", "internal/dialect", "internal/nearest",
		"tools/knowledge", "tools/outside", "cmd/pawl/internal/demo", "cmd/pawl/internal/doctor", "cmd/pawl/internal/runs", "cmd/pawl/internal/serve"}, toTUI...),
		modules: []string{"github.com/alecthomas/kong"}},
	{from: "examples/...", to: []string{".", "llm", "provider/...", "policy", "server", "server/api", "react", "history", "leak", "script", "tools/...", "mcp", "team", "pawltest",
		"observe", "durable", "durable/journal", "sandbox", "store", "store/sqlite", "telemetry", "telemetry/export"}},
}

// toSuite is what a suite of pawltest stands on.
var toSuite = []string{"llm", "script", "pawltest/mutant", "pawltest/internal/cases", "pawltest/internal/suite"}

// toWeb is what a protocol of the server stands on.
var toWeb = []string{"server/api", "server/internal/runs", "server/internal/web"}

// The lower layers of the program.
var (
	toAssemble = []string{"cmd/pawl/internal/assemble", "cmd/pawl/internal/cli"}
	toTUI      = append([]string{"cmd/pawl/internal/tui"}, toAssemble...)
)

// otelModules are what a library needs to speak to any tracer and meter; which ones is the
// program's business.
var otelModules = []string{"go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/codes", "go.opentelemetry.io/otel/metric",
	"go.opentelemetry.io/otel/propagation", "go.opentelemetry.io/otel/semconv/v1.41.0", "go.opentelemetry.io/otel/trace"}

// low are the internal packages that read bytes and know nothing of the project. Any package may
// import them.
var low = []string{"internal/advice", "internal/jsonscan", "internal/sse", "internal/jsonrepair", "internal/dialect", "internal/nearest", "internal/text",
	"internal/guard", "internal/mediatype", "internal/webaddress"}

// shared is what the families of tools may import in addition to low.
var shared = join(low, "delivery", "internal/foreign", "internal/jsonform", "internal/netguard", "internal/protect", "tools/internal/sending", "tools/internal/document", "tools/internal/toolrun", "tools/internal/webpage")

func join(list []string, more ...string) []string { return slices.Concat(list, more) }

// coreModules are all modules that a program gets with the core.
var coreModules = []string{jsonModule, schemaModule, textModule}

// checkArrows returns the imports of the package from that no line allows. from is the path of the
// package within the module; imports are full import paths.
func checkArrows(from string, imports []string) []string {
	a := lineOf(arrows, from)
	if a == nil {
		return []string{fmt.Sprintf("%s: no line of internal/test/archtest/arrows.go names this package. "+
			"State there what it may import, and add it to the picture in docs/design.md", from)}
	}
	var bad []string
	for _, path := range imports {
		switch {
		case path == module || strings.HasPrefix(path, module+"/"):
			if to := relative(path); !matchesAny(a.to, to) {
				bad = append(bad, fmt.Sprintf("%s imports %s: not an arrow of the picture. Dependencies point to the core, "+
					"and packages with one job do not know each other. A new arrow is a decision: change "+
					"internal/test/archtest/arrows.go and docs/design.md in one commit, or cut the packages differently", from, to))
			}
		case standard(path):
		case !slices.ContainsFunc(a.modules, func(m string) bool { return matches(m+"/...", path) }):
			bad = append(bad, fmt.Sprintf("%s imports %s: this package may use std and %q. A module is a cost for every user: "+
				"say in docs/design.md what it saves and who maintains it, then add it to internal/test/archtest/arrows.go",
				from, path, a.modules))
		}
	}
	return bad
}

// lineOf returns the first line that matches a package: nil means none.
func lineOf(arrows []arrow, path string) *arrow {
	i := slices.IndexFunc(arrows, func(a arrow) bool { return matches(a.from, path) })
	if i < 0 {
		return nil
	}
	return &arrows[i]
}

// deadArrows returns the patterns of arrows that match no package, the planned packages that exist,
// and the lines that allow the core to packages which do not use it. imports has the imports of all
// packages of the module, by path within it.
func deadArrows(arrows []arrow, planned []string, imports map[string][]string) []string {
	var bad []string
	for _, p := range planned {
		if imports[p] != nil {
			bad = append(bad, fmt.Sprintf("%s exists: remove it from planned in arrows.go", p))
		}
	}
	packages := slices.Concat(slices.Sorted(maps.Keys(imports)), planned)
	for i := range arrows {
		a := &arrows[i]
		mine := slices.DeleteFunc(slices.Clone(packages), func(p string) bool { return lineOf(arrows, p) != a })
		if len(mine) == 0 {
			bad = append(bad, fmt.Sprintf("arrows.go: from %q matches no package: remove the line", a.from))
		}
		for _, to := range a.to {
			if !slices.ContainsFunc(packages, func(p string) bool { return matches(to, p) }) {
				bad = append(bad, fmt.Sprintf("arrows.go: to %q of the line %q matches no package: remove it", to, a.from))
			}
		}
		usesCore := func(p string) bool { return slices.Contains(imports[p], module) || imports[p] == nil }
		if slices.Contains(a.to, ".") && len(mine) > 0 && !slices.ContainsFunc(mine, usesCore) {
			bad = append(bad, fmt.Sprintf(`arrows.go: no package of the line %q imports the core: remove "." from it`, a.from))
		}
	}
	return bad
}

func matchesAny(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, path) })
}

func matches(pattern, path string) bool {
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == base || strings.HasPrefix(path, base+"/")
	}
	return path == pattern
}

// standard reports whether path belongs to the standard library: its first element has no dot.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// unexplained returns the modules that a go.mod file requires and that have no row in the table of
// page. The modules of this project need none.
func unexplained(name, goMod, page string) []string {
	var bad []string
	for line := range strings.Lines(goMod) {
		f := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(f) < 2 || !strings.HasPrefix(f[1], "v") || !strings.Contains(f[0], ".") || matches(module+"/...", f[0]) {
			continue
		}
		if !strings.Contains(page, "\n| `"+f[0]+"` |") {
			bad = append(bad, fmt.Sprintf("%s requires %s, and docs/design.md has no line for it: each module needs a sentence "+
				"that says what it saves, who maintains it and what it pulls in", name, f[0]))
		}
	}
	return bad
}
