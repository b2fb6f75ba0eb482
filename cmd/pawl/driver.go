package main

import (
	"context"
	"fmt"
	"iter"
	"os"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/leak"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/react"
)

// catalogue reads a catalogue that a person named, or returns the one inside.
func catalogue(flag, path string) (*catalog.Catalog, error) {
	if path == "" {
		return catalog.Default(), nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, usage("", "%s: %s", flag, plain(err))
	}
	c, err := catalog.Parse(b)
	if err != nil {
		return nil, usage("pawl models list --json prints one that is right", "%s %s: %v", flag, path, err)
	}
	return c, nil
}

// driverPicked is the code of the notice that says what --driver auto took.
const driverPicked = "driver"

// driverFlags are the finer points of a driver.
type driverFlags struct {
	Parallel bool   `name:"react-parallel" help:"Decisions of --driver react may have several calls."`
	Lenient  bool   `name:"react-lenient" help:"Unknown tools and wrong arguments in decisions of --driver react are calls with an error for a result, as native ones are; without it they are asked for again."`
	Leaks    string `name:"leaked-calls" enum:"auto,on,off" default:"auto" placeholder:"WHEN" help:"Whether calls that a model with native calling wrote as text become calls: on, off, or auto: unless the model is openai:, anthropic: or gemini:, whose servers read their models' marks themselves. Default: auto."`
}

// leaks reports whether calls are looked for in the text of a model with native calling.
func (f *agentFlags) leaks() bool {
	if f.Leaks != "auto" {
		return f.Leaks == "on"
	}
	name, _, _ := strings.Cut(f.Model, ":")
	return name != "openai" && name != "anthropic" && name != "gemini"
}

// driven puts the driver around the model. What auto takes is told on standard error, and as a notice of the first request.
func (f *agentFlags) driven(model pawl.Model, known *catalog.Catalog, sys *system) (pawl.Model, []pawl.Middleware, error) {
	if f.Format != "" && f.Driver == "native" {
		return nil, nil, usage("--driver react --react-format "+f.Format, "--react-format is about --driver react, not %s", f.Driver)
	}
	if f.Driver == "native" && (f.Parallel || f.Lenient) {
		return nil, nil, usage("--driver react", "--react-parallel and --react-lenient are about --driver react, not native")
	}
	driver := f.Driver
	var layers []pawl.Middleware
	if driver == "auto" {
		var why string
		driver, why = pick(known, f.Model)
		text := driver + ", since " + why
		fmt.Fprintf(sys.err, "pawl: driver: %s\n", visible(text))
		layers = append(layers, told(pawl.Notice{Code: driverPicked, Text: text}))
	}
	if driver == "react" {
		return react.New(model, &react.Options{Format: react.Format(f.Format), Parallel: f.Parallel, Lenient: f.Lenient}), layers, nil
	}
	if f.leaks() {
		layers = append(layers, leak.Calls())
	}
	return model, layers, nil
}

// pick chooses the driver for a model, and says why.
func pick(known *catalog.Catalog, name string) (driver, why string) {
	m, assumed := known.Lookup(name)
	list := strings.Join(assumed, "; ")
	switch {
	case !*m.Calling && list == "":
		return "react", "the catalogue says that " + name + " does not call tools"
	case !*m.Calling:
		return "react", "the catalogue says that it does not call tools: " + list
	case list == "":
		return "native", "the catalogue says that " + name + " calls tools"
	}
	return "native", list + "; --driver react is for models that do not call tools"
}

// told tells a notice before the first reply.
func told(n pawl.Notice) pawl.Middleware {
	return pawl.Middleware{Model: func(m pawl.Model) pawl.Model { return &telling{m, n} }}
}

// telling is made anew for each run.
type telling struct {
	pawl.Model
	notice pawl.Notice
}

func (t *telling) Stream(ctx context.Context, req *pawl.Request) iter.Seq2[pawl.Delta, error] {
	return func(yield func(pawl.Delta, error) bool) {
		if n := t.notice; n.Code != "" {
			t.notice = pawl.Notice{}
			if !yield(pawl.Delta{Notice: &n}, nil) {
				return
			}
		}
		t.Model.Stream(ctx, req)(yield)
	}
}
