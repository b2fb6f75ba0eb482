package docgen

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// wireEndings is the source of the meanings of endings.
const wireEndings = "provider/internal/wire/ending.go"

// endingTables are the tables of the words with which an API ends a reply, in the order of the
// page.
var endingTables = []struct{ title, name, file, of, unknown string }{
	{
		"Anthropic", "stopReasons", "provider/anthropic/response.go",
		"`stop_reason` of a message", "cut",
	},
	{
		"OpenAI Responses: status", "statuses", "provider/openai/response.go",
		"`status` of a response; for `incomplete`, the reason of the next table counts", "cut",
	},
	{
		"OpenAI Responses: incomplete", "incompleteReasons", "provider/openai/response.go",
		"`incomplete_details.reason`", "cut",
	},
	{
		"Chat Completions", "finishReasons", "provider/openai/chat_stream.go",
		"`finish_reason` of a choice, in any case of letters; a word of the next table counts too",
		"cut at OpenAI, answered at other servers",
	},
	{
		"Chat Completions: words of others", "ChatWords", "provider/internal/wire/chatwords.go",
		"`finish_reason`, also in forms as `FinishReason.MAX_TOKENS` and `content-filter`",
		"cut at OpenAI, answered at other servers",
	},
	{
		"Gemini", "finishReasons", "provider/gemini/response.go",
		"`finishReason` of a candidate", "cut",
	},
}

// ending is a row of such a table.
type ending struct{ word, meaning, comment string }

// Endings returns the text of docs/finish-reasons.md, made from the tables in the adapters. read
// returns a file of the repository.
func Endings(read func(path string) (string, error)) (string, error) {
	meanings, err := endingMeanings(read)
	if err != nil {
		return "", err
	}

	var b strings.Builder
	b.WriteString(endingsHead)
	for _, m := range meanings {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", m.word, m.comment, endingEffects[m.word])
	}
	for _, t := range endingTables {
		rows, err := endingRows(read, t.file, t.name, meanings)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "\n## %s\n\nThe word is %s. Another word is %s.\n\n| word | meaning | note |\n|---|---|---|\n", t.title, t.of, t.unknown)
		for _, r := range rows {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", quoted(r.word), r.meaning, r.comment)
		}
	}
	return b.String(), nil
}

const endingsHead = `# How replies end

Each provider ends a reply with a word. These tables say what each word means to pawl. They are made
from the code, and tests compare them with the enumerations of the official Go SDKs.

| meaning | the reply | what the run does |
|---|---|---|
`

// endingEffects says what the run does with a reply of each meaning.
var endingEffects = map[string]string{
	"unknown":  "as if it were cut, with the notice `finish`; at servers other than the vendor's, as if it were answered",
	"answered": "executes its calls, or takes its text as the answer",
	"calls":    "executes its calls; without one, the error `malformed_reply`",
	"full":     "executes no call; without calls it ends with `StopLimit`",
	"cut":      "the same, with the notice `finish`",
	"paused":   "continues it within the same reply; if that is not possible, as if it were cut",
	"filtered": "executes no call; without calls it ends with the error `content_filter`",
	"unusable": "executes no call; without calls it ends with the error `server`",
}

func quoted(word string) string {
	if word == "" {
		return "(none)"
	}
	return "`" + word + "`"
}

// endingMeanings returns the constants of wire.Ending, in their order, with their comments.
func endingMeanings(read func(string) (string, error)) ([]ending, error) {
	file, err := parsed(read, wireEndings)
	if err != nil {
		return nil, err
	}
	var out []ending
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			name := strings.ToLower(v.Names[0].Name)
			if v.Comment == nil || endingEffects[name] == "" {
				return nil, fmt.Errorf("%s: %s has no comment, or no row of endingEffects", wireEndings, name)
			}
			out = append(out, ending{word: name, comment: strings.TrimSpace(v.Comment.Text())})
		}
	}
	if len(out) != len(endingEffects) {
		return nil, fmt.Errorf("%s has %d endings, want the %d of endingEffects", wireEndings, len(out), len(endingEffects))
	}
	return out, nil
}

// endingRows returns the rows of the table name in a file.
func endingRows(read func(string) (string, error), path, name string, meanings []ending) ([]ending, error) {
	file, err := parsed(read, path)
	if err != nil {
		return nil, err
	}
	table := literal(file, name)
	if table == nil {
		return nil, fmt.Errorf("%s has no table %s", path, name)
	}

	var rows []ending
	for _, e := range table.Elts {
		pair := e.(*ast.KeyValueExpr)
		word, err := strconv.Unquote(pair.Key.(*ast.BasicLit).Value)
		if err != nil {
			return nil, err
		}
		meaning := strings.ToLower(constantName(pair.Value))
		known := func(m ending) bool { return m.word == meaning }
		if !slices.ContainsFunc(meanings, known) {
			return nil, fmt.Errorf("%s: %s has the unknown meaning %s", path, word, meaning)
		}
		rows = append(rows, ending{word: word, meaning: meaning, comment: file.comments[file.line(pair.Pos())]})
	}
	return rows, nil
}

// constantName returns the name of a constant of this package or of another one.
func constantName(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return s.Sel.Name
	}
	return e.(*ast.Ident).Name
}

// literal returns the composite literal of the variable name, or nil.
func literal(file *parsedFile, name string) *ast.CompositeLit {
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if v.Names[0].Name != name || len(v.Values) != 1 {
				continue
			}
			if lit, ok := v.Values[0].(*ast.CompositeLit); ok {
				return lit
			}
		}
	}
	return nil
}

// parsedFile is a Go file with its comments by line.
type parsedFile struct {
	*ast.File
	set      *token.FileSet
	comments map[int]string
}

func (f *parsedFile) line(at token.Pos) int { return f.set.Position(at).Line }

func parsed(read func(string) (string, error), path string) (*parsedFile, error) {
	src, err := read(path)
	if err != nil {
		return nil, err
	}
	f := &parsedFile{set: token.NewFileSet(), comments: map[int]string{}}
	f.File, err = parser.ParseFile(f.set, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, c := range f.Comments {
		f.comments[f.line(c.Pos())] = strings.TrimSpace(c.Text())
	}
	return f, nil
}
