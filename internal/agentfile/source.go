package agentfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// The limits of a file. Values behind aliases count each time, so a short file cannot expand into a
// large one.
const (
	mostBytes     = 1 << 20
	mostValues    = 100_000
	mostDepth     = 64
	mostDocuments = 64
)

var yamlLine = regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)$`)

// parsed matches the messages of the YAML parser, as opposed to the YAML scanner.
var parsed = regexp.MustCompile(`did not find expected (',' or|'-' indicator|key$|node content|<)`)

// documents splits a file into its documents. Empty ones are left out. None and no finding means
// that the file is empty.
func (r *reading) documents(text []byte) (docs []*yaml.Node) {
	if len(text) > mostBytes {
		r.found(&Finding{Code: CodeTooLarge, Message: fmt.Sprintf("the file has more than %d bytes", mostBytes)})
		return nil
	}
	if f := notUTF8(text); f != nil {
		r.found(f)
		return nil
	}

	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	d := yaml.NewDecoder(bytes.NewReader(text))
	for {
		root := new(yaml.Node)
		err := decodeNode(d, root)
		switch {
		case errors.Is(err, io.EOF):
			return docs
		case err != nil:
			r.found(syntaxFinding(err, text))
			return docs
		}

		if isEmptyDocument(root) {
			continue
		}
		if len(docs) == mostDocuments {
			r.report(CodeTooLarge, root.Content[0], "", "", "there are more than %d documents in it", mostDocuments)
			return docs
		}

		// Aliases multiply: a short file can stand for more values than the memory holds.
		if bound := (bounds{reading: r}); !bound.walk(root.Content[0], 0) {
			return docs
		}
		docs = append(docs, root.Content[0])
	}
}

// empty reports a file without a document.
func (r *reading) empty(message, hint string) {
	r.found(&Finding{Code: CodeEmpty, Line: 1, Column: 1, Message: message, Hint: hint})
}

// isEmptyDocument reports whether a document has nothing, or null.
func isEmptyDocument(root *yaml.Node) bool {
	if len(root.Content) == 0 {
		return true
	}
	first := root.Content[0]
	return first.Kind == yaml.ScalarNode && first.Tag == "!!null"
}

// syntaxFinding returns the finding for an error of the YAML reader about text.
func syntaxFinding(err error, text []byte) *Finding {
	f := &Finding{Code: CodeSyntax, Column: 1, Message: "it is no YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		f.Line, _ = strconv.Atoi(m[1])
		f.Message = "it is no YAML: " + m[2]
	}

	// The parser counts lines from 0, the scanner from 1. For an unknown anchor there is no line.
	if parsed.MatchString(err.Error()) {
		f.Line++
	}
	if m := unknownAnchor.FindStringSubmatch(err.Error()); m != nil {
		if before, _, found := bytes.Cut(text, []byte("*"+m[1])); found {
			f.Line = bytes.Count(before, []byte("\n")) + 1
		}
	}
	f.Line = max(1, f.Line)
	f.Hint = yamlHint(f.Message)
	return f
}

// yamlHints are usual causes of the messages of the YAML reader.
var yamlHints = []struct {
	part string // of the message
	hint string
}{
	{"tab character", "indent with spaces"},
	{"cannot start any token", "indent with spaces, no tabs; a value that begins with @, ` or % wants quotes"},
	{"mapping values are not allowed",
		"a value with a colon and a space in it wants quotes; keys of one object begin in the same column"},
	{"unexpected end of stream", "a quotation mark is not closed"},
	{"did not find expected ',' or", "a [ or { is not closed"},
	{"unknown anchor", "a value that begins with * wants quotes"},
}

var unknownAnchor = regexp.MustCompile(`unknown anchor '(.+)' referenced`)

// yamlHint returns the usual cause of a message of the YAML reader. Empty means that it is not
// known.
func yamlHint(message string) string {
	for _, h := range yamlHints {
		if strings.Contains(message, h.part) {
			return h.hint
		}
	}
	return ""
}

// notUTF8 finds the first byte that is no UTF-8. A file that begins as UTF-16 is left to the YAML
// reader, which can read it.
func notUTF8(text []byte) *Finding {
	isUTF16 := bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff"))
	if utf8.Valid(text) || isUTF16 {
		return nil
	}

	at := 0
	for at < len(text) {
		c, n := utf8.DecodeRune(text[at:])
		if c == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	line := text[bytes.LastIndexByte(text[:at], '\n')+1 : at]
	return &Finding{
		Code:    CodeSyntax,
		Line:    bytes.Count(text[:at], []byte("\n")) + 1,
		Column:  utf8.RuneCount(line) + 1,
		Message: "it is no text in UTF-8",
		Hint:    "save it as UTF-8",
	}
}

// decodeNode reads the next document. The YAML reader reports some faults by a panic.
func decodeNode(d *yaml.Decoder, root *yaml.Node) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	return d.Decode(root)
}

// bounds holds a document to what it may be.
type bounds struct {
	reading *reading
	values  int // visited, those behind aliases each time
}

func (b *bounds) walk(n *yaml.Node, depth int) bool {
	b.values++
	switch {
	case depth > mostDepth:
		b.reading.report(CodeTooDeep, n, "", "", "it is nested more than %d deep, or in a circle", mostDepth)
		return false
	case b.values > mostValues:
		b.reading.report(CodeTooLarge, n, "", "",
			"it has more than %d values, those behind aliases counted each time", mostValues)
		return false
	case n.Kind == yaml.AliasNode:
		return b.walk(n.Alias, depth+1)
	}

	for _, c := range n.Content {
		if !b.walk(c, depth+1) {
			return false
		}
	}
	return true
}
