package assemble

import (
	"slices"
	"strings"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
)

// WithoutCaller says at the start of a command whose runs have no caller what of an agent needs
// one: names is agentfile.Built.ForCallers. The calls of a tool are refused, which is a notice. A
// run with an MCP server that needs a caller does not begin, which is an error.
func WithoutCaller(sys *cli.System, agent string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	hasServer := slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "mcp:") })
	if hasServer {
		return NeedsCaller(agent, names)
	}
	sys.Notice(cli.Visible(needsCaller(agent, names)) +
		". Each call is refused, and nothing is sent; pawl serve has callers: docs/outside.md")
	return nil
}

// NeedsCaller is the failure of a command that does not start without a caller.
func NeedsCaller(agent string, names []string) error {
	return cli.Usage("pawl serve has callers, and docs/outside.md says where they come from; "+
		"${NAME} in a header is a variable of this machine, for all runs", "%s", needsCaller(agent, names))
}

// needsCaller says what of an agent needs a caller.
func needsCaller(agent string, names []string) string {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	return agent + ": runs of this command have no caller in whose name to act (${caller.…}): " + strings.Join(names, ", ")
}
