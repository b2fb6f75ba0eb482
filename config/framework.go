package config

import (
	"reflect"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-go/pawl/config/agentframework"
)

// framework reads a document of agent.framework/v2: package agentframework translates it into the
// native form, which is then read as any other document.
func (r *reading) framework(root *yaml.Node, a *Agent) {
	native := agentframework.Translate(root, &agentframework.Reader{
		Read: func(n *yaml.Node, into any, path string) bool {
			before := len(r.findings)
			r.value(n, reflect.ValueOf(into).Elem(), path, "")
			return len(r.findings) == before
		},
		Report: func(n *yaml.Node, code, path, hint, message string) {
			if n != nil {
				r.at(Code(code), n, path, hint, "%s", message)
				return
			}
			r.placed(Code(code), path, hint, "%s", message)
		},
		Place: func(path string) (line, column int) {
			at, _ := r.places.of(path)
			return at.line, at.column
		},
	})
	if native.Agent != nil {
		r.object(native.Agent, reflect.ValueOf(a).Elem(), "")
	}
	if native.Model != nil {
		a.Model = Models{{Name: native.ModelName, made: native.Model}}
	}
	a.linked = true
	for _, w := range native.Workers {
		of := r.workerFile(w.File, "", w.Path)
		if a.Team != nil && w.Index >= 0 && w.Index < len(a.Team.Workers) {
			a.Team.Workers[w.Index].of = of
		}
	}
}
