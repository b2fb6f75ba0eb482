package archtest

import "go/ast"

// checkWrappers returns the number of Models of a package that wrap another, and the wrappers
// without a method Unwrap. Such a type hides the abilities of the wrapped Model from llm.As.
func checkWrappers(files []*goFile) (found int, bad []string) {
	type model struct{ wraps, stream, unwrap bool }
	types := map[string]*model{}
	of := func(name string) *model {
		if types[name] == nil {
			types[name] = new(model)
		}
		return types[name]
	}
	for _, f := range files {
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					m := of(receiver(d))
					m.stream = m.stream || streams(d)
					m.unwrap = m.unwrap || d.Name.Name == "Unwrap"
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					ts, ok := s.(*ast.TypeSpec)
					if !ok {
						continue
					}
					if st, ok := ts.Type.(*ast.StructType); ok {
						of(ts.Name.Name).wraps = holdsModel(st)
					}
				}
			}
		}
	}
	for name, m := range types {
		if !m.wraps || !m.stream {
			continue
		}
		if found++; !m.unwrap {
			bad = append(bad, files[0].dir()+": type "+name+" wraps a llm.Model and has no method Unwrap, so llm.As finds no ability through it")
		}
	}
	return found, bad
}

// streams reports whether d is the method Stream of a Model.
func streams(d *ast.FuncDecl) bool {
	in := d.Type.Params.List
	if d.Name.Name != "Stream" || len(in) != 2 {
		return false
	}
	_, request := in[1].Type.(*ast.StarExpr)
	return request
}

// holdsModel reports whether a struct has a field of type llm.Model or []llm.Model.
func holdsModel(st *ast.StructType) bool {
	for _, field := range st.Fields.List {
		t := field.Type
		if list, ok := t.(*ast.ArrayType); ok {
			t = list.Elt
		}
		if s, ok := t.(*ast.SelectorExpr); ok && s.Sel.Name == "Model" {
			if pkg, ok := s.X.(*ast.Ident); ok && pkg.Name == "llm" {
				return true
			}
		}
	}
	return false
}
