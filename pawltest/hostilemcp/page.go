package hostilemcp

import (
	"fmt"
	"strings"
)

// Page returns docs/hostile-mcp.md: the results of pawl over each API, by its name, and of the
// control.
func Page(apis []string, pawl map[string][]Row, control []Row) string {
	var b strings.Builder
	plays := 0
	failed := 0
	for _, rows := range pawl {
		plays += len(rows)
		failed += failures(rows)
	}
	fmt.Fprintf(&b, `<!-- Made by the test of pawltest/hostilemcp. Change it there, then: make docs -->

# MCP servers that behave badly

%d behaviours of MCP servers, played to pawl over %d wires: %d plays, %d of them failed. Each is a server with one tool and
one fault: in what it writes to standard output (lines), in its results, in its lists, in its sessions or in its tokens. A
play is a run in which the model calls the tool once or a few times, and a second turn of the same conversation.

A behaviour passes if all of this holds:

- Both runs end with an answer: no server ends a run.
- The API accepts every request: no result makes a conversation impossible to continue.
- The tool ran exactly as often as wanted. A call that the server has certainly not executed is sent once more in a new
  session, or its result says that it was not made.
- A result says that its call may have happened only if that is not known.
- The other results reach the model.

The control is a client written by hand on the official Go SDK: it connects, lists the tools and calls them, and an error of
a call is a result. It shows that the kit can fail: of %d behaviours it fails %d.

In Go, `+"`hostilemcp.Play`"+` takes any function as a client.

`, len(control), len(apis), plays, failed, len(control), failures(control))

	for _, kind := range Kinds {
		fmt.Fprintf(&b, "## %s\n\n| behaviour | the server … |", strings.ToUpper(kind[:1])+kind[1:])
		for _, api := range apis {
			b.WriteString(" " + api + " |")
		}
		b.WriteString(" control |\n|---|---|" + strings.Repeat("---|", len(apis)+1) + "\n")
		for i, row := range control {
			if row.Behaviour.Kind != kind {
				continue
			}
			fmt.Fprintf(&b, "| `%s` | %s |", row.Behaviour.ID, cell(row.Behaviour.Title))
			for _, api := range apis {
				b.WriteString(" " + word(pawl[api][i]) + " |")
			}
			b.WriteString(" " + word(row) + " |\n")
		}
		b.WriteString("\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// failures counts the rows with a fault.
func failures(rows []Row) (n int) {
	for _, r := range rows {
		if len(r.Wrong) > 0 {
			n++
		}
	}
	return n
}

// word returns the result of a row for a table. It is the same on every machine: texts of errors
// are left out.
func word(r Row) string {
	if len(r.Wrong) == 0 {
		return "ok"
	}
	what, _, _ := strings.Cut(r.Wrong[0], ": ")
	what, _, _ = strings.Cut(what, " is \"")
	return "**fails:** " + cell(what)
}

func cell(s string) string { return strings.NewReplacer("|", "\\|", "<", "&lt;", "\n", " ").Replace(s) }
