package suite

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"

	"github.com/pawl-go/pawl/eval/internal/check"
	"github.com/pawl-go/pawl/eval/internal/match"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/llm"
)

// case.go: a case with the defaults of its suite, whose checks and matchers are compiled.

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
