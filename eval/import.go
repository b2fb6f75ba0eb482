package eval

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-go/pawl/eval/internal/imports"
	"github.com/pawl-go/pawl/eval/internal/suite"
)

// import.go: makes a suite of the cases of another tool.

// ImportForms returns the names of the forms that Import reads, sorted.
func ImportForms() []string { return imports.Forms() }

// ImportOptions configure Import. Nil means the defaults.
type ImportOptions struct {
	// Dir is the folder of the suite. Empty means the present folder.
	Dir string

	// Name is the name of the suite. Empty means the name of the file without its endings.
	Name string

	// Agent is the file of the agent of the suite, which has its own tools. Empty means that an
	// agent is written, whose tools are declared by the cases and answer what the file says.
	Agent string

	// Model is the model of the agent that is written. Empty means demo:minimal, which needs no
	// key.
	Model string
}

// Imported is a suite that was made of the cases of another tool. Rows is the sum of Taken, Drafts
// and LeftOut.
type Imported struct {
	// File is the file of the suite.
	File string `json:"file"`

	// Rows is the number of rows that were read.
	Rows int `json:"rows"`

	// Taken is the number of cases that run and gate.
	Taken int `json:"taken"`

	// Drafts is the number of cases of which a part does not map: they run, and gate nothing.
	Drafts int `json:"drafts"`

	// LeftOut is the number of rows without a case.
	LeftOut int `json:"left_out"`

	// Reasons are what does not map. Nil means that everything does.
	Reasons []ImportReason `json:"reasons,omitzero"`
}

// ImportReason is a part of the form that does not map.
type ImportReason struct {
	// Text says what it is, and what was done.
	Text string `json:"text"`

	// Rows is the number of rows.
	Rows int `json:"rows"`

	// First is the first of them.
	First string `json:"first"`
}

// Import makes a suite of the cases of another tool: bfcl (the Berkeley Function-Calling
// Leaderboard), tau (tau-bench and tau2-bench), adk (eval sets of Google's ADK) and promptfoo. The
// file may be compressed (gzip). The suite is NAME.eval.yaml with NAME.jsonl; files that exist are
// not replaced.
func Import(form, file string, o *ImportOptions) (*Imported, error) {
	if o == nil {
		o = new(ImportOptions)
	}
	text, err := readFile(file)
	if err != nil {
		return nil, err
	}
	read, err := imports.Read(form, text, o.Agent != "")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	base, _, _ := strings.Cut(filepath.Base(file), ".")
	name := cmp.Or(o.Name, suite.IDOf(base))
	out := &Imported{
		File:    filepath.Join(o.Dir, name+".eval.yaml"),
		Rows:    read.Rows,
		Taken:   len(read.Cases) - read.Drafts,
		Drafts:  read.Drafts,
		LeftOut: read.LeftOut,
	}
	for _, r := range read.Reasons {
		out.Reasons = append(out.Reasons, ImportReason{r.Text, r.Rows, r.First})
	}
	if len(read.Cases) == 0 {
		return out, errors.New("no row of the file became a case")
	}
	files, err := importFiles(read, name, o)
	if err != nil {
		return nil, err
	}
	return out, writeNew(o.Dir, files)
}

// readFile reads a file, which may be compressed.
func readFile(name string) ([]byte, error) {
	text, err := os.ReadFile(name)
	if err != nil || !bytes.HasPrefix(text, []byte{0x1f, 0x8b}) {
		return text, err
	}
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return io.ReadAll(z)
}

// importFiles returns the files of an imported suite by their names.
func importFiles(read *imports.Import, name string, o *ImportOptions) (map[string][]byte, error) {
	files := map[string][]byte{}
	agent := name + ".yaml"
	if o.Agent != "" {
		var err error
		agent, err = relative(o.Dir, o.Agent)
		if err != nil {
			return nil, err
		}
	} else {
		// All tools of the agent are fakes, so that all calls may run.
		files[agent] = fmt.Appendf(nil, "agent: %s\nmodel: %s\napprove: {else: allow}\n", name,
			cmp.Or(o.Model, "demo:minimal"))
	}
	if o.Model != "" {
		read.Models = nil
	}

	var lines bytes.Buffer
	for _, c := range read.Cases {
		line, err := imports.Line(c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.ID, err)
		}
		lines.Write(line)
	}
	files[name+".jsonl"] = lines.Bytes()
	files[name+".eval.yaml"] = read.Suite(name, agent)
	return files, nil
}

// relative returns the name of a file in a folder, with slashes.
func relative(dir, file string) (string, error) {
	base, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	file, err = filepath.Abs(file)
	if err != nil {
		return "", err
	}
	name, err := filepath.Rel(base, file)
	return filepath.ToSlash(name), err
}

// writeNew writes files into a folder. Nothing is written if one of them exists.
func writeNew(dir string, files map[string][]byte) error {
	for name := range files {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("there is a file %s; name another folder or another suite", filepath.Join(dir, name))
		}
	}
	if err := os.MkdirAll(cmp.Or(dir, "."), 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
