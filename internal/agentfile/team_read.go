package agentfile

// team_read.go: links the agents of a file to the agents that work for them.

import (
	"cmp"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-go/pawl/internal/nearest"
)

// workerFile reads the agent of another file, in the same folder or below. A file that is being
// read already is an error.
func (r *reading) workerFile(file, name, path string) *Agent {
	if filepath.IsAbs(file) || outward(file) {
		r.placed(CodeBadFile, path, "a file in the same folder or below",
			"%s leads out of the folder of this file", cut(file))
		return nil
	}
	full := filepath.Join(r.dir, filepath.FromSlash(file))
	if slices.Contains(r.chain, full) || full == filepath.Clean(r.file) || len(r.chain) > mostNested {
		r.placed(CodeBadFile, path, "an agent cannot be its own worker",
			"%s is read already, or managers are nested too deep", cut(file))
		return nil
	}
	text, err := readBounded(full)
	if err != nil {
		r.placed(CodeBadFile, path, "", "%s: %s", file, cause(err))
		return nil
	}

	inner := newReading(full, &LoadOptions{Getenv: r.env})
	inner.chain = append(slices.Clip(r.chain), filepath.Clean(r.file))
	f := inner.parsed(text)
	for _, one := range inner.findings {
		if len(r.findings) < mostFindings {
			r.findings = append(r.findings, one)
		}
	}
	if len(f.Agents) == 0 { // its findings say why
		return nil
	}

	a, err := f.Agent(name)
	if err != nil {
		one := FindingsOf(err)[0]
		r.placed(one.Code, path, one.Hint, "%s: %s", file, one.Message)
		return nil
	}
	return a
}

// teams links the workers that agents of a file name, and reports unknown workers and cycles.
func (r *reading) teams(f *File) {
	for _, a := range f.Agents {
		if a.isAlone() || a.linked {
			continue
		}
		r.places = a.at
		if a.Team != nil && a.Handoffs != nil {
			r.placed(CodeConflict, handoffs, "remove one of the two", "an agent leads a team, or hands over")
			continue
		}
		r.link(f, a)
		if a.Team != nil {
			r.teamNames(a.Team)
		}
	}

	for _, a := range f.Agents {
		if a.leads(a, 0) {
			r.places = a.at
			r.unlink(a)
		}
	}
}

// isAlone reports whether a leads no team and hands over to no other agent.
func (a *Agent) isAlone() bool { return a.Team == nil && a.Handoffs == nil }

// link finds the agents that work for a.
func (r *reading) link(f *File, a *Agent) {
	t := a.group()
	seen := map[string]bool{}
	for i := range t.Workers {
		w := &t.Workers[i]
		path := index(t.path(), i)
		if w.File != "" {
			w.of = r.workerFile(w.File, w.Name, path+".file")
		} else {
			w.of = r.workerHere(f, a, w.Name, path)
		}
		if w.of == nil {
			continue
		}

		w.of.leaders = append(w.of.leaders, a)
		w.Name = w.of.Name
		if seen[w.Name] {
			r.placed(CodeDuplicateName, path, "remove one of them", "two workers are named %s", w.Name)
		}
		seen[w.Name] = true
	}
}

// unlink reports that a leads back to itself, and takes its workers from it, so that what follows
// the workers comes to an end.
func (r *reading) unlink(a *Agent) {
	t := a.group()
	hint := "an agent cannot be its own worker, or the worker of its workers"
	if t.Manager == handoffs {
		hint = "list all agents in the handoffs of the first: each of them can hand over to the others, and back"
	}
	r.placed(CodeConflict, t.path(), hint, "%s is its own worker, or managers are nested too deep", a.Name)
	for i := range t.Workers {
		t.Workers[i].of = nil
	}
}

// workerHere returns the agent of the same file with this name, or reports that there is none.
func (r *reading) workerHere(f *File, lead *Agent, name, path string) *Agent {
	var others []string
	for _, b := range f.Agents {
		if b.Name == name {
			return b
		}
		if b != lead && b.Name != "" {
			others = append(others, b.Name)
		}
	}
	if name != "" {
		r.placed(CodeUnknownWorker, path, nearest.Hint(name, others), "no agent of this file is named %q", cut(name))
	}
	return nil
}

// teamNames reports unknown names of workers, and keys that the manager of a team does not use.
func (r *reading) teamNames(t *Team) {
	var all []string
	for _, w := range t.Workers {
		if w.Name != "" && !slices.Contains(all, w.Name) {
			all = append(all, w.Name)
		}
	}
	check := func(name, path string) {
		if name != "" && !slices.Contains(all, name) {
			r.placed(CodeUnknownWorker, path, nearest.Hint(name, all), "no worker is named %q", cut(name))
		}
	}
	for i, rule := range t.Rules {
		check(rule.Worker, index("team.rules", i)+".worker")
	}
	check(t.Default, "team.default")

	if len(t.Workers) == 0 {
		r.placed(CodeMissingKey, "team", "workers: [NAME]", "a team has workers")
	}
	r.unusedKeys(t)
}

// unusedKeys reports keys that the manager of a team does not use.
func (r *reading) unusedKeys(t *Team) {
	for _, k := range []struct {
		key      string
		stated   bool
		managers []string // that use the key; strategic is the default
	}{
		{"rules", t.Rules != nil, []string{"router"}},
		{"default", t.Default != "", []string{"router"}},
		{"on_failure", t.OnFailure != "", []string{"strategic", "script"}},
		{"tries", t.Tries != nil, []string{"strategic", "script"}},
		{"max_phases", t.MaxPhases != nil, []string{"strategic"}},
		{"prompt", t.Prompt != "", []string{"strategic", "router", "script"}},
	} {
		manager := cmp.Or(t.Manager, "strategic")
		if k.stated && !slices.Contains(k.managers, manager) {
			r.placed(CodeConflict, "team."+k.key, "manager: "+strings.Join(k.managers, " or "),
				"%s has no meaning for the manager %s", k.key, manager)
		}
	}

	triesAgain := t.OnFailure != "" && t.OnFailure != "stop"
	if t.Tries != nil && !triesAgain && t.Rules == nil {
		r.placed(CodeConflict, "team.tries", "on_failure: retry", "tries counts only with retry and replan")
	}
}

// outward reports whether a path of a worker leads out of the folder.
func outward(path string) bool {
	return slices.Contains(strings.Split(strings.ReplaceAll(path, `\`, "/"), "/"), "..")
}

func (w *Worker) wanted() string {
	return "the name of an agent, or an object with agent, file, description and tools"
}

func (*Worker) schema() object {
	one := schemaOfStruct(reflect.TypeFor[Worker]())
	one["anyOf"] = []object{{"required": []string{"agent"}}, {"required": []string{"file"}}}
	return object{"anyOf": []object{{"type": "string"}, one}}
}

func (w *Worker) read(r *reading, n *yaml.Node, path string) {
	r.wordOr(n, &w.Name, w, path)
	if n.Kind == yaml.MappingNode && w.Name == "" && w.File == "" {
		r.report(CodeMissingKey, n, path, "agent: NAME", "a worker has a name, a file or both")
	}
}
