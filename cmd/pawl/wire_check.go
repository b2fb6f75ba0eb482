package main

import (
	"encoding/json"
	"io"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider"
)

type wireCheckCmd struct {
	API string `required:"" name:"api" enum:"${apis}" placeholder:"API" help:"@wire_check_api"`
}

// Run prints the faults of a history, and the repaired history.
func (c *wireCheckCmd) Run(sys *cli.System) error {
	in, err := io.ReadAll(sys.In)
	if err != nil {
		return cli.Usage("", "the messages could not be read from standard input: %v", err)
	}
	var from pawl.Result
	if err := cli.Decode(in, &from.Messages); err != nil {
		if cli.Decode(in, &from) != nil || from.Messages == nil {
			return cli.Usage(`a list like [{"role":"user","parts":[{"type":"text","text":"…"}]}], or what --save wrote`, "the messages on standard input: %s", cli.JSONFault(in, err))
		}
	}
	api, _ := provider.FindAPI(c.API) // the enum of the flag has only known names
	faults := api.Rules.Check(from.Messages)
	repaired, repairs := api.Rules.Repair(from.Messages)
	e := json.NewEncoder(sys.Out)
	e.SetEscapeHTML(false)
	return e.Encode(struct {
		Faults   []llm.HistoryFault `json:"faults"`
		Mends    []llm.Repaired     `json:"mends"`
		Messages []llm.Message      `json:"messages"`
	}{append([]llm.HistoryFault{}, faults...), append([]llm.Repaired{}, repairs...),
		append([]llm.Message{}, repaired...)})
}
