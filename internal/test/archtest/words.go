package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// maxExceptions is the number of lines that words_exceptions.txt may have.
const maxExceptions = 30

// refusedWords are the expressions that documents and comments do not use, each with the words to
// use. A space matches any white space, so that a wrapped line counts too.
var refusedWords = compileWords([]struct{ pattern, instead string }{
	{`(?i)\b(tell|tells|told)\b`, "emit, report, return or state"},
	{`(?i)\b(heal|heals|healed|mend|mends|mended)\b`, "repair"},
	{`(?i)\bbeside\b`, "next to, in addition to or in parallel with"},
	{`(?i)\binside of\b`, "in or within"},
	{`(?i)\b(carry|carries|carried) out\b`, "execute"},
	{`(?i)\b(go|goes|gone|going) on with\b`, "resume or continue"},
	{`(?i)\bleft behind\b`, "abandoned"},
	{`(?i)\b(nobody|somebody|whoever)\b`, "the noun: the caller, a person, the program"},
	{`(?i)\bwhatever\b`, "any, or the noun"},
	{`(?i)\bas it is\b`, "unchanged"},
	{`(?i)\b(one|those) that\b`, "the noun"},
	{`(?i)\b(those|that) of\b`, "the noun"},
	{`(?m)(?:^|[.;,(|] )(nil|0|""|zero|empty|none|true|false): `, `a sentence: "nil means no limit"`},
})

type refusedWord struct {
	pattern *regexp.Regexp
	instead string
}

func compileWords(list []struct{ pattern, instead string }) []refusedWord {
	var words []refusedWord
	for _, w := range list {
		flags, rest, _ := strings.Cut(w.pattern, ")")
		pattern := flags + ")" + strings.ReplaceAll(rest, " ", `\s+`)
		words = append(words, refusedWord{regexp.MustCompile(pattern), w.instead})
	}
	return words
}

// passage is a piece of prose that the rule applies to.
type passage struct {
	path string
	line int    // the line of its first character
	text string // line breaks as in the file
}

// checkWords returns the refused words of the passages, except the occurrences that an exception
// covers.
func checkWords(passages []passage, exceptions []*exception) []string {
	var bad []string
	for _, p := range passages {
		for _, w := range refusedWords {
			for _, at := range w.pattern.FindAllStringIndex(p.text, -1) {
				if covered(exceptions, p, at[0]) {
					continue
				}
				found := strings.Join(strings.Fields(p.text[at[0]:at[1]]), " ")
				bad = append(bad, fmt.Sprintf("%s:%d: %q: use %s", p.path, p.lineOf(at[0]), found, w.instead))
			}
		}
	}
	return bad
}

// lineOf returns the line in the file of a byte of the text.
func (p passage) lineOf(offset int) int { return p.line + strings.Count(p.text[:offset], "\n") }

// exception allows refused words in the lines of a file that contain a fragment.
type exception struct {
	path, fragment, reason string
	used                   bool
}

// parseExceptions reads words_exceptions.txt. A line has the form "PATH | FRAGMENT | REASON"; empty
// lines and lines that begin with # are skipped.
func parseExceptions(text string) ([]*exception, error) {
	var all []*exception
	for _, line := range listLines(text) {
		f := strings.SplitN(line, " | ", 3)
		if len(f) != 3 || strings.TrimSpace(f[2]) == "" {
			return nil, fmt.Errorf("exception %q: want PATH | FRAGMENT | REASON", line)
		}
		all = append(all, &exception{path: f[0], fragment: f[1], reason: f[2]})
	}
	if len(all) > maxExceptions {
		return nil, fmt.Errorf("%d exceptions: the file holds at most %d", len(all), maxExceptions)
	}
	return all, nil
}

// listLines returns the lines of a list, without comments and empty lines.
func listLines(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

func covered(exceptions []*exception, p passage, offset int) bool {
	start := strings.LastIndexByte(p.text[:offset], '\n') + 1
	line, _, _ := strings.Cut(p.text[start:], "\n")
	for _, x := range exceptions {
		if x.path == p.path && strings.Contains(line, x.fragment) {
			x.used = true
			return true
		}
	}
	return false
}

// unusedExceptions asks to remove the exceptions that cover nothing.
func unusedExceptions(exceptions []*exception) []string {
	var bad []string
	for _, x := range exceptions {
		if !x.used {
			bad = append(bad, fmt.Sprintf("words_exceptions.txt: %s | %s covers nothing: remove it", x.path, x.fragment))
		}
	}
	return bad
}

// exampleOutput begins the comment with the output of an example, which is not prose.
var exampleOutput = regexp.MustCompile(`(?i)^(unordered )?output:`)

// passages returns the prose of a Go file: its comments and, in the product, the texts of its
// strings. Generated files have none.
func (f *goFile) passages() []passage {
	if ast.IsGenerated(f.ast) {
		return nil
	}
	names := map[string]bool{}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			names[id.Name] = true
		}
		return true
	})
	var all []passage
	for _, g := range f.ast.Comments {
		if text := f.comment(g, names); !exampleOutput.MatchString(text) {
			all = append(all, passage{f.path, f.line(g.Pos()), text})
		}
	}
	if f.shipped {
		all = append(all, f.texts()...)
	}
	return all
}

// comment returns the text of g, in the lines of the file. It leaves out a first word that is one
// of names, because a comment begins with the name that it documents.
func (f *goFile) comment(g *ast.CommentGroup, names map[string]bool) string {
	var lines []string
	for _, c := range g.List {
		lines = append(lines, strings.TrimPrefix(strings.TrimPrefix(c.Text, "//"), " "))
	}
	text := strings.Join(lines, "\n")
	if word, rest, _ := strings.Cut(text, " "); names[word] {
		return rest
	}
	return text
}

// texts returns the strings of a file that people and models read: string literals of two words and
// more, such as errors, and the names and help of flags.
func (f *goFile) texts() []passage {
	var all []passage
	add := func(lit *ast.BasicLit, text string) {
		if len(strings.Fields(text)) > 1 {
			all = append(all, passage{f.path, f.line(lit.Pos()), text})
		}
	}
	tags := map[*ast.BasicLit]bool{}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if n.Tag == nil {
				return true
			}
			tags[n.Tag] = true
			if s, err := strconv.Unquote(n.Tag.Value); err == nil {
				tag := reflect.StructTag(s)
				add(n.Tag, "--"+tag.Get("name")+" "+tag.Get("help"))
			}
		case *ast.BasicLit:
			if n.Kind != token.STRING || tags[n] {
				return true
			}
			if s, err := strconv.Unquote(n.Value); err == nil {
				add(n, s)
			}
		}
		return true
	})
	return all
}
