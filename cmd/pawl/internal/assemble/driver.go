package assemble

import (
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/config"
	"github.com/pawl-go/pawl/provider/catalog"
)

// Catalogue reads a catalogue that a person named, or returns the one inside.
func Catalogue(flag, path string) (*catalog.Catalog, error) {
	c, err := config.ReadCatalog(path)
	for _, f := range config.FindingsOf(err) {
		return nil, cli.Usage(f.Hint, "%s: %s", flag, f.Message)
	}
	return c, err
}

// driverFlags say how a model calls tools.
type driverFlags struct {
	Driver   string `enum:"native,react,auto," default:"" placeholder:"DRIVER" help:"How the model calls tools: native (its own function calling), react (decisions written as text, for models without it), or auto: by what the catalogue says of the model. Default: native."`
	Format   string `name:"react-format" enum:"json,text,xml,plain," default:"" placeholder:"FORMAT" help:"How decisions of --driver react (or auto) are written: json, text, xml or plain. Default: json."`
	Parallel bool   `name:"react-parallel" help:"Decisions of --driver react may have several calls."`
	Lenient  bool   `name:"react-lenient" help:"Unknown tools and wrong arguments in decisions of --driver react are calls with an error for a result, as native ones are; without it they are asked for again."`
	Leaks    string `name:"leaked-calls" enum:"auto,on,off," default:"" placeholder:"WHEN" help:"Whether calls that a model with native calling wrote as text become calls: on, off, or auto: unless the model is openai:, anthropic: or gemini:, whose servers read their models' marks themselves. Default: auto."`
}

// over writes what the flags say over the agent. A driver that the flags name takes the place of the file's with all that is said of it.
func (f *driverFlags) over(a *config.Agent) {
	if f.Driver != "" {
		a.Driver, a.React = f.Driver, nil
		a.Override("driver")
		a.Override("react")
	}
	if f.Format != "" || f.Parallel || f.Lenient {
		if a.React == nil {
			a.React = new(config.React)
		}
		Set(a, "react.format", &a.React.Format, f.Format)
		Set(a, "react.parallel", &a.React.Parallel, f.Parallel)
		Set(a, "react.lenient", &a.React.Lenient, f.Lenient)
	}
	Set(a, "leaked_calls", &a.Leaks, f.Leaks)
}
