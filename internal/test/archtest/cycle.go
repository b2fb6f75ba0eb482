package archtest

import (
	"go/token"
	"go/types"
	"maps"
	"path"
	"slices"
)

// fileGraph returns the references between the files of a package: from each file to the files that
// declare what it uses. A use of a package-level name, a field or a method counts.
func fileGraph(fset *token.FileSet, s *source) map[string][]string {
	name := func(pos token.Pos) string { return path.Base(fset.Position(pos).Filename) }
	uses := map[string]map[string]bool{}
	for _, f := range s.files {
		uses[name(f.Package)] = map[string]bool{}
	}
	for id, obj := range s.info.Uses {
		obj = origin(obj)
		if obj.Pkg() != s.pkg || !packageWide(obj) {
			continue
		}
		if from, to := name(id.Pos()), name(obj.Pos()); from != to {
			uses[from][to] = true
		}
	}
	graph := map[string][]string{}
	for from, to := range uses {
		graph[from] = slices.Sorted(maps.Keys(to))
	}
	return graph
}

// origin returns the declared object of a field or method of an instantiated generic type.
func origin(obj types.Object) types.Object {
	switch obj := obj.(type) {
	case *types.Var:
		return obj.Origin()
	case *types.Func:
		return obj.Origin()
	}
	return obj
}

// packageWide reports whether obj is visible in the whole package: not a local name.
func packageWide(obj types.Object) bool {
	switch obj := obj.(type) {
	case *types.Var:
		if obj.IsField() {
			return true
		}
	case *types.Func:
		if obj.Signature().Recv() != nil {
			return true
		}
	}
	return obj.Parent() == obj.Pkg().Scope()
}

// largestCycle returns the largest set of nodes in which each node reaches every other one, sorted.
// It is Tarjan's algorithm for strongly connected components.
func largestCycle(graph map[string][]string) []string {
	var (
		largest []string
		stack   []string
		index   = map[string]int{} // the order of the first visit, from 1
		low     = map[string]int{} // the smallest index that the node reaches on the stack
		visit   func(node string)
	)
	visit = func(node string) {
		index[node] = len(index) + 1
		low[node] = index[node]
		stack = append(stack, node)
		for _, next := range graph[node] {
			if index[next] == 0 {
				visit(next)
				low[node] = min(low[node], low[next])
			} else if slices.Contains(stack, next) {
				low[node] = min(low[node], index[next])
			}
		}
		if low[node] != index[node] {
			return
		}
		i := slices.Index(stack, node)
		if len(stack)-i > max(1, len(largest)) {
			largest = slices.Sorted(slices.Values(stack[i:]))
		}
		stack = stack[:i]
	}
	for _, node := range slices.Sorted(maps.Keys(graph)) {
		if index[node] == 0 {
			visit(node)
		}
	}
	return largest
}
