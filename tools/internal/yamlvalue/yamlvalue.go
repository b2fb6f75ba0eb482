// Package yamlvalue reads YAML as the values of JSON.
package yamlvalue

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxDepth is the maximum depth of a value.
const MaxDepth = 200

// maxNodes is the maximum number of nodes of a document after following aliases.
const maxNodes = 3_000_000

// Of converts a YAML node to what encoding/json would return, with numbers as json.Number.
// The number of nodes is limited, so that a small file cannot expand to much data.
func Of(n *yaml.Node) (any, error) {
	r := &yamlReader{}
	return r.value(n, 0)
}

type yamlReader struct{ nodes int }

func (r *yamlReader) value(n *yaml.Node, depth int) (any, error) {
	// Aliases are counted at each use: nine lines of aliases can mean a billion values.
	r.nodes++
	if r.nodes > maxNodes || depth > MaxDepth {
		return nil, fmt.Errorf("line %d: it is too large: at most %d values, %d deep", n.Line, maxNodes, MaxDepth)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 0 {
			return nil, nil
		}
		return r.value(n.Content[0], depth)

	case yaml.AliasNode:
		return r.value(n.Alias, depth+1)

	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			v, err := r.value(c, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil

	case yaml.MappingNode:
		return r.object(n, depth)
	}
	return scalar(n)
}

func (r *yamlReader) object(n *yaml.Node, depth int) (any, error) {
	m := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode || k.Tag == "!!merge" {
			return nil, fmt.Errorf("line %d: a name must be a plain text", k.Line)
		}
		if _, twice := m[k.Value]; twice {
			return nil, fmt.Errorf("line %d: %s occurs twice", k.Line, k.Value)
		}
		v, err := r.value(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		m[k.Value] = v
	}
	return m, nil
}

func scalar(n *yaml.Node) (any, error) {
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		var b bool
		err := n.Decode(&b)
		return b, err
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value), nil
		}
		// YAML has forms of integers that JSON lacks: 0x1f, 1_000.
		if i, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 0, 64); err == nil {
			return json.Number(strconv.FormatInt(i, 10)), nil
		}
		var f float64
		if err := n.Decode(&f); err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("line %d: %s is not a JSON number", n.Line, n.Value)
		}
		return json.Number(strconv.FormatFloat(f, 'g', -1, 64)), nil
	}
	return n.Value, nil // also dates, which are text in JSON
}
