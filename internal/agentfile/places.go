package agentfile

// places.go: the paths of values, such as tools[1].http.url, and where the file has each.

import (
	"fmt"
	"strings"
)

// place is where something was said.
type place struct{ line, column int }

// places are the places of paths in a file.
type places map[string]place

// lookup returns the place of a path, or of the nearest path above it that has one.
func (p places) lookup(path string) (place, bool) {
	for {
		if at, ok := p[path]; ok || path == "" {
			return at, ok
		}
		path = above(path)
	}
}

// above returns the path of what path is part of.
func above(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// index is the path of the i-th entry of a list.
func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
