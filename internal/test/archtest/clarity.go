package archtest

import (
	"go/ast"
	"go/token"
)

// A rule is a name that a waiver can use, as in "//house:wide a table reads better". The rules
// measure what a reader meets. None counts how much text there is, because such a limit is met by
// longer lines, fewer comments and no blank lines.
type rule string

const (
	ruleHeader     rule = "header"     // an effect in the header of if or switch
	rulePacked     rule = "packed"     // one assignment of three values or more
	rulePair       rule = "pair"       // one assignment of two values
	ruleCondition  rule = "condition"  // a boolean expression of three operators or more
	ruleComplexity rule = "complexity" // a function with many ways through it
	ruleLong       rule = "long"       // a function over maxFunction lines of code
	ruleRun        rule = "run"        // many lines of code without a blank line or a comment
	ruleWide       rule = "wide"       // a long line of code
	ruleField      rule = "field"      // an exported field without a comment
	ruleLetter     rule = "letter"     // a field of one letter among more than three fields
	ruleAnonymous  rule = "anonymous"  // an interface with methods and without a name
	ruleVague      rule = "vague"      // a method whose name does not say what it does
)

// rules are the names that a waiver can use.
var rules = []rule{
	ruleHeader, rulePacked, rulePair, ruleCondition,
	ruleComplexity, ruleLong, ruleRun,
	ruleWide, ruleField, ruleLetter, ruleAnonymous, ruleVague,
}

// A finding is a place where a file does not follow a rule.
type finding struct {
	rule  rule
	path  string
	line  int
	value int    // what was measured there, such as columns; 0 means that the place itself counts
	text  string // the name, or the line of source
}

// clarity is what a file, or several files, look like to a reader.
type clarity struct {
	findings   []finding
	predicates []finding // long conditions that are the whole of a function with a name

	tokens       int // tokens of the language, without comments
	functions    int // functions and methods with a body
	big          int // functions of bigFunction lines of code and more
	bigBlank     int // big functions with a blank line
	bigCommented int // big functions with a comment on a line of its own
	bodyLines    int // lines inside functions, of any kind
	bodyComments int // lines inside functions that hold only a comment
	fields       int // exported fields of exported structs of public packages
	letters      int // fields of one letter, in structs of any size
	waivers      []*waiver
	faults       []string // waivers that are wrong
}

// clarityOf measures one file, except a generated file.
func clarityOf(f *goFile) *clarity {
	c := &clarity{}
	if ast.IsGenerated(f.ast) {
		return c
	}
	c.tokens = f.tokens
	c.statements(f)
	c.bodies(f)
	c.declarations(f)
	c.wideLines(f)
	c.waive(f)
	return c
}

// sum adds the measures of several files.
func sum(all []*clarity) *clarity {
	total := &clarity{}
	for _, c := range all {
		total.findings = append(total.findings, c.findings...)
		total.predicates = append(total.predicates, c.predicates...)
		total.tokens += c.tokens
		total.functions += c.functions
		total.big += c.big
		total.bigBlank += c.bigBlank
		total.bigCommented += c.bigCommented
		total.bodyLines += c.bodyLines
		total.bodyComments += c.bodyComments
		total.fields += c.fields
		total.letters += c.letters
		total.waivers = append(total.waivers, c.waivers...)
		total.faults = append(total.faults, c.faults...)
	}
	return total
}

// over returns the findings of a rule with a value over limit. A negative limit means all.
func (c *clarity) over(r rule, limit int) []finding {
	var found []finding
	for _, f := range c.findings {
		if f.rule == r && f.value > limit {
			found = append(found, f)
		}
	}
	return found
}

// find records a finding at pos, with the line of source as its text.
func (c *clarity) find(f *goFile, r rule, pos token.Pos, value int) {
	c.findings = append(c.findings, f.finding(r, pos, value))
}

func (f *goFile) finding(r rule, pos token.Pos, value int) finding {
	line := f.line(pos)
	return finding{r, f.path, line, value, f.lines[line-1]}
}
