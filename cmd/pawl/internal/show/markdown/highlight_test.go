package markdown_test

import (
	"testing"

	"github.com/pawl-go/pawl/cmd/pawl/internal/show/markdown"
)

// Code of a known language has colours, which change none of its characters. The code of a language
// without a name has none.
func TestCodeColours(t *testing.T) {
	render := func(fence, code string, colours bool) string {
		s := markdown.New(80)
		var all []string
		lines := s.Write("```" + fence + "\n" + code + "\n```\n")
		for _, l := range append(lines, s.Close()...) {
			all = append(all, l.Render(colours))
		}
		return all[len(all)-1] // the name of the language stands above
	}
	for _, test := range []struct{ lang, code, want string }{
		{"go", `return "a // b", 12 // why`, "  \x1b[35mreturn\x1b[0m \x1b[32m\"a // b\"\x1b[0m, \x1b[36m12\x1b[0m \x1b[2m// why\x1b[0m"},
		{"python", `def f(x): # why`, "  \x1b[35mdef\x1b[0m f(x): \x1b[2m# why\x1b[0m"},
		{"sh", `echo "open`, "  echo \x1b[32m\"open\x1b[0m"},
		{"json", `{"a": null}`, "  {\x1b[32m\"a\"\x1b[0m: \x1b[35mnull\x1b[0m}"},
		{"", `return 1`, "  return 1"},
		{"klingon", `return 1`, "  return 1"},
	} {
		if got := render(test.lang, test.code, true); got != test.want {
			t.Errorf("%s: %s: got %q; want %q", test.lang, test.code, got, test.want)
		}
		if got := render(test.lang, test.code, false); got != "  "+test.code {
			t.Errorf("%s: %s: without colours %q", test.lang, test.code, got)
		}
	}
}
