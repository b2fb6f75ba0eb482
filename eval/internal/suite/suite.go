package suite

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/eval/internal/check"
	"github.com/pawl-go/pawl/eval/internal/match"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/llm"
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

// LoadedCase is a case with its defaults.
type LoadedCase struct {
	Case

	// Messages are what the user says, and Text is their text.
	Messages []llm.Message
	Text     string

	// Judges are the checks. The checks of the defaults are first.
	Judges []*check.Check

	// Where is the world with absolute names.
	Where Where

	// Replies are what a person answers.
	Replies []*Reply

	// Bounds are the limits of the defaults, with the limits of the case over them.
	Bounds agentfile.Limits

	// Digest is the digest of the content.
	Digest string

	doc  *agentfile.Document
	path string // of the case in its document
}

// Where is the world of a case.
type Where struct {
	World

	// Fakes are the lines of each faked tool.
	Fakes map[string][]*FakeLine
}

// FakeLine is a compiled Fake.
type FakeLine struct {
	Fake

	// Fits are the arguments. Nil means any.
	Fits *match.Matcher
}

// Reply is a compiled Answer.
type Reply struct {
	Answer

	// Fits are the arguments. Nil means any.
	Fits *match.Matcher
}

// Answers reports whether the answer is about a call.
func (r *Reply) Answers(call llm.ToolCall) bool {
	return match.Named(r.Tool, call.Name) && (r.Fits == nil || r.Fits.Fits(call.Args))
}

// Report adds a fault of a value of the case: its path begins within the case.
func (c *LoadedCase) Report(path, hint, message string) {
	c.doc.Report(agentfile.CodeBadValue, joined(c.path, path), hint, message)
}

// Err returns the faults of the file of the case.
func (c *LoadedCase) Err() error { return c.doc.Err() }

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

// add adds a case of a document.
func (l *loading) add(c *Case, doc *agentfile.Document, path, dir string) {
	loaded := &LoadedCase{Case: *c, doc: doc, path: path}
	if !idForm.MatchString(c.ID) {
		loaded.Report("id", idHint, fmt.Sprintf("a case wants an id, and %q is none", c.ID))
	}
	l.input(loaded)

	d := l.suite.File.Defaults
	inherits := d != nil && (c.Inherit == nil || *c.Inherit)
	if inherits {
		loaded.Judges = slices.Clone(l.checks)
	} else {
		d = new(Defaults)
	}
	loaded.Bounds = bounds(d.Limits, c.Limits)

	own := l.compiler(dir, loaded.Report)
	loaded.Judges = append(loaded.Judges, own.all(c.Checks, "checks")...)
	l.world(loaded, d.World, c.World, dir, own)
	loaded.Replies = own.replies(c.Answers, "answers")
	if inherits {
		loaded.Replies = append(loaded.Replies, l.replies...)
	}

	gates := func(j *check.Check) bool { return j.Gates }
	if !c.Draft && !slices.ContainsFunc(loaded.Judges, gates) {
		loaded.Report("", "add checks, or draft: true", "no check of the case gates, so that it cannot fail")
	}
	content, err := json.Marshal([]any{c, d.World, d.Answers, d.Limits, d.Checks})
	if err == nil {
		loaded.Digest = digestOf(content)[:16]
	}
	l.suite.Cases = append(l.suite.Cases, loaded)
}

// bounds returns limits with others over them. Nil means no limits.
func bounds(base, over *agentfile.Limits) (out agentfile.Limits) {
	into := reflect.ValueOf(&out).Elem()
	for _, limits := range []*agentfile.Limits{base, over} {
		if limits == nil {
			continue
		}
		from := reflect.ValueOf(limits).Elem()
		for i := range from.NumField() {
			if stated := from.Field(i); !stated.IsZero() {
				into.Field(i).Set(stated)
			}
		}
	}
	return out
}

// input reads what the user says.
func (l *loading) input(c *LoadedCase) {
	var text string
	switch {
	case c.Input == nil:
		c.Report("", "input: what the user says", "the key input is missing")
	case json.Unmarshal(c.Input, &text) == nil:
		c.Messages = []llm.Message{llm.User(text)}
		c.Text = text
	case json.Unmarshal(c.Input, &c.Messages) != nil:
		c.Report("input", "a text, or messages as pawl run --save writes them", "this is neither")
	default:
		c.Text = LastText(c.Messages)
		if faults := llm.Check(c.Messages); len(faults) > 0 {
			c.Report("input", "", fmt.Sprint(faults[0]))
		}
	}
}

// LastText returns the text of the user's last message.
func LastText(all []llm.Message) string {
	for _, m := range slices.Backward(all) {
		if m.Role == llm.RoleUser {
			return m.Text()
		}
	}
	return ""
}

// compiler compiles checks whose files are relative to dir.
type compiler struct{ check.Compiler }

func (l *loading) compiler(dir string, report func(path, hint, message string)) *compiler {
	return &compiler{check.Compiler{
		Report: report,
		ReadFile: func(name string) ([]byte, error) {
			text, err := os.ReadFile(within(dir, name))
			if err != nil {
				return nil, fmt.Errorf("%s: %s", name, cause(err))
			}
			return text, nil
		},
	}}
}

// all compiles a list of checks. A faulty one is reported and left out.
func (c *compiler) all(list []check.Definition, path string) (out []*check.Check) {
	for i := range list {
		if compiled := c.Compile(&list[i], fmt.Sprintf("%s[%d]", path, i)); compiled != nil {
			out = append(out, compiled)
		}
	}
	return out
}

// replies compiles the answers of a person.
func (c *compiler) replies(list []Answer, path string) (out []*Reply) {
	for i, a := range list {
		out = append(out, &Reply{a, c.Matcher(a.Args, fmt.Sprintf("%s[%d].args", path, i))})
	}
	return out
}

func within(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// world joins the world of the defaults with the world of a case, whose keys stand over it.
func (l *loading) world(c *LoadedCase, base, over *World, dir string, own *compiler) {
	w := World{}
	if base != nil {
		w = *base
		w.Files = absolute(l.dir, w.Files)
		w.DB = absolute(l.dir, w.DB)
	}
	if over != nil {
		w.Files = cmp.Or(absolute(dir, over.Files), w.Files)
		w.DB = cmp.Or(absolute(dir, over.DB), w.DB)
		if over.Env != nil {
			w.Env = over.Env
		}
		if over.Tools != nil {
			w.Tools = over.Tools
		}
		if over.Real != nil {
			w.Real = over.Real
		}
		if over.Functions != nil {
			w.Functions = over.Functions
		}
	}
	if w.Files != "" {
		if info, err := os.Stat(w.Files); err != nil || !info.IsDir() {
			c.Report("world.files", "a folder, relative to the file", w.Files+" is no folder")
		}
	}

	c.Where = Where{World: w, Fakes: map[string][]*FakeLine{}}
	for tool, lines := range w.Tools {
		for i, line := range lines {
			path := fmt.Sprintf("world.tools.%s[%d]", tool, i)
			if (line.Result == nil) == (line.Error == "") {
				c.Report(path, "result: TEXT, or error: TEXT", "a line has one of result and error")
			}
			c.Where.Fakes[tool] = append(c.Where.Fakes[tool], &FakeLine{line, own.Matcher(line.Args, path+".args")})
		}
	}
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

// files adds the cases of the files that a pattern names.
func (l *loading) files(c *Case, path string) {
	pattern := within(l.dir, c.Files)
	names, err := filepath.Glob(pattern)
	if l.more != nil && names == nil {
		if matches, _ := filepath.Match(pattern, l.more.Path); matches {
			return // it will be there
		}
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
