package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/provider/catalog"
)

// modelsCmd shows the models of the catalogue.
type modelsCmd struct {
	List   modelsListCmd   `cmd:"" help:"@models_list"`
	Show   modelsShowCmd   `cmd:"" help:"@models_show"`
	Update modelsUpdateCmd `cmd:"" help:"@models_update"`
}

type modelsListCmd struct {
	Provider string `placeholder:"NAME" help:"Only the models of this provider."`
	File     string `placeholder:"FILE" help:"@models_list_file"`
	JSON     bool   `name:"json" help:"Print a JSON list with sources and dates."`
}

// Run lists the models. An unknown value is a question mark.
func (c *modelsListCmd) Run(sys *cli.System) error {
	all, err := assemble.Catalogue(sys, "--file", c.File)
	if err != nil {
		return err
	}
	models := all.Models(c.Provider)
	if known := provider.Names(); c.Provider != "" && len(models) == 0 && !slices.Contains(known, c.Provider) {
		return cli.Usage("there are: "+strings.Join(known, ", "), "--provider: no provider is named %q", c.Provider)
	}
	if len(models) == 0 && !c.JSON {
		fmt.Fprintln(sys.Err, "the catalogue has no model of this provider; each of its models works with --model "+
			c.Provider+":NAME")
		return nil
	}

	const head = "MODEL|CALLS|PARALLEL|SEES|REASONS|WINDOW|OUTPUT|$/M IN|CACHED|$/M OUT|ENDS|READ"
	return cli.List(sys.Out, c.JSON, models, head, func(m catalog.Model) []any {
		in, cached, out := prices(m.Price)
		return []any{
			cli.Visible(m.Name()),
			yesNo(m.Calling),
			yesNo(m.Parallel),
			yesNo(m.Vision),
			yesNo(m.Reasoning),
			tokens(m.Window),
			tokens(m.MaxOutput),
			in,
			cached,
			out,
			cmp.Or(m.Ends, "-"),
			m.Date,
		}
	})
}

// prices returns the cells of a price, which may be nil. A plus means that long requests cost more.
func prices(p *catalog.Price) (in, cached, out string) {
	if p == nil {
		return "?", "?", "?"
	}
	in = figured(&p.Input)
	cached = figured(p.Cached)
	out = figured(&p.Output)
	if p.Long != nil {
		in += "+"
		out += "+"
	}
	return in, cached, out
}

func yesNo(v *bool) string {
	switch {
	case v == nil:
		return "?"
	case *v:
		return "yes"
	}
	return "no"
}

func tokens(n int) string {
	if n == 0 {
		return "?"
	}
	return strconv.Itoa(n)
}

func figured(v *float64) string {
	if v == nil {
		return "?"
	}
	return strconv.FormatFloat(*v, 'f', -1, 64)
}

type modelsShowCmd struct {
	Name string `arg:"" name:"PROVIDER:NAME" help:"The model, as --model takes it."`
	File string `placeholder:"FILE" help:"A catalogue in place of the built-in one."`
}

// Run prints a line for each known value, and one for each assumption.
func (c *modelsShowCmd) Run(sys *cli.System) error {
	all, err := assemble.Catalogue(sys, "--file", c.File)
	if err != nil {
		return err
	}
	if _, err := provider.Open(c.Name, &provider.Options{Catalog: all}); err != nil {
		return cli.Fail(cli.StatusUsage, err, "")
	}

	m, assumed := all.Lookup(c.Name)
	fields := [][2]string{
		{"model", m.Name()},
		{"calls tools", yesNo(m.Calling)},
		{"several at once", yesNo(m.Parallel)},
		{"sees images", yesNo(m.Vision)},
		{"reasons", yesNo(m.Reasoning)},
		{"reasoning is set by", string(m.Thinking)},
		{"efforts", strings.Join(m.Efforts, ", ")},
		{"schema of a reply", yesNo(m.Schema)},
		{"instructions between", yesNo(m.Instructs)},
		{"window", tokens(m.Window)},
		{"longest reply", tokens(m.MaxOutput)},
	}
	if p := m.Price; p == nil {
		fields = append(fields, [2]string{"$ per million", "not known"})
	} else {
		fields = append(fields, [2]string{"$ per million", priceLine(p)})
		if l := p.Long; l != nil {
			fields = append(fields, [2]string{fmt.Sprintf("above %d in", l.Above), priceLine(&l.Price)})
		}
	}

	fields = append(fields,
		[2]string{"ends on", m.Ends},
		[2]string{"successor", m.Successor},
		[2]string{"note", m.Note},
		[2]string{"read", strings.TrimSpace(m.Date + " " + m.Source)},
	)
	for _, a := range assumed {
		fields = append(fields, [2]string{"assumed", a})
	}

	// A value that is not known has no line.
	for i, f := range fields {
		fields[i][1] = cli.Visible(strings.TrimPrefix(f[1], "?"))
	}
	return cli.Fields(sys.Out, fields)
}

func priceLine(p *catalog.Price) string {
	line := figured(&p.Input) + " in, " + figured(&p.Output) + " out"
	if p.Cached != nil {
		line += ", " + figured(p.Cached) + " cached"
	}
	if p.Write != nil {
		line += ", " + figured(p.Write) + " written to the cache"
	}
	return line
}
