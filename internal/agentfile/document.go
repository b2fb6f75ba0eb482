package agentfile

// document.go: files of other kinds, such as suites of evaluations, that are read by the rules of
// agents' files.

import "reflect"

// Document is a file of another kind that was read. It collects further faults, each with its place
// in the file.
type Document struct{ reading *reading }

// ReadDocument reads the only document of a file into the struct that into points to, by the yaml
// tags of its fields. The rules of agents' files hold: unknown keys, wrong values and missing keys
// are findings with a place and a hint, and ${NAME} is expanded in values.
func ReadDocument(name string, text []byte, into any, o *LoadOptions) *Document {
	r := newReading(name, o)
	roots := r.documents(text)
	if len(roots) == 0 && len(r.findings) == 0 {
		r.empty("the file is empty", "")
	}
	if len(roots) > 0 {
		r.places[""] = place{roots[0].Line, roots[0].Column}
		r.value(roots[0], reflect.ValueOf(into).Elem(), "", "")
	}
	if len(roots) > 1 {
		r.report(CodeBadValue, roots[1], "", "write it into a file of its own", "the file has a second document")
	}
	return &Document{r}
}

// Report adds a fault of the value at a path, such as cases[2].checks[0].
func (d *Document) Report(code Code, path, hint, message string) {
	d.reading.placed(code, path, hint, "%s", message)
}

// Err returns all findings in the order of their lines, or nil.
func (d *Document) Err() error { return d.reading.err() }
