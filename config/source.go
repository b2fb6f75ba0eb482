package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// What a file may be at most. One that says little cannot become much: values behind aliases count each time.
const (
	mostBytes     = 1 << 20
	mostValues    = 100_000
	mostDepth     = 64
	mostDocuments = 64
)

var yamlLine = regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)$`)

// parsed are the messages of the part of YAML's reader that comes after the one that reads marks.
var parsed = regexp.MustCompile(`did not find expected (',' or|'-' indicator|key$|node content|<)`)

// documents splits a file into its documents. Empty ones are left out.
func (r *reading) documents(text []byte) (docs []*yaml.Node) {
	if len(text) > mostBytes {
		r.found(&Finding{Code: CodeTooLarge, Message: fmt.Sprintf("the file has more than %d bytes", mostBytes)})
		return nil
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	d := yaml.NewDecoder(bytes.NewReader(text))
	for {
		root := new(yaml.Node)
		err := decodeNode(d, root)
		switch {
		case errors.Is(err, io.EOF):
			if len(docs) == 0 {
				r.found(&Finding{Code: CodeEmpty, Line: 1, Column: 1, Message: "there is no agent in it", Hint: "pawl init writes one to begin with"})
			}
			return docs
		case err != nil:
			f := &Finding{Code: CodeSyntax, Line: 0, Column: 1, Message: "it is no YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
			if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
				f.Line, _ = strconv.Atoi(m[1])
				f.Message = "it is no YAML: " + m[2]
			}
			if parsed.MatchString(err.Error()) { // YAML's reader counts these lines from 0
				f.Line++
			}
			f.Line = max(1, f.Line)
			r.found(f)
			return docs
		}
		if len(root.Content) == 0 || root.Content[0].Kind == yaml.ScalarNode && root.Content[0].Tag == "!!null" {
			continue
		}
		if len(docs) == mostDocuments {
			r.at(CodeTooLarge, root.Content[0], "", "", "there are more than %d documents in it", mostDocuments)
			return docs
		}
		if bound := (bounds{r: r}); !bound.walk(root.Content[0], 0) {
			return docs
		}
		docs = append(docs, root.Content[0])
	}
}

// decodeNode reads the next document. The reader of YAML gives some mistakes as panics of its own; whatever it does, a file is only a file.
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
	r      *reading
	values int
}

func (b *bounds) walk(n *yaml.Node, depth int) bool {
	b.values++
	switch {
	case depth > mostDepth:
		b.r.at(CodeTooDeep, n, "", "", "it is nested more than %d deep, or in a circle", mostDepth)
		return false
	case b.values > mostValues:
		b.r.at(CodeTooLarge, n, "", "", "it has more than %d values, those behind aliases counted each time", mostValues)
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
