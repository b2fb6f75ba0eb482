package archtest

import "testing"

// TestErrorTexts requires that no product code decides by the text of an error of the project: a
// text is for people, and changes. Each exception is used.
func TestErrorTexts(t *testing.T) {
	used := map[string]bool{}
	for _, f := range theFiles(t) {
		if !f.test() {
			report(t, errorTexts(f, used))
		}
	}
	for name := range foreignTexts {
		if !used[name] {
			t.Errorf("foreignTexts has %s, which decides by no text of an error: remove it", name)
		}
	}
}

func TestCheckErrorTexts(t *testing.T) {
	const complaint = "decides by the text of an error"
	for _, c := range []struct{ name, body, want string }{
		{"part", `if strings.Contains(err.Error(), "gone") { f() }`, complaint},
		{"beginning, in lower case", `if strings.HasPrefix(strings.ToLower(err.Error()), "gone") { f() }`, complaint},
		{"cut", `what, _, _ := strings.Cut(err.Error(), ";"); f(what)`, complaint},
		{"variable", `text := err.Error(); if strings.HasSuffix(text, "gone") { f() }`, complaint},
		{"comparison", `if err.Error() == "gone" { f() }`, complaint},
		{"comparison of two", `if old.Error() != err.Error() { f() }`, complaint},
		{"switch", `switch err.Error() { case "gone": f() }`, complaint},
		{"hint", `if strings.HasPrefix(failure.Hint, "pawl") { f() }`, complaint},
		{"value", `if errors.Is(err, ErrGone) { f() }`, ""},
		{"shown", `f("it is " + err.Error())`, ""},
		{"shown without its beginning", `f(strings.TrimPrefix(err.Error(), "json: "))`, ""},
		{"without a text", `if failure.Hint == "" || err.Error() != "" { f() }`, ""},
		{"another text", `if strings.Contains(line, "gone") { f() }`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := parseFile(t, "x.go", "package x\nfunc g() {\n"+c.body+"\n}\n")
			wantComplaint(t, errorTexts(f, map[string]bool{}), c.want)
		})
	}
}
