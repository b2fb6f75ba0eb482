package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/eval/internal/match"
	"github.com/pawl-go/pawl/eval/internal/trial"
	"github.com/pawl-go/pawl/internal/nearest"
)

// left.go: the checks of what a run left and used: files and spent.

// fileDemand is what is said of one file.
type fileDemand func(before, after *trial.File) verdict

func (c *Compiler) files(d *Definition, at string) func(*trial.Record) verdict {
	f := d.Files
	demands := map[string][]fileDemand{}
	for _, name := range slices.Sorted(maps.Keys(f.At)) {
		def := f.At[name]
		demands[name] = c.file(&def, at+".at."+name)
	}
	if len(demands) == 0 && f.Others == "any" {
		c.report(at, "at, or others: unchanged", "nothing is said of the files, so that this cannot fail")
	}

	return func(r *trial.Record) verdict {
		for _, name := range slices.Sorted(maps.Keys(demands)) {
			for _, unmet := range demands[name] {
				v := unmet(fileOf(r.Before, name), fileOf(r.After, name))
				if !v.passes() {
					v.reason = prefixed(name, v.reason)
					v.fault = prefixed(name, v.fault)
					return v
				}
			}
		}
		if f.Others == "any" {
			return verdict{}
		}
		return verdict{reason: changed(r, demands)}
	}
}

func prefixed(name, text string) string {
	if text == "" {
		return ""
	}
	return name + ": " + text
}

// fileOf returns a file of a world. nil means that there is none.
func fileOf(files map[string]trial.File, name string) *trial.File {
	if f, has := files[name]; has {
		return &f
	}
	return nil
}

// changed says which file without a demand is not as before.
func changed(r *trial.Record, demands map[string][]fileDemand) string {
	names := map[string]bool{}
	for name := range r.Before {
		names[name] = true
	}
	for name := range r.After {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if demands[name] != nil {
			continue
		}
		if reason := differs(fileOf(r.Before, name), fileOf(r.After, name)); reason != "" {
			return name + " " + reason
		}
	}
	return ""
}

// differs says how a file is not as before.
func differs(before, after *trial.File) string {
	switch {
	case before == nil && after == nil:
		return ""
	case before == nil:
		return "was added"
	case after == nil:
		return "was deleted"
	case before.SHA256 != after.SHA256:
		return "was changed"
	}
	return ""
}

func (c *Compiler) file(f *File, at string) (all []fileDemand) {
	if f.Absent {
		all = append(all, func(_, after *trial.File) verdict {
			if after == nil {
				return verdict{}
			}
			return verdict{reason: "the file is there"}
		})
	}
	if f.Unchanged {
		all = append(all, func(before, after *trial.File) verdict { return verdict{reason: differs(before, after)} })
	}
	all = append(all, c.digests(f, at)...)
	for _, unmet := range c.contents(f, at) {
		all = append(all, withText(unmet))
	}

	switch {
	case len(all) == 0:
		c.report(at, "equals, contains, regex, json, same_as, sha256, absent or unchanged",
			"nothing is said of the file, so that this cannot fail")
	case f.Absent && len(all) > 1:
		c.report(at, "", "an absent file has no content: this cannot pass")
	}
	return all
}

// digests compiles what is said of the whole content by its digest.
func (c *Compiler) digests(f *File, at string) (all []fileDemand) {
	want := f.SHA256
	if f.SameAs != "" {
		content, err := c.ReadFile(f.SameAs)
		if err != nil {
			c.report(at+".same_as", "", "%v", err)
		}
		want = trial.Digest(content)
	}
	if f.Equals != nil {
		want = trial.Digest([]byte(*f.Equals))
	}
	if want == "" {
		return nil
	}
	return []fileDemand{func(_, after *trial.File) verdict {
		switch {
		case after == nil:
			return verdict{reason: "there is no such file"}
		case after.SHA256 != want:
			return verdict{reason: "it has another content" + excerpt(after)}
		}
		return verdict{}
	}}
}

func excerpt(f *trial.File) string {
	if f.Text == nil {
		return ""
	}
	return ": " + shown(*f.Text)
}

// contents compiles what is said of the text.
func (c *Compiler) contents(f *File, at string) (all []demand) {
	for _, text := range c.texts(f.Contains, at+".contains") {
		all = append(all, func(content string) string {
			if strings.Contains(content, text) {
				return ""
			}
			return fmt.Sprintf("%s does not contain %s", shown(content), shown(text))
		})
	}
	if f.Regex != "" {
		expression, err := match.Regexp(f.Regex)
		if err != nil {
			c.report(at+".regex", "", "%v", err)
		}
		all = append(all, func(content string) string {
			if expression.MatchString(content) {
				return ""
			}
			return fmt.Sprintf("nothing in %s matches %s", shown(content), f.Regex)
		})
	}
	if f.JSON != nil {
		m := c.Matcher(f.JSON, at+".json")
		all = append(all, func(content string) string {
			if m.Fits(json.RawMessage(content)) {
				return ""
			}
			return shown(content) + " does not fit"
		})
	}
	return all
}

// withText applies a demand on a text to a file. A content that was not kept cannot be judged.
func withText(unmet demand) fileDemand {
	return func(_, after *trial.File) verdict {
		switch {
		case after == nil:
			return verdict{reason: "there is no such file"}
		case after.Text == nil:
			return verdict{fault: "the content was not kept: it is no text, or longer than 64 KiB"}
		}
		return verdict{reason: unmet(*after.Text)}
	}
}

// figures are what spent can bound.
func figures() map[string]func(*trial.Spent) *float64 {
	whole := func(of func(*trial.Spent) int) func(*trial.Spent) *float64 {
		return func(s *trial.Spent) *float64 { return number(of(s)) }
	}
	return map[string]func(*trial.Spent) *float64{
		"cost": func(s *trial.Spent) *float64 { return s.Cost },
		"time": func(s *trial.Spent) *float64 {
			seconds := s.Time.Seconds()
			return &seconds
		},
		"rounds":      whole(func(s *trial.Spent) int { return s.Rounds }),
		"requests":    whole(func(s *trial.Spent) int { return s.Requests }),
		"calls":       whole(func(s *trial.Spent) int { return s.Calls }),
		"tokens":      whole(func(s *trial.Spent) int { return s.Input + s.Output }),
		"input":       whole(func(s *trial.Spent) int { return s.Input }),
		"output":      whole(func(s *trial.Spent) int { return s.Output }),
		"corrections": whole(func(s *trial.Spent) int { return s.Corrections }),
		"invalid":     whole(func(s *trial.Spent) int { return s.Invalid }),
		"repairs":     whole(func(s *trial.Spent) int { return s.Repairs }),
	}
}

func (c *Compiler) spent(d *Definition, at string) func(*trial.Record) verdict {
	known := figures()
	if len(d.Spent) == 0 {
		c.report(at, "rounds: {max: 2}", "nothing is bounded, so that this cannot fail")
	}
	for _, name := range slices.Sorted(maps.Keys(d.Spent)) {
		if known[name] == nil {
			c.report(at+"."+name, nearest.Hint(name, slices.Sorted(maps.Keys(known))), "there is no figure %q", name)
			continue
		}
		c.bound(d.Spent[name], at+"."+name)
	}

	return func(r *trial.Record) verdict {
		for _, name := range slices.Sorted(maps.Keys(d.Spent)) {
			value := known[name](&r.Spent)
			if value == nil {
				return verdict{fault: "the cost is unknown: the model has no price"}
			}
			if reason := d.Spent[name].outside(*value); reason != "" {
				return verdict{reason: name + " is " + reason}
			}
		}
		return verdict{}
	}
}
