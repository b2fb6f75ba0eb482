package suite

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/eval/internal/check"
	"github.com/pawl-go/pawl/internal/agentfile"
)

// Suite is a suite that was read. It may be used concurrently.
type Suite struct {
	// File is what the file states.
	File *File

	// Path is the name of the file.
	Path string

	// Digest is the digest of the file and of the files with cases.
	Digest string

	// Cases are the cases, in the order of the file.
	Cases []*LoadedCase

	// Variants are the agents.
	Variants []*Variant

	doc *agentfile.Document
	sum []byte // of the files, as they are read
}

// Report adds a fault of a value of the suite.
func (s *Suite) Report(path, hint, message string) {
	s.doc.Report(agentfile.CodeBadValue, path, hint, message)
}

// Err returns the faults of the suite and of its files, or nil.
func (s *Suite) Err() error {
	all := agentfile.FindingsOf(s.doc.Err())
	for _, c := range s.Cases {
		if c.doc != s.doc {
			all = append(all, agentfile.FindingsOf(c.Err())...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

func joined(path, key string) string {
	switch {
	case path == "":
		return key
	case key == "" || key[0] == '[':
		return path + key
	}
	return path + "." + key
}

// Addition is a file with a case that a suite does not have yet.
type Addition struct {
	// Path is the name that the file will have.
	Path string

	// Text is its content.
	Text []byte
}

// Load reads the suite of this name, with a further case, which is the last one. Nil means no
// further case. The error has all faults that were found.
func Load(name string, getenv func(string) string, more *Addition) (*Suite, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, agentfile.Findings{{Code: agentfile.CodeUnreadable, File: name, Message: cause(err),
			Hint: "a suite is a file NAME.eval.yaml; docs/eval.md has its form"}}
	}
	l := &loading{getenv: getenv, more: more}
	s := &Suite{File: new(File), Path: name, sum: text}
	s.doc = agentfile.ReadDocument(name, text, s.File, &agentfile.LoadOptions{Getenv: getenv})
	if err := s.doc.Err(); err != nil {
		return nil, err
	}
	l.suite = s
	l.dir = filepath.Dir(name)
	l.load()
	if err := s.Err(); err != nil {
		return nil, err
	}
	s.Digest = digestOf(s.sum)
	return s, nil
}

func cause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func within(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

func absolute(dir, name string) string {
	if name == "" {
		return ""
	}
	path, err := filepath.Abs(within(dir, name))
	if err != nil {
		return within(dir, name)
	}
	return path
}

// loading is the state of reading a suite.
type loading struct {
	suite   *Suite
	dir     string
	getenv  func(string) string
	checks  []*check.Check // of the defaults
	replies []*Reply       // of the defaults
	more    *Addition      // nil means none
}

var idForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`)

const idHint = "letters, digits, _, - and ., 100 at most"

var noID = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// IDOf returns an ID of the characters of a name. It is empty for a name without letters and
// digits, and too long for a name that is.
func IDOf(name string) string { return strings.Trim(noID.ReplaceAllString(name, "-"), "-._") }

func (l *loading) load() {
	s := l.suite
	if s.File.Eval != "" && !idForm.MatchString(s.File.Eval) {
		s.Report("eval", idHint, fmt.Sprintf("%q is no name of a suite", s.File.Eval))
	}
	if d := s.File.Defaults; d != nil {
		own := l.compiler(l.dir, s.Report)
		l.checks = own.all(d.Checks, "defaults.checks")
		l.replies = own.replies(d.Answers, "defaults.answers")
	}

	for i := range s.File.Cases {
		path := fmt.Sprintf("cases[%d]", i)
		c := &s.File.Cases[i]
		if c.Files != "" {
			l.files(c, path)
			continue
		}
		l.add(c, s.doc, path, l.dir)
	}
	if l.more != nil {
		l.document(l.more.Path, l.more.Text)
	}
	l.unique()
	l.variants()
	l.gate()
}

// files adds the cases of the files that a pattern names.
func (l *loading) files(c *Case, path string) {
	names, err := filepath.Glob(within(l.dir, c.Files))
	if l.more != nil && names == nil && l.suite.readsBy(c, l.more.Path) {
		return // it will be there
	}
	if err != nil || len(names) == 0 {
		l.suite.Report(path+".files", "a pattern such as cases/*.yaml, relative to the file",
			"no file has a name like "+c.Files)
		return
	}
	slices.Sort(names)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			l.suite.Report(path+".files", "", name+": "+cause(err))
			continue
		}
		l.suite.sum = append(l.suite.sum, text...)
		if filepath.Ext(name) != ".jsonl" {
			l.document(name, text)
			continue
		}

		// Empty lines in front of a line give its findings their places.
		for i, line := range bytes.Split(text, []byte("\n")) {
			if len(bytes.TrimSpace(line)) > 0 {
				l.document(name, append(bytes.Repeat([]byte("\n"), i), line...))
			}
		}
	}
}

// document adds the case of a document of its own.
func (l *loading) document(name string, text []byte) {
	c := new(Case)
	doc := agentfile.ReadDocument(name, text, c, &agentfile.LoadOptions{Getenv: l.getenv})
	l.add(c, doc, "", filepath.Dir(name))
}

// unique reports ids that several cases have, and a suite in which nothing gates.
func (l *loading) unique() {
	seen := map[string]bool{}
	drafts := 0
	for _, c := range l.suite.Cases {
		if seen[c.ID] {
			c.Report("id", "rename one of them", fmt.Sprintf("two cases are named %s", c.ID))
		}
		seen[c.ID] = true
		if c.Draft {
			drafts++
		}
	}
	if drafts == len(l.suite.Cases) && drafts > 0 && l.more == nil {
		l.suite.Report("cases", "remove draft from a case", "all cases are drafts, so that the suite cannot fail")
	}
}

// gate reports gates that cannot fail.
func (l *loading) gate() {
	g := l.suite.File.Gate
	if g == nil {
		return
	}
	report := func(path string, min *float64) {
		if min != nil && *min == 0 {
			l.suite.Report(path+".min", "a rate above 0", "every rate is at least 0, so that this gate cannot fail")
		}
	}
	if g.Pass != nil {
		report("gate.pass", g.Pass.Min)
	}
	if g.Case != nil {
		report("gate.case", g.Case.Min)
	}
	if g.All != nil {
		report("gate.all", g.All.Min)
	}
	for tag, one := range g.Tags {
		report("gate.tags."+tag, one.Min)
		has := func(c *LoadedCase) bool { return slices.Contains(c.Tags, tag) && !c.Draft }
		if !slices.ContainsFunc(l.suite.Cases, has) {
			l.suite.Report("gate.tags."+tag, "", "no case has the tag "+tag)
		}
	}

	isEmpty := g.Pass == nil && g.Case == nil && g.All == nil && g.Tags == nil && g.Drop == nil && g.NewlyFailing == nil
	if isEmpty {
		l.suite.Report("gate", "case: {min: 1}", "nothing must hold, so that this gate cannot fail")
	}
	needsBaseline := g.Drop != nil || g.NewlyFailing != nil
	if needsBaseline && l.suite.File.Baseline == "" {
		l.suite.Report("gate", "add baseline: FILE", "drop and newly_failing compare with a baseline, and there is none")
	}
	if _, _, err := l.suite.File.AllowedErrors(); err != nil {
		l.suite.Report("gate.errors", "a number, or a share such as 5%", err.Error())
	}
}

// AllowedErrors returns how many trials may be errors: a number, or a share of all trials.
func (f *File) AllowedErrors() (number int, share float64, err error) {
	if f.Gate == nil || f.Gate.Errors == nil {
		return 0, 0, nil
	}
	if json.Unmarshal(f.Gate.Errors, &number) == nil && number >= 0 {
		return number, 0, nil
	}
	var text string
	var percent float64
	if err := json.Unmarshal(f.Gate.Errors, &text); err != nil {
		return 0, 0, errors.New("this is neither")
	}
	_, err = fmt.Sscanf(strings.TrimSpace(text), "%g%%", &percent)
	if err != nil || percent < 0 || percent > 100 {
		return 0, 0, fmt.Errorf("%q is no share", text)
	}
	return 0, percent / 100, nil
}
