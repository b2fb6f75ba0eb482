package runs

import (
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/llm"
)

// StoredRun returns the stored run of a client of OpenAI's API, and the client's additions to its
// agent.
func (c *Caller) StoredRun(run string) (*journal.Export, *Dress, error) {
	x, err := c.S.Engine.Export(c.Ctx(), run)
	if err != nil {
		return nil, nil, err
	}
	d, err := c.S.DressOf(c.Ctx(), Place{c.Client.Scope(), run})
	return x, d, err
}

// Has reports whether the client executes a call. d may be nil.
func (d *Dress) Has(c llm.ToolCall) bool {
	return d != nil && slices.ContainsFunc(d.Tools, func(t ClientTool) bool { return t.Name == c.Name })
}

// start returns the Result and the messages that a run starts with. before is a conversation that
// the server stored, and msgs follow it. Only recorded calls may be executed: open calls of before
// stay open. Open calls of msgs stay open if all are calls of the client's tools, which the run
// returns to the client.
func (d *Dress) start(before, msgs []llm.Message) (*pawl.Result, []llm.Message) {
	all := append(slices.Clip(before), msgs...)
	repaired, _ := llm.Repair(all) // calls get their final IDs
	open := (&pawl.Result{Messages: repaired}).Calls()
	switch {
	case len(open) > 0 && !slices.ContainsFunc(open, func(c llm.ToolCall) bool { return !d.Has(c) }):
		return &pawl.Result{Messages: repaired}, nil
	case len((&pawl.Result{Messages: before}).Calls()) > 0:
		return &pawl.Result{Messages: before}, msgs
	}
	return nil, all
}

// Replies counts the replies of the run itself, without nested agents.
func Replies(x *journal.Export) (n int) {
	for _, r := range x.Replies {
		if strings.Count(string(r.Key), "/") == 2 {
			n++
		}
	}
	return n
}
