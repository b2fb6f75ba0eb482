package react

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"

	"github.com/pawl-go/pawl/llm"
)

//go:embed prompt/*.md
var pages embed.FS

// PromptData is what Options.Prompt is a template over.
type PromptData struct {
	Tools    []ToolData // in the order of the request
	Schema   string     // JSON Schema of a decision; of use with format JSON
	Parallel bool       // several calls in one decision are allowed
	Output   string     // JSON Schema that the answer must fit; empty means any text
}

// ToolData is what a prompt may say of a tool.
type ToolData struct {
	// Name is the name by which the tool is called.
	Name string
	// Description says what the tool does, without space around it. It may be empty.
	Description string
	// Schema is the JSON Schema of the arguments, compact.
	Schema string
}

// page makes the prompts.
type page struct {
	text     *template.Template
	parallel bool
	retryMD  string
	finalMD  string
}

func newPage(o *Options) (page, error) {
	p := page{parallel: o.Parallel, retryMD: mustPage("retry"), finalMD: mustPage("final")}
	text := o.Prompt
	if text == "" {
		name := string(o.Format)
		// A form of the program's own has its own schema, so that the prompt must not describe
		// ours.
		if o.Decision != nil {
			name = "form"
		}
		text = mustPage(name) + `{{template "tools" .}}`
	}
	var err error
	p.text = template.Must(template.New("tools").Parse("\n\n" + mustPage("tools")))
	p.text, err = p.text.New("prompt").Parse(text)
	if err != nil {
		return p, fmt.Errorf("react: %w", err)
	}
	return p, nil
}

func mustPage(name string) string {
	b, err := pages.ReadFile("prompt/" + name + ".md")
	if err != nil {
		panic(err) // embedded: a mistake in this package
	}
	return strings.TrimSpace(string(b))
}

// prompt describes the tools and the form of a decision.
func (p *page) prompt(req *llm.Request, schema json.RawMessage) (string, error) {
	data := PromptData{Schema: string(schema), Parallel: p.parallel, Output: string(compact(req.Output))}
	for _, t := range req.Tools {
		in := t.Input
		if len(in) == 0 {
			in = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		data.Tools = append(data.Tools, ToolData{t.Name, strings.TrimSpace(t.Description), string(compact(in))})
	}
	var b strings.Builder
	if err := p.text.Execute(&b, data); err != nil {
		return "", fmt.Errorf("react: prompt: %w", err)
	}
	return strings.TrimSpace(b.String()), nil
}

// retry describes the faults of the model's reply.
func (p *page) retry(faults []string, cut bool) string {
	if cut {
		faults = append(faults[:len(faults):len(faults)], "The reply was cut at the bound of its length. Write less.")
	}
	return strings.Replace(p.retryMD, "FAULTS", "- "+strings.Join(faults, "\n- "), 1)
}

// final asks for the answer alone.
func (p *page) final() string { return p.finalMD }

func compact(b json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Compact(&out, b) != nil {
		return b
	}
	return out.Bytes()
}

// schema is the JSON Schema of a decision.
func (m *Model) schema(req *llm.Request) json.RawMessage {
	if m.opts.Decision != nil {
		return m.opts.Decision.Schema
	}
	var names []byte
	for _, t := range req.Tools {
		b, _ := json.Marshal(t.Name) // a string has a JSON form
		names = append(append(names, b...), ',')
	}

	var b bytes.Buffer
	b.WriteString(`{"type":"object","properties":{"thought":{"type":"string"},`)
	fmt.Fprintf(&b, `"type":{"type":"string","enum":["call_tool","final_answer"]},`+
		`"tool":{"enum":[%snull]},"args":{"type":"object"},`, names)
	// "enum" must have a value, and without tools there is none.
	if m.opts.Parallel && len(names) > 0 {
		fmt.Fprintf(&b, `"calls":{"type":"array","items":{"type":"object","properties":{"tool":{"enum":[%s]},`+
			`"args":{"type":"object"}},"required":["tool","args"]}},`, bytes.TrimSuffix(names, []byte(",")))
	}
	answer := `{"type":["string","null"]}`
	if len(req.Output) > 0 {
		answer = `{}` // a value of any kind; the caller checks whether it fits
	}
	b.WriteString(`"answer":` + answer + `},"required":["thought","type"]}`)
	return b.Bytes()
}
