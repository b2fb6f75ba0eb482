package suite

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// include.go: makes a suite read a file with a case.

// Reads reports whether the suite reads a file of this name, by a pattern of its cases.
func (s *Suite) Reads(path string) bool {
	return slices.ContainsFunc(s.File.Cases, func(c Case) bool { return s.readsBy(&c, path) })
}

// readsBy reports whether the suite reads a file of this name by the pattern of one of its cases.
func (s *Suite) readsBy(c *Case, path string) bool {
	if c.Files == "" {
		return false
	}
	matches, err := filepath.Match(within(filepath.Dir(s.Path), c.Files), path)
	return err == nil && matches
}

// Include returns the text of a suite with a further entry of its cases, the files of a pattern.
// All other lines stay unchanged. The error says why that is not possible.
func Include(text []byte, pattern string) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	list := casesOf(&root)
	if list == nil {
		return nil, errors.New("it has no list of cases")
	}
	if list.Style&yaml.FlowStyle != 0 || len(list.Content) == 0 {
		return nil, errors.New("its cases are not written one below the other")
	}

	// The column of the list is the column of its dashes.
	line := fmt.Sprintf("%s- files: %s\n", strings.Repeat(" ", list.Column-1), pattern)
	lines := strings.SplitAfter(string(text), "\n")
	lines = slices.Insert(lines, list.Line-1, line)
	return []byte(strings.Join(lines, "")), nil
}

// casesOf returns the list of cases of a document. Nil means that it has none.
func casesOf(root *yaml.Node) *yaml.Node {
	if len(root.Content) == 0 || root.Content[0].Kind != yaml.MappingNode {
		return nil
	}
	top := root.Content[0].Content
	for i := 0; i+1 < len(top); i += 2 {
		if top[i].Value == "cases" && top[i+1].Kind == yaml.SequenceNode {
			return top[i+1]
		}
	}
	return nil
}
