package assemble

import (
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/config"
	"github.com/pawl-go/pawl/provider/catalog"
)

// Catalogue reads the catalogue at path. "" means the built-in one.
func Catalogue(flag, path string) (*catalog.Catalog, error) {
	c, err := config.ReadCatalog(path)
	for _, f := range config.FindingsOf(err) {
		return nil, cli.Usage(f.Hint, "%s: %s", flag, f.Message)
	}
	return c, err
}

// driverFlags say how a model calls tools.
type driverFlags struct {
	Driver   string `enum:"native,react,auto," default:"" placeholder:"DRIVER" help:"@driver_driver"`
	Format   string `name:"react-format" enum:"json,text,xml,plain," default:"" placeholder:"FORMAT" help:"@driver_format"`
	Parallel bool   `name:"react-parallel" help:"@driver_parallel"`
	Lenient  bool   `name:"react-lenient" help:"@driver_lenient"`
	Leaks    string `name:"leaked-calls" enum:"auto,on,off," default:"" placeholder:"WHEN" help:"@driver_leaks"`
}

// over writes what the flags say over the agent. A driver that the flags name takes the place of
// the file's with all that is said of it.
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
