package openai

// tools.go: the tools of a request, in the forms of both APIs, and calls of them.
//
// A model gets functions alone. A tool of a namespace is a function with the namespace in its name,
// and a custom tool, whose input is text, is a function with the one argument input. The client
// sees calls in the form in which it sent the tool. Tools that OpenAI's servers execute are
// skipped.

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/pawl-go/pawl/server/internal/runs"
)

// toolRequest is a tool of a request. Chat Completions has its members in function or custom.
type toolRequest struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Format      textFormat      `json:"format"`
	Tools       []toolRequest   `json:"tools"` // of a namespace
	Function    *toolRequest    `json:"function"`
	Custom      *toolRequest    `json:"custom"`
}

// textFormat is the format of the input of a custom tool. Chat Completions has a grammar in an
// object.
type textFormat struct {
	Syntax     string      `json:"syntax"`
	Definition string      `json:"definition"`
	Grammar    *textFormat `json:"grammar"`
}

// textInput is the schema of the arguments of a custom tool.
var textInput = json.RawMessage(`{"type":"object","properties":{"input":{"type":"string"}},` +
	`"required":["input"],"additionalProperties":false}`)

// toolIndex finds the tools of a request, so that thousands of them cost no more each than one.
type toolIndex struct {
	named   map[string]int    // by the name for the model; the place in Extras.Tools
	known   map[knownTool]int // by the client's name; of equal ones the first
	skipped map[string]bool   // types of tools that are not offered
}

// knownTool is a tool as the client names it.
type knownTool struct{ namespace, name string }

// add adds tools of a namespace to what the client brings; "" means none.
func (x *toolIndex) add(to *runs.Extras, namespace string, tools []toolRequest) error {
	for _, t := range tools {
		switch {
		case t.Type == "namespace" && namespace == "":
			if err := x.add(to, t.Name, t.Tools); err != nil {
				return err
			}
		case t.Type == "function" || t.Type == "custom":
			x.addTool(to, t.clientTool(namespace))
		case t.Type == "":
			return runs.BadRequest("a tool has no type", "function, custom and namespace")
		default:
			x.skip(to, t.Type)
		}
	}
	return nil
}

// addTool adds a tool. A tool of a namespace gets another name if a tool before it, or one without
// a namespace, has that name. Equal requests have equal names.
func (x *toolIndex) addTool(to *runs.Extras, t runs.ClientTool) {
	if x.named == nil {
		x.named = map[string]int{}
		x.known = map[knownTool]int{}
	}
	at := len(to.Tools)
	to.Tools = append(to.Tools, t)

	before, taken := x.named[t.Name]
	switch {
	case taken && t.Namespace != "":
		x.rename(to.Tools, at)
	case taken && to.Tools[before].Namespace != "":
		x.rename(to.Tools, before)
		x.named[t.Name] = at
	default:
		x.named[t.Name] = at
	}

	known := knownTool{t.Namespace, t.Known}
	if _, again := x.known[known]; !again {
		x.known[known] = at
	}
}

// rename gives a tool of a namespace a name that no tool has, if there is one.
func (x *toolIndex) rename(tools []runs.ClientTool, at int) {
	t := &tools[at]
	for taken := true; taken; {
		name := distinctName(t.Name, t.Namespace, t.Known)
		if name == t.Name {
			return // a cut name has the hash already
		}
		t.Name = name
		_, taken = x.named[name]
	}
	x.named[t.Name] = at
}

// skip notes a type of tools that are not offered.
func (x *toolIndex) skip(to *runs.Extras, kind string) {
	if x.skipped == nil {
		x.skipped = map[string]bool{}
	}
	if !x.skipped[kind] {
		x.skipped[kind] = true
		to.Skipped = append(to.Skipped, kind)
	}
}

// clientTool converts a function or a custom tool of a namespace; "" means none.
func (t *toolRequest) clientTool(namespace string) runs.ClientTool {
	of := t
	switch {
	case t.Type == "function" && t.Function != nil:
		of = t.Function
	case t.Type == "custom" && t.Custom != nil:
		of = t.Custom
	}

	out := runs.ClientTool{Name: of.Name, Description: of.Description, Parameters: of.Parameters}
	if t.Type == "custom" {
		out.Freeform = true
		out.Parameters = textInput
		out.Description += of.Format.describe()
	}
	if namespace != "" {
		out.Namespace = namespace
		out.Known = of.Name
		out.Name = flatName(namespace, of.Name)
	}
	return out
}

// describe returns what a description says about a grammar, which the model is not held to.
func (f *textFormat) describe() string {
	if f.Grammar != nil {
		f = f.Grammar
	}
	if f.Definition == "" {
		return ""
	}
	return "\n\nThe input must match this " + f.Syntax + " grammar:\n" + f.Definition
}

// longestName is the length of the name of a tool that every provider takes.
const longestName = 64

// flatName returns the name of a tool of a namespace. It is cut if it is too long.
func flatName(namespace, name string) string {
	gap := "__"
	if strings.HasSuffix(namespace, "_") || strings.HasPrefix(name, "_") {
		gap = ""
	}
	flat := namespace + gap + name
	if len(flat) > longestName {
		return distinctName(flat, namespace, name)
	}
	return flat
}

// distinctName returns name with a hash of the namespace and of the name in it.
func distinctName(name, namespace, known string) string {
	const hashLength = 8
	sum := sha256.Sum256([]byte(namespace + "\x00" + known))
	hash := "_" + hex.EncodeToString(sum[:])[:hashLength]
	return name[:min(len(name), longestName-len(hash))] + hash
}

// nameOf returns the name for the model of a tool that the client knows by a name in a namespace.
func (x *toolIndex) nameOf(tools []runs.ClientTool, namespace, known string) string {
	if namespace == "" {
		return known
	}
	if at, ok := x.known[knownTool{namespace, known}]; ok {
		return tools[at].Name
	}
	return flatName(namespace, known) // of an earlier request
}

// textArgs returns the input of a custom tool as arguments.
func textArgs(input string) json.RawMessage {
	b, _ := json.Marshal(map[string]string{"input": input}) // text always marshals
	return b
}
