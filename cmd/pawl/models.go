package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/provider/catalog"
)

// modelsCmd is about the models that the catalogue knows.
type modelsCmd struct {
	List modelsListCmd `cmd:"" help:"List what is known of models. One that is not in the list works as well."`
}

type modelsListCmd struct {
	Provider string `placeholder:"NAME" help:"Only the models of this provider."`
	File     string `placeholder:"FILE" help:"A catalogue of your own in place of the one inside: JSON, in the form that --json prints."`
	JSON     bool   `name:"json" help:"Print a JSON list with sources and dates."`
}

// Run lists the models. What is not known is a question mark.
func (c *modelsListCmd) Run(sys *system) error {
	all := catalog.Default()
	if c.File != "" {
		b, err := os.ReadFile(c.File)
		if err != nil {
			return usage("", "--file: %s", plain(err))
		}
		if all, err = catalog.Parse(b); err != nil {
			return usage("pawl models list --json prints one that is right", "--file %s: %v", c.File, err)
		}
	}
	models := all.Models(c.Provider)
	if known := provider.Names(); c.Provider != "" && len(models) == 0 && !slices.Contains(known, c.Provider) {
		return usage("there are: "+strings.Join(known, ", "), "--provider: no provider is named %q", c.Provider)
	}
	if c.JSON {
		return printJSON(sys.out, models)
	}
	if len(models) == 0 {
		fmt.Fprintln(sys.err, "the catalogue has no model of this provider; each of its models works, as --model "+c.Provider+":NAME")
		return nil
	}
	w := tabwriter.NewWriter(sys.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MODEL\tCALLS\tPARALLEL\tSEES\tREASONS\tWINDOW\tOUTPUT\t$/M IN\t$/M OUT\tREAD")
	for _, m := range models {
		in, out := "?", "?"
		if p := m.Price; p != nil {
			in, out = strconv.FormatFloat(p.Input, 'f', -1, 64), strconv.FormatFloat(p.Output, 'f', -1, 64)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", visible(m.Name()), yesNo(m.Calling), yesNo(m.Parallel), yesNo(m.Vision), yesNo(m.Reasoning),
			tokens(m.Window), tokens(m.MaxOutput), in, out, m.Date)
	}
	return w.Flush()
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
