package eval

import (
	"fmt"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/eval"
)

type importCmd struct {
	Form  string `arg:"" name:"FORM" help:"@eval_import_form"`
	File  string `arg:"" name:"FILE" help:"@eval_import_file"`
	Out   string `placeholder:"DIR" help:"@eval_import_out"`
	Name  string `placeholder:"NAME" help:"@eval_import_name"`
	Agent string `placeholder:"FILE" help:"@eval_import_agent"`
	Model string `placeholder:"MODEL" help:"@eval_import_model"`
	JSON  bool   `name:"json" help:"@eval_import_json"`
}

// Run makes a suite of the cases of another tool, and says what does not map.
func (c *importCmd) Run(sys *cli.System) error {
	if c.Agent != "" && c.Model != "" {
		return cli.Usage("one of them", "--agent has a model, and --model is for an agent that is written")
	}
	got, err := eval.Import(c.Form, c.File, &eval.ImportOptions{
		Dir:   c.Out,
		Name:  c.Name,
		Agent: c.Agent,
		Model: c.Model,
	})
	if err != nil {
		return cli.Fail(cli.StatusUsage, err, "nothing was written; docs/eval.md has the forms")
	}
	if c.JSON {
		return cli.PrintJSON(sys.Out, got)
	}
	fmt.Fprintf(sys.Out, "%s: taken %d, draft %d, left out %d\n", cli.Visible(got.File), got.Taken, got.Drafts, got.LeftOut)
	for _, r := range got.Reasons {
		fmt.Fprintf(sys.Out, "  %s (%s, the first is %s)\n", cli.Line(r.Text, 200), cli.Count(r.Rows, "row"),
			cli.Line(r.First, 60))
	}
	if got.Taken == 0 {
		sys.Notice("all cases are drafts: finish one and remove its draft before pawl eval run")
	}
	return nil
}
