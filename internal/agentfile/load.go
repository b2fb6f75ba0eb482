package agentfile

import (
	"embed"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-go/pawl/internal/agentfile/agentframework"
	"github.com/pawl-go/pawl/internal/nearest"
)

// File is the result of reading a file: an agent for each of its documents.
type File struct {
	// Name is the name of the file as it was given to Load or Parse.
	Name string

	// Agents are the agents of the documents that are not empty, in their order.
	Agents []*Agent
}

// LoadOptions configure Load, Parse and ReadDocument. Nil means the defaults.
type LoadOptions struct {
	// Getenv returns the value of a variable, or "". Nil means os.Getenv.
	Getenv func(string) string

	// Dir is the base of relative names, for Parse and ReadDocument. Empty means the directory of
	// the file's name.
	Dir string
}

// Load reads a file. The error is Findings, with all faults that were found. The File is returned
// in any case, with the parts that could be read.
func Load(name string, o *LoadOptions) (*File, error) {
	text, err := readBounded(name)
	if err != nil {
		f := &Finding{Code: CodeUnreadable, File: name, Message: cause(err)}
		if errors.Is(err, fs.ErrNotExist) {
			f.Hint = "pawl init writes a first file"
		}
		return &File{Name: name}, Findings{f}
	}
	return Parse(name, text, o)
}

// readBounded reads a file up to one byte over its maximum, which is then reported.
func readBounded(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, errors.New("it is a directory")
	}
	return io.ReadAll(io.LimitReader(f, mostBytes+1))
}

// Parse reads the text of a file; name is what findings call it.
func Parse(name string, text []byte, o *LoadOptions) (*File, error) {
	r := newReading(name, o)
	file := r.parsed(text)
	return file, r.err()
}

// newReading returns the state of reading the file of this name.
func newReading(file string, o *LoadOptions) *reading {
	r := &reading{
		file:     file,
		dir:      filepath.Dir(file),
		env:      os.Getenv,
		expanded: map[*yaml.Node]*expanded{},
		places:   places{},
	}
	if o == nil {
		return r
	}
	if o.Getenv != nil {
		r.env = o.Getenv
	}
	if o.Dir != "" {
		r.dir = o.Dir
	}
	return r
}

// err returns all findings in the order of their lines, or nil.
func (r *reading) err() error {
	slices.SortStableFunc(r.findings, func(a, b *Finding) int { return a.Line - b.Line })
	return r.findings.err()
}

// parsed reads the documents of a file.
func (r *reading) parsed(text []byte) *File {
	file := &File{Name: r.file}
	roots := r.documents(text)
	if len(roots) == 0 && len(r.findings) == 0 {
		r.empty("the file has no agent", "to write a first agent: pawl init")
	}
	for _, root := range roots {
		a := r.agent(root)
		if a.Name != "" && slices.ContainsFunc(file.Agents, func(b *Agent) bool { return b.Name == a.Name }) {
			r.placed(CodeDuplicateName, "agent", "rename one of them", "two agents are named %s", a.Name)
		}
		file.Agents = append(file.Agents, a)
	}
	r.teams(file)
	return file
}

// agentName is what an agent may be called.
var agentName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}(@[A-Za-z0-9_.-]{1,32})?$`)

// agent reads one document.
func (r *reading) agent(root *yaml.Node) *Agent {
	a := &Agent{file: r.file, dir: r.dir}
	r.places = places{"": {root.Line, root.Column}}
	r.secrets = nil
	r.declared = declared(real(root))
	before := len(r.findings)
	if agentframework.Is(root) {
		r.framework(root, a)
	} else {
		r.object(real(root), reflect.ValueOf(a).Elem(), "")
	}
	if a.Name != "" && !agentName.MatchString(a.Name) {
		r.placed(CodeBadValue, "agent",
			"letters, digits, _, - and ., 64 at most, and a version after @: clerk@2",
			"%q is no name of an agent", cut(a.Name))
	}

	for i, name := range a.Variables {
		if !variableName(name) {
			r.placed(CodeBadVariable, index("variables", i), "the name of an environment variable, without ${ }",
				"%q is no name of a variable", cut(name))
		}
	}

	// Servers that could not be read would be reported twice.
	if len(r.findings) == before {
		for _, f := range a.wrongServers() {
			r.placed(f.Code, f.Path, f.Hint, "%s", f.Message)
		}
	}

	for path := range r.places {
		if strings.HasPrefix(path, "!") { // a mark of wrong
			delete(r.places, path)
		}
	}
	a.at = r.places
	a.secrets = r.secrets
	for _, f := range r.findings[before:] {
		if f.Warning() {
			a.warnings = append(a.warnings, f)
		}
	}
	return a
}

// placed adds a finding at a path that was read.
func (r *reading) placed(code Code, path, hint, format string, args ...any) {
	f := finding(code, path, hint, format, args...)
	at, _ := r.places.lookup(path)
	f.Line = at.line
	f.Column = at.column
	r.found(f)
}

// Agent returns the agent of this name. An empty name means the only agent, or the only agent that
// is no worker of another in the file. The error is a *Finding.
func (f *File) Agent(name string) (*Agent, error) {
	if name == "" {
		if leads := f.leads(); len(leads) == 1 {
			return leads[0], nil
		}
	}

	var all []string
	for _, a := range f.Agents {
		if a.Name == name {
			return a, nil
		}
		all = append(all, a.Name)
	}
	if name == "" {
		return nil, &Finding{
			Code:    CodeConflict,
			File:    f.Name,
			Message: "there are several agents in it",
			Hint:    "say which: " + strings.Join(all, ", "),
		}
	}
	return nil, &Finding{
		Code:    CodeUnknownWorker,
		File:    f.Name,
		Message: "no agent is named " + name,
		Hint:    nearest.Hint(name, all),
	}
}

// leads returns the agents that are no workers.
func (f *File) leads() (out []*Agent) {
	working := map[*Agent]bool{}
	for _, a := range f.Agents {
		for _, w := range a.group().Workers {
			working[w.of] = true
		}
	}
	for _, a := range f.Agents {
		if !working[a] {
			out = append(out, a)
		}
	}
	return out
}

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
				r.report(Code(code), n, path, hint, "%s", message)
				return
			}
			r.placed(Code(code), path, hint, "%s", message)
		},
		Place: func(path string) (line, column int) {
			at, _ := r.places.lookup(path)
			return at.line, at.column
		},
	})

	if native.Agent != nil {
		r.object(native.Agent, reflect.ValueOf(a).Elem(), "")
	}
	if native.Model != nil {
		a.Model = Models{{Name: native.ModelName, made: native.Model}}
	}

	// In this form workers are always in files, so there is nothing to link in this one.
	a.linked = true
	for _, w := range native.Workers {
		of := r.workerFile(w.File, "", w.Path)
		if a.Team != nil && w.Index >= 0 && w.Index < len(a.Team.Workers) {
			a.Team.Workers[w.Index].of = of
		}
	}
}

// Templates has a commented file of each kind, templates/KIND.yaml, as pawl init writes it.
//
//go:embed templates
var Templates embed.FS
