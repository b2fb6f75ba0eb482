package main

import (
	"fmt"
	"runtime/debug"

	"github.com/pawl-go/pawl/sandbox"
)

// doctorCmd says what is there of what pawl could use.
type doctorCmd struct {
	JSON bool `name:"json" help:"Print a JSON object."`
}

// diagnosis is what doctor --json prints.
type diagnosis struct {
	Version string          `json:"version"`
	Sandbox *sandbox.Report `json:"sandbox"`
	Env     []setting       `json:"environment"`
}

// setting is a variable that providers and tools look at. Its value is not shown: it may be a key.
type setting struct {
	Name string `json:"name"`
	For  string `json:"for"`
	Set  bool   `json:"set"`
}

var settings = []setting{
	{Name: "OPENAI_API_KEY", For: "models openai:… and openai-chat:…"},
	{Name: "OPENAI_BASE_URL", For: "an address of another server for them"},
	{Name: "ANTHROPIC_API_KEY", For: "models anthropic:…"},
	{Name: "GEMINI_API_KEY", For: "models gemini:…"},
	{Name: "BRAVE_API_KEY", For: "--tools search"},
	{Name: "TAVILY_API_KEY", For: "--tools search"},
	{Name: "SEARXNG_URL", For: "--tools search"},
	{Name: "HTTPS_PROXY", For: "requests to providers and pages"},
}

// Run looks, and changes nothing. What is missing is told and is no failure.
func (c *doctorCmd) Run(sys *system) error {
	d := diagnosis{Version: version(debug.ReadBuildInfo()), Sandbox: sandbox.Probe()}
	for _, s := range settings {
		s.Set = sys.env(s.Name) != ""
		d.Env = append(d.Env, s)
	}
	if c.JSON {
		return printJSON(sys.out, d)
	}
	fmt.Fprintf(sys.out, "%s\n\nsandbox\n", d.Version)
	fmt.Fprintf(sys.out, "  %s\n", d.Sandbox.System)
	for _, f := range d.Sandbox.Facts {
		fmt.Fprintf(sys.out, "  %s: %s\n", f.Name, f.Value)
	}
	for _, p := range d.Sandbox.Levels {
		if p.OK {
			fmt.Fprintf(sys.out, "  ✓ %s: %s\n", p.Level, p.Gives)
		} else {
			fmt.Fprintf(sys.out, "  ✗ %s cannot be enforced: %s\n", p.Level, p.Reason)
		}
	}
	fmt.Fprintf(sys.out, "\nenvironment\n")
	for _, s := range d.Env {
		mark := "–"
		if s.Set {
			mark = "✓"
		}
		fmt.Fprintf(sys.out, "  %s %s: %s\n", mark, s.Name, s.For)
	}
	return nil
}
