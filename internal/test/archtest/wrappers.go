package archtest

import (
	"fmt"
	"go/types"
	"slices"
)

// wrappers returns the Models of a package that hold another Model, in alphabetical order, and the
// wrappers without a method Unwrap() llm.Model. Such a type hides the abilities of the wrapped
// Model from llm.As. model is the interface llm.Model.
func wrappers(pkg *types.Package, model types.Type) (found, bad []string) {
	face := model.Underlying().(*types.Interface)
	scope := pkg.Scope()
	for _, name := range scope.Names() {
		named, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || named.IsAlias() {
			continue
		}
		st, ok := named.Type().Underlying().(*types.Struct)
		if !ok || !isModel(named.Type(), face) || !holdsModel(st, face) {
			continue
		}
		name = relative(pkg.Path()) + "." + name
		if found = append(found, name); !unwraps(named.Type(), pkg, model) {
			bad = append(bad, fmt.Sprintf("type %s wraps a llm.Model and has no method Unwrap() llm.Model, so llm.As finds no "+
				"ability through it", name))
		}
	}
	return found, bad
}

// isModel reports whether t or a pointer to t is a Model.
func isModel(t types.Type, model *types.Interface) bool {
	return types.Implements(t, model) || types.Implements(types.NewPointer(t), model)
}

// holdsModel reports whether a field of a struct is a Model, or a list, a map, a pointer, an atomic
// value or a struct that holds one.
func holdsModel(st *types.Struct, model *types.Interface) bool {
	seen := map[types.Type]bool{}
	var holds func(t types.Type) bool
	holds = func(t types.Type) bool {
		if seen[t] {
			return false
		}
		seen[t] = true
		if _, concrete := t.Underlying().(*types.Struct); !concrete && types.Implements(t, model) {
			return true
		}
		if n, ok := t.(*types.Named); ok && n.TypeArgs() != nil {
			return slices.ContainsFunc(slices.Collect(n.TypeArgs().Types()), holds)
		}
		switch u := t.Underlying().(type) {
		case *types.Slice:
			return holds(u.Elem())
		case *types.Array:
			return holds(u.Elem())
		case *types.Map:
			return holds(u.Elem())
		case *types.Struct:
			if isModel(t, model) {
				return true
			}
			_, local := t.(*types.Named)
			return !local && slices.ContainsFunc(slices.Collect(u.Fields()),
				func(f *types.Var) bool { return holds(f.Type()) })
		}
		return false
	}
	return slices.ContainsFunc(slices.Collect(st.Fields()), func(f *types.Var) bool { return holds(f.Type()) })
}

// unwraps reports whether t or a pointer to t has a method Unwrap() llm.Model of its own.
func unwraps(t types.Type, pkg *types.Package, model types.Type) bool {
	obj, _, _ := types.LookupFieldOrMethod(types.NewPointer(t), true, pkg, "Unwrap")
	f, ok := obj.(*types.Func)
	if !ok {
		return false
	}
	s := f.Signature()
	return s.Params().Len() == 0 && s.Results().Len() == 1 && types.Identical(s.Results().At(0).Type(), model)
}
