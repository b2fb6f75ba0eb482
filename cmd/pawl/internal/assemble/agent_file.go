package assemble

import (
	"strings"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/config"
)

// FileFlags select an agent of a file.
type FileFlags struct {
	Agent string `placeholder:"NAME" help:"Which agent of the file, where it has several."`
}

// IsAgentFile reports whether an argument is the name of a file with agents and not a task.
func IsAgentFile(arg string) bool {
	return !strings.ContainsAny(arg, " \n") && (strings.HasSuffix(arg, ".yaml") || strings.HasSuffix(arg, ".yml"))
}

// Read returns the agent of the file called name. "" means an empty agent, for flags alone.
func (f *FileFlags) Read(name string, sys *cli.System) (*config.Agent, error) {
	if name == "" {
		if f.Agent != "" {
			return nil, cli.Usage("pawl run FILE.yaml --agent NAME", "--agent: there is no file with agents")
		}
		return new(config.Agent), nil
	}
	file, err := config.Load(name, &config.LoadOptions{Getenv: sys.Env})
	if err != nil {
		return nil, Misconfigured(err)
	}
	a, err := file.Agent(f.Agent)
	if err != nil {
		return nil, Misconfigured(err)
	}
	for _, w := range a.Warnings() {
		sys.Notice(w.Error())
	}
	return a, nil
}
