package doctor

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/sandbox"
)

// Cmd examines what pawl can use on this machine, and reports faults.
type Cmd struct {
	Files  []string `arg:"" optional:"" name:"FILE.yaml" help:"@doctor_files"`
	Online bool     `help:"@doctor_online"`
	DB     string   `name:"db" placeholder:"FILE" help:"@doctor_db"`
	JSON   bool     `name:"json" help:"Print a JSON object."`
}

// How a check ended.
const (
	checkOK   = "ok"
	checkWarn = "warn" // something useful is missing
	checkFail = "fail" // something is wrong, and will not work
)

// finding is what a check found, as --json prints it.
type finding struct {
	Area   string `json:"area"`
	Status string `json:"status"`
	Text   string `json:"text"`
	Next   string `json:"next,omitempty"` // what to do about it
}

// diagnosis is what doctor --json prints.
type diagnosis struct {
	Version string          `json:"version"`
	OK      bool            `json:"ok"` // nothing failed
	Checks  []finding       `json:"checks"`
	Sandbox *sandbox.Report `json:"sandbox"`
	Env     []setting       `json:"environment"`
}

// examination collects findings about this machine, in order.
type examination struct {
	sys    *cli.System
	python string // where the code tool looks for it
	online bool
	area   string
	found  []finding
}

// in starts an area.
func (x *examination) in(area string) { x.area = area }

func (x *examination) say(status, next, format string, args ...any) {
	x.found = append(x.found, finding{x.area, status, fmt.Sprintf(format, args...), next})
}

func (x *examination) ok(format string, args ...any) { x.say(checkOK, "", format, args...) }

// Run examines the machine and changes nothing.
func (c *Cmd) Run(sys *cli.System) error {
	d := diagnosis{Version: cli.Version(debug.ReadBuildInfo()), Sandbox: sandbox.Probe(), OK: true}
	x := &examination{sys: sys, python: "/usr/bin/python3", online: c.Online}
	ctx := context.Background()
	x.machine(d.Version)
	x.sandbox(d.Sandbox)
	d.Env = x.keys()
	x.endpoints(ctx)
	x.database(c.DB)
	x.temporal(ctx)
	x.files(ctx, c.Files)
	d.Checks = x.found
	for _, f := range d.Checks {
		d.OK = d.OK && f.Status != checkFail
	}
	var err error
	if c.JSON {
		err = cli.PrintJSON(sys.Out, d)
	} else {
		d.print(sys)
	}
	if err == nil && !d.OK {
		err = cli.Silent(cli.StatusFailed)
	}
	return err
}

// print writes the findings for a person, area by area.
func (d *diagnosis) print(sys *cli.System) {
	s := sys.Colours(sys.OutTerm)
	colour := map[string]func(string) string{checkOK: s.Green, checkWarn: s.Yellow, checkFail: s.Red}
	area := ""
	counts := map[string]int{}
	for _, f := range d.Checks {
		if f.Area != area {
			area = f.Area
			fmt.Fprintf(sys.Out, "%s\n", s.Bold(area))
		}
		counts[f.Status]++
		fmt.Fprintf(sys.Out, "  %s %s\n", colour[f.Status](fmt.Sprintf("%-4s", f.Status)),
			indentedBy(cli.Visible(f.Text), "       "))
		if f.Next != "" {
			fmt.Fprintf(sys.Out, "       %s %s\n", s.Dim("→"), cli.Visible(f.Next))
		}
	}
	fmt.Fprintf(sys.Out, "\n%d ok, %s, %d failed\n", counts[checkOK], cli.Count(counts[checkWarn], "warning"),
		counts[checkFail])
}

// indentedBy indents all lines after the first.
func indentedBy(s, margin string) string {
	return strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n"+margin)
}
