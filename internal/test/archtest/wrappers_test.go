package archtest

import "testing"

// TestWrappers checks all wrappers of the module except the wrappers of tests.
func TestWrappers(t *testing.T) {
	packages, found := map[string][]*goFile{}, 0
	for _, f := range theFiles(t) {
		if !f.test() {
			packages[f.dir()] = append(packages[f.dir()], f)
		}
	}
	for _, files := range packages {
		wrappers, bad := checkWrappers(files)
		found += wrappers
		report(t, bad)
	}
	if found < 10 {
		t.Errorf("found only %d wrappers: the rule would pass because there is nothing to check", found)
	}
}

func TestCheckWrappers(t *testing.T) {
	const stream = "func (w *w) Stream(ctx context.Context, req *llm.Request) {}\n"
	for _, s := range []sample{
		{"no Unwrap", "type w struct{ inner llm.Model }\n" + stream, "type w wraps a llm.Model"},
		{"embedded", "type w struct{ llm.Model }\n" + stream, "type w wraps a llm.Model"},
		{"several", "type w struct{ all []llm.Model }\n" + stream, "type w wraps a llm.Model"},
		{"Unwrap", "type w struct{ inner llm.Model }\n" + stream + "func (w *w) Unwrap() llm.Model { return w.inner }", ""},
		{"no Model", "type w struct{ inner int }\n" + stream, ""},
		{"Stream of a Runner", "type w struct{ inner llm.Model }\nfunc (w) Stream(ctx context.Context, msgs ...llm.Message) {}", ""},
		{"no Stream", "type w struct{ inner llm.Model }\n", ""},
	} {
		f, err := parseGo("x/x.go", []byte("package x\n"+s.src))
		if err != nil {
			t.Fatal(err)
		}
		_, got := checkWrappers([]*goFile{f})
		t.Log(s.name)
		wantComplaint(t, got, s.want)
	}
}
