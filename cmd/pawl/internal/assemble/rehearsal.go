package assemble

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/llm"
)

// toolDef is a tool in a file. parameters and input are two names of the same field.
type toolDef struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Parameters  json.RawMessage   `json:"parameters"`
	Input       json.RawMessage   `json:"input"`
	Results     []json.RawMessage `json:"results"`
}

// toolDefs reads the list of tools in a file. results says that the tools may have results. flag is
// the name of the flag, for errors.
func toolDefs(flag, path string, results bool) ([]toolDef, error) {
	hint := `a JSON list of {"name","description","parameters"}`
	if results {
		hint = `a JSON list of {"name","description","parameters","results":[…]}`
	}

	b, err := cli.ReadFile(flag, path)
	if err != nil {
		return nil, err
	}
	source := flag + " " + path
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, cli.Usage(hint, "%s: the file is empty", source)
	}
	var forms []json.RawMessage
	if err := cli.Decode(b, &forms); err != nil {
		return nil, cli.Usage(hint, "%s: %s", source, cli.JSONFault(b, err))
	} else if forms == nil {
		return nil, cli.Usage(hint, "%s: got null, want a list", source)
	}

	defs := make([]toolDef, len(forms))
	for i, form := range forms {
		if err := defs[i].read(form, source, i+1, hint); err != nil {
			return nil, err
		}
		if defs[i].Results != nil && !results {
			return nil, cli.Usage("give tools with results to --rehearse",
				"%s: tool %s has results, but the caller sets the results of such tools", source, defs[i].Name)
		}
	}
	return defs, nil
}

// read reads the definition of a tool, which is the tool of a number in source. A definition may
// call its schema parameters or input.
func (t *toolDef) read(form json.RawMessage, source string, number int, hint string) error {
	if err := cli.Decode(form, t); err != nil {
		return cli.Usage(hint, "%s: tool %d: %s", source, number, cli.JSONFault(form, err))
	}
	twice := cli.Repeated(form)
	switch {
	case twice != "":
		return cli.Usage(hint, "%s: tool %d: %q is a duplicate", source, number, twice)
	case t.Name == "":
		return cli.Usage(hint, "%s: tool %d has no name", source, number)
	case t.Parameters != nil && t.Input != nil:
		return cli.Usage("parameters and input have the same meaning; set one of them",
			"%s: tool %s has both", source, t.Name)
	case t.Input == nil:
		t.Input = t.Parameters
	}
	return nil
}

// definedTools returns the tools in the file of a flag, which tool makes from their definitions. An
// empty path means no tools.
func definedTools(flag, path string, results bool, tool func(toolDef) *pawl.Tool) ([]pawl.Toolset, error) {
	if path == "" {
		return nil, nil
	}
	defs, err := toolDefs(flag, path, results)
	if err != nil {
		return nil, err
	}
	r := new(pawl.Registry)
	for _, d := range defs {
		err := r.Add(tool(d))
		switch {
		case errors.Is(err, pawl.ErrDuplicate):
			return nil, cli.Usage("the names of tools must differ; rename one", "%s %s: two tools are named %q",
				flag, path, d.Name)
		case err != nil:
			return nil, cli.Usage("", "%s %s: %v", flag, path, err)
		}
	}
	return []pawl.Toolset{r}, nil
}

// passive makes a tool that the caller executes.
func passive(d toolDef) *pawl.Tool {
	return &pawl.Tool{Name: d.Name, Description: d.Description, Input: d.Input, Passive: true}
}

// rehearsed makes a tool that returns its recorded results in the order in which the model made the
// calls. Calls of one such tool are therefore serial. A call that the pipeline refuses, for example
// because of bad arguments, uses no result. The position is a value of the run, so that --messages
// continues the rehearsal.
//
// The tool has no effect on the world, so no approval is needed. Its effect is not EffectRead,
// because calls of that effect may start early or be repeated.
func rehearsed(d toolDef) *pawl.Tool {
	r := &rehearsal{def: d}
	return &pawl.Tool{
		Name:        d.Name,
		Description: d.Description,
		Input:       d.Input,
		Effect:      pawl.EffectIdempotent,
		Serial:      func(json.RawMessage) string { return r.key() },
		Run: func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
			n, err := r.position(ctx)
			if err != nil {
				return llm.ToolResult{}, err
			}
			if n >= len(d.Results) {
				return llm.ErrorResult(fmt.Sprintf("The rehearsal has no more results for %s: "+
					"this is call %d, and %d are written.", d.Name, n+1, len(d.Results))), nil
			}
			return recordedResult(d.Results[n])
		},
	}
}

// rehearsal is the state of a tool with recorded results.
type rehearsal struct {
	def toolDef

	mu   sync.Mutex
	used int // results that this process has returned
}

// key is the name of the position among the values of a run.
func (r *rehearsal) key() string { return "rehearsal/" + r.def.Name }

// position returns the index of the next result, and counts it as used.
func (r *rehearsal) position(ctx context.Context) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	inv := pawl.InvocationFrom(ctx)
	before := 0
	if _, err := inv.Get(r.key(), &before); err != nil {
		return 0, err
	}

	// A call does not see the values that other calls of its step have set.
	n := max(r.used, before)
	r.used = n + 1
	return n, inv.Set(r.key(), r.used)
}

// recordedResult returns a result as the model reads it: a JSON string as its text, any other
// value as compact JSON.
func recordedResult(recorded json.RawMessage) (llm.ToolResult, error) {
	var text string
	if recorded[0] == '"' && json.Unmarshal(recorded, &text) == nil {
		return llm.TextResult(text), nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, recorded); err != nil {
		return llm.ToolResult{}, err
	}
	return llm.ToolResult{Parts: []llm.Part{llm.Text{Text: b.String()}}, Data: b.Bytes()}, nil
}
