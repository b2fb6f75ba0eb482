package suite

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/internal/jsonform"
)

// Variant is the agent of a suite, changed.
type Variant struct {
	// Name is the name in reports.
	Name string

	// Digest is the digest of the agent's file with the changes.
	Digest string

	// Models are the names of its models. The first is asked first.
	Models []string

	file   string
	text   []byte
	agent  string // in the file; "" means the only one
	getenv func(string) string
}

// agentRef is the form {file, agent} of the key agent.
type agentRef struct {
	File  string `json:"file"`
	Agent string `json:"agent,omitzero"`
}

// variants reads the agent's file and makes the variants of it.
func (l *loading) variants() {
	var ref agentRef
	f := l.suite.File
	if json.Unmarshal(f.Agent, &ref.File) != nil && jsonform.Read(f.Agent, &ref) != nil {
		l.suite.Report("agent", "agent: FILE.yaml, or agent: {file: FILE.yaml, agent: NAME}", "this is no agent")
		return
	}
	path := within(l.dir, ref.File)
	text, err := os.ReadFile(path)
	if err != nil {
		l.suite.Report("agent", "the file of an agent; pawl init writes one", ref.File+": "+cause(err))
		return
	}

	changes := f.Variants
	switch {
	case f.Matrix != nil && len(changes) > 0:
		l.suite.Report("matrix", "one of them", "variants and matrix both state the variants")
		return
	case f.Matrix != nil:
		changes = l.matrix()
	case len(changes) == 0:
		changes = append(changes, nil)
	}
	for i, keys := range changes {
		v := &Variant{Name: "now", file: path, agent: ref.Agent, getenv: l.getenv}
		at := fmt.Sprintf("variants[%d]", i)
		if f.Matrix != nil {
			at = "matrix"
		}
		if keys != nil && !l.named(v, keys["name"], at) {
			continue
		}
		stated := slices.DeleteFunc(slices.Sorted(maps.Keys(keys)), func(key string) bool { return key == "name" })
		values := map[string]json.RawMessage{}
		for _, key := range stated {
			values[key] = json.RawMessage(keys[key])
		}
		v.text, err = overlaid(text, ref.Agent, values)
		if err != nil {
			l.suite.Report("agent", "", ref.File+": "+err.Error())
			return
		}
		v.Digest = digestOf(v.text)[:16]
		l.checked(v, at)
		l.suite.Variants = append(l.suite.Variants, v)
	}
	l.base()
}

// named reads the name of a variant.
func (l *loading) named(v *Variant, name []byte, at string) bool {
	if json.Unmarshal(name, &v.Name) != nil || !idForm.MatchString(v.Name) {
		l.suite.Report(at, "name: "+idHint, "a variant wants a name")
		return false
	}
	for _, other := range l.suite.Variants {
		if other.Name == v.Name {
			l.suite.Report(at+".name", "rename one of them", "two variants are named "+v.Name)
			return false
		}
	}
	return true
}

// base moves the variant that others are compared with to the front.
func (l *loading) base() {
	name := l.suite.File.Base
	if name == "" {
		return
	}
	i := slices.IndexFunc(l.suite.Variants, func(v *Variant) bool { return v.Name == name })
	if i < 0 {
		l.suite.Report("base", "the name of a variant", "no variant is named "+name)
		return
	}
	first := l.suite.Variants[i]
	l.suite.Variants = slices.Insert(slices.Delete(l.suite.Variants, i, i+1), 0, first)
}

// checked reads the models of a variant, and reports its faults. Faults of its own keys have their
// places in the suite.
func (l *loading) checked(v *Variant, at string) {
	a, err := v.Agent()
	if err == nil {
		for _, m := range a.Model {
			v.Models = append(v.Models, m.Name)
		}
	}
	for _, f := range agentfile.FindingsOf(err) {
		message := filepath.Base(v.file) + ": " + f.Message
		l.suite.Report(joined(at, f.Path), f.Hint, message)
	}
}

// IsScripted reports whether all models of a variant play written turns, which cost nothing.
func (v *Variant) IsScripted() bool {
	asks := func(name string) bool { return !strings.HasPrefix(name, "script:") }
	return len(v.Models) > 0 && !slices.ContainsFunc(v.Models, asks)
}

// Agent reads the agent of the variant. Each caller has its own, which it may change.
func (v *Variant) Agent() (*agentfile.Agent, error) {
	file, err := agentfile.Parse(v.file, v.text, &agentfile.LoadOptions{
		Getenv: v.getenv,
		Dir:    filepath.Dir(v.file),
	})
	if err != nil {
		return nil, err
	}
	return file.Agent(v.agent)
}

// overlaid returns the text of an agent's file in which the keys of one agent have other values.
func overlaid(text []byte, agent string, values map[string]json.RawMessage) ([]byte, error) {
	if len(values) == 0 {
		return text, nil
	}
	var out strings.Builder
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	encoder := yaml.NewEncoder(&out)
	for {
		root := new(yaml.Node)
		err := decoder.Decode(root)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return text, nil // reading the unchanged file reports the fault
		}
		if len(root.Content) == 0 || root.Content[0].Kind != yaml.MappingNode {
			continue
		}
		if agent == "" || nameOf(root.Content[0]) == agent {
			if err := overlay(root.Content[0], values); err != nil {
				return nil, err
			}
		}
		if err := encoder.Encode(root); err != nil {
			return nil, err
		}
	}
	err := encoder.Close()
	return []byte(out.String()), err
}

// nameOf returns the name of the agent of a document.
func nameOf(doc *yaml.Node) string {
	for i := 0; i+1 < len(doc.Content); i += 2 {
		if doc.Content[i].Value == "agent" {
			return doc.Content[i+1].Value
		}
	}
	return ""
}

// overlay sets keys of a document. The values were expanded with the suite, so that a ${ in them
// stands for itself.
func overlay(doc *yaml.Node, values map[string]json.RawMessage) error {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		text := strings.ReplaceAll(string(values[key]), "${", "$${")
		var value yaml.Node
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			return fmt.Errorf("%s: %v", key, err)
		}
		replaced := false
		for i := 0; i+1 < len(doc.Content); i += 2 {
			if doc.Content[i].Value == key {
				doc.Content[i+1] = value.Content[0]
				replaced = true
			}
		}
		if !replaced {
			doc.Content = append(doc.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, value.Content[0])
		}
	}
	return nil
}
