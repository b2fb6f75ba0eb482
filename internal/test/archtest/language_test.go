package archtest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

const pendingFile = "language_pending.txt"

// TestLanguage applies the rules of columns and words to every place that is not pending. With
// -update it removes the entries of the list that are out of date.
func TestLanguage(t *testing.T) {
	text, err := os.ReadFile("words_exceptions.txt")
	if err != nil {
		t.Fatal(err)
	}
	exceptions, err := parseExceptions(string(text))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := pages(theTree(t).root, theTree(t).product())
	if err != nil {
		t.Fatal(err)
	}
	faults := language(theFiles(t), pages, exceptions)
	if *update {
		rewrite(t, pendingFile, func(list string) string { return shorten(list, faults) })
	}
	list, err := os.ReadFile(pendingFile)
	if err != nil {
		t.Fatal(err)
	}
	report(t, checkPending(faults, listLines(string(list))))
	report(t, unusedExceptions(exceptions))
	for _, place := range slices.Sorted(maps.Keys(faults)) {
		if n := len(faults[place]); n > 0 {
			t.Logf("%5d in %s, such as %s", n, place, faults[place][0])
		}
	}
}

// shorten returns a list of pending places without places that do not exist or have no fault.
func shorten(list string, faults map[string][]string) string {
	var b strings.Builder
	for line := range strings.Lines(list) {
		if place := strings.TrimSpace(line); strings.HasPrefix(place, "#") || len(faults[place]) > 0 {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestShorten(t *testing.T) {
	const list = "# a comment\na\n\nb\nc\n"
	faults := map[string][]string{"a": {"a fault"}, "b": nil, "d": {"a fault"}}
	if got, want := shorten(list, faults), "# a comment\na\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLanguageFigures prints the figures of the whole tree: go test -v -run Language.
func TestLanguageFigures(t *testing.T) {
	var product, all []*goFile
	for _, f := range theFiles(t) {
		all = append(all, f)
		if f.shipped {
			product = append(product, f)
		}
	}
	t.Log("product:              ", prose(product))
	t.Log("with tests, equipment:", prose(all))

	pages, err := pages(theTree(t).root, theTree(t).product())
	if err != nil {
		t.Fatal(err)
	}
	var written, words int
	for _, p := range pages {
		if strings.HasPrefix(p.path, "docs/") && !p.generated() {
			written += len(strings.Fields(strings.Join(p.written(), "\n")))
			words += len(strings.Fields(p.text))
		}
	}
	t.Logf("docs: %d words in pages that are not generated, %d without their generated parts", words, written)

	largest := slices.MaxFunc(product, func(a, b *goFile) int { return len(a.lines) - len(b.lines) })
	t.Logf("largest file: %s, %d lines", largest.path, len(largest.lines))
}

// counted are the expressions whose frequency measures the language of all comments.
var counted = regexp.MustCompile(`(?i)\b(told|tells|tell|nobody|somebody|whoever|whatever|beside|inside of|mend|mends|mended|` +
	`carried out|carry out|gone on with|goes on with|left behind|those of|that of|one that|those that)\b`)

// prose describes the comments of the files: the width of the lines that hold only a comment, and
// the frequency of refused words.
func prose(files []*goFile) string {
	var lines, wide, words, refused int
	for _, f := range files {
		for _, c := range f.comments() {
			if f.code[c.line] {
				continue
			}
			lines++
			if width(f.lines[c.line-1]) > commentColumns {
				wide++
			}
		}
		for _, g := range f.ast.Comments {
			text := strings.Fields(g.Text())
			words += len(text)
			refused += len(counted.FindAllString(strings.Join(text, " "), -1))
		}
	}
	return fmt.Sprintf("%d comment lines, %.1f %% over %d columns; %d words, %.1f refused per 10,000",
		lines, percent(wide, lines), commentColumns, words, 100*percent(refused, words))
}

func TestCheckColumns(t *testing.T) {
	long := strings.Repeat("word ", 20) // 100 columns
	for _, tt := range []sample{
		{"comment", "// " + long[:97], ""},
		{"wide comment", "// " + long[:98], "a comment ends at column 101"},
		{"tab", "func f() {\n\t// " + long[:94] + "\n}", "a comment ends at column 101"},
		{"comment on code", "var x = 1 // " + long[:88], "a comment ends at column 101"},
		{"block comment", "/*\n" + long + "w\n*/", "a comment ends at column 101"},
		{"link", "// https://example.com/" + strings.Repeat("a", 100), ""},
		{"directive", "//go:generate " + long, ""},
		{"tag", "type t struct {\n\tA int `json:\"" + long[:80] + "\"`\n}", ""},
		{"wide tag", "type t struct {\n\tA int `json:\"" + long[:82] + "\"`\n}", "a struct tag ends at column 101"},
		{"code", "var x = " + strings.Repeat("1+", 55) + "11", ""},
		{"wide code", "var x = " + strings.Repeat("1+", 56) + "1", "the line has 121 columns"},
		{"literal", "var x = \"" + long + long + "\"", ""},
		{"raw literal", "var x = `\n" + long + long + "\n`", ""},
		{"code around a literal", "var x = \"" + long + "\"+y" + strings.Repeat("+y", 60), "130 without its string literals"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantComplaint(t, checkColumns(parseFile(t, "x.go", "package x\n"+tt.src+"\n")), tt.want)
		})
	}
	made := "// Code generated by a test. DO NOT EDIT.\n\npackage x\n\n// " + long + "\n"
	wantComplaint(t, checkColumns(parseFile(t, "x.go", made)), "")
}

func parseFile(t *testing.T, path, src string) *goFile {
	t.Helper()
	f, err := parseGo(path, []byte(src))
	if err != nil {
		t.Fatalf("%v in\n%s", err, src)
	}
	return f
}

func TestCheckWords(t *testing.T) {
	for _, tt := range []struct{ name, path, src, want string }{
		{"plain", "x.go", "// F returns a copy.\nfunc F() {}", ""},
		{"tell", "x.go", "// F tells the caller.\nfunc F() {}", `x.go:2: "tells": use emit`},
		{"capital", "x.go", "// Nobody calls F.\nfunc F() {}", `"Nobody"`},
		{"wrapped", "x.go", "// F is a call that was carried\n// out.\nfunc F() {}", `x.go:2: "carried out"`},
		{"second line", "x.go", "// F is\n// beside G.\nfunc F() {}", "x.go:3"},
		{"part of a word", "x.go", "// F recommends a besides.\nfunc F() {}", ""},
		{"zero value", "x.go", "// F is F. nil: none at all.\nfunc F() {}", `"nil means no limit"`},
		{"zero value in a sentence", "x.go", "// F is F: nil means no limit.\nfunc F() {}", ""},
		{"package comment", "x.go", "", `x.go:1: "one that"`},
		{"about the file", "x.go", "\n// x.go: whatever it holds.\n\nvar a int", "x.go:3"},
		{"unexported", "x.go", "// f tells the caller.\nfunc f() {}", `"tells"`},
		{"method of an unexported type", "x.go", "type t int\n// F tells.\nfunc (t) F() {}", `x.go:3: "tells"`},
		{"field", "x.go", "// T is a type.\ntype T struct {\n\t// A heals.\n\tA int\n}", `x.go:4: "heals"`},
		{"comment on a field", "x.go", "// T is a type.\ntype T struct {\n\tA int // as it is\n}", `"as it is"`},
		{"constant", "x.go", "const (\n\tA = 1 // those of B\n)", `"those of"`},
		{"constant on one line", "x.go", "const A = 1 // those of B", `"those of"`},
		{"below a constant", "x.go", "const A = 1\n\n// those of B", `"those of"`},
		{"body", "x.go", "// F is F.\nfunc F() {\n\t// left behind\n}", `"left behind"`},
		{"test", "x_test.go", "// F tells the caller.\nfunc F() {}", `x_test.go:2: "tells"`},
		{"body of a test", "x_test.go", "func F() {\n\ta := 1 // whatever\n}", `x_test.go:3: "whatever"`},
		{"its own name", "x_test.go", "// told returns a word.\nfunc told() {}", ""},
		{"the name of another", "x_test.go", "// F is told.\nfunc F() { told() }", `"told"`},
		{"output of an example", "x_test.go", "func F() {\n\t// Output:\n\t// told\n}", ""},
		{"output without an order", "x_test.go", "func F() {\n\t// Unordered output: told\n}", ""},
		{"name of a flag", "x.go", "type c struct {\n\tA int `name:\"tell-all\" help:\"All of it.\"`\n}", `"tell"`},
		{"old name of a flag", "x.go", "type c struct {\n\tA int `name:\"all\" aliases:\"tell-all\"`\n}", ""},
		{"flag", "x.go", "type c struct {\n\tA int `help:\"Who is told.\"`\n}", `"told"`},
		{"JSON form", "x.go", "type c struct {\n\tA int `json:\"told\"`\n}", ""},
		{"text", "x.go", "var e = `The call\nwas carried out.`", `x.go:3: "carried out"`},
		{"text in a body", "x.go", "func f() error { return errors.New(\"nobody listens\") }", `"nobody"`},
		{"word", "x.go", "var w = \"told\"", ""},
		{"text of a test", "x_test.go", "var e = \"it was told\"", ""},
		{"exception", "x.go", "// F tells the allowed thing.\nfunc F() {}", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			head := "package x\n"
			if tt.src == "" {
				head = "// Package x is one that works.\npackage x\n"
			}
			f := parseFile(t, tt.path, head+tt.src+"\n")
			f.shipped = !f.test()
			allowed := []*exception{{path: "x.go", fragment: "allowed thing"}}
			wantComplaint(t, checkWords(f.passages(), allowed), tt.want)
		})
	}
}

func TestCheckWordsOfPages(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"prose", "# Title\n\nIt is told.\n", `docs/x.md:3: "told"`},
		{"code", "```text\ntold\n```\n", ""},
		{"below code", "```text\ntold\n```\n\nIt mends.\n", `docs/x.md:5: "mends"`},
		{"code span", "It is `told`.\n", ""},
		{"target of a link", "[It](those-of.md#tell) is.\n", ""},
		{"table", "| a | nil: none |\n", "nil means no limit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := page{"docs/x.md", tt.text}
			wantComplaint(t, checkWords([]passage{p.passage()}, nil), tt.want)
		})
	}
}

func TestExceptions(t *testing.T) {
	const line = "x.go | a fragment | a reason\n"
	got, err := parseExceptions("# a comment\n\n" + line)
	if err != nil || len(got) != 1 || got[0].reason != "a reason" {
		t.Errorf("got %v, %v, want one exception", got, err)
	}
	wantComplaint(t, unusedExceptions(got), "covers nothing")
	for _, text := range []string{"x.go | a fragment\n", "x.go | a fragment | \n", strings.Repeat(line, maxExceptions+1)} {
		if _, err := parseExceptions(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// TestWritten shows which parts of a page count as generated.
func TestWritten(t *testing.T) {
	for _, tt := range []struct{ name, path, text, want string }{
		{"written", "docs/x.md", "one two", "one two"},
		{"made", "docs/x.md", "<!-- Made from x. -->\none", ""},
		{"table of a wire", "docs/x-wire.md", "one", ""},
		{"a part", "docs/x.md", "one\n<!-- keys: made from x -->\ntwo\n<!-- keys end -->\nthree", "one <!-- keys end --> three"},
		{"another part", "docs/x.md", "one\n<!-- begin cost -->\ntwo\n<!-- end cost -->\nthree", "one <!-- end cost --> three"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lines := page{tt.path, tt.text}.written()
			if got := strings.Join(strings.Fields(strings.Join(lines, "\n")), " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestPending applies the rules to the small trees of testdata. The file "want" of a tree holds a
// part of each complaint.
func TestPending(t *testing.T) {
	trees, err := filepath.Glob(filepath.Join("testdata", "pending", "*.txtar"))
	if err != nil || len(trees) == 0 {
		t.Fatalf("%d trees, error %v", len(trees), err)
	}
	for _, name := range trees {
		t.Run(filepath.Base(name), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var (
				files         []*goFile
				pages         []page
				pending, want []string
			)
			for _, f := range a.Files {
				switch text := string(f.Data); filepath.Ext(f.Name) {
				case ".go":
					files = append(files, parseFile(t, f.Name, text))
				case ".md":
					pages = append(pages, page{f.Name, text})
				case ".txt":
					pending = listLines(text)
				default:
					want = listLines(text)
				}
			}
			got := checkPending(language(files, pages, nil), pending)
			if len(got) != len(want) {
				t.Fatalf("got %q, want %q", got, want)
			}
			for i := range want {
				if !strings.Contains(got[i], want[i]) {
					t.Errorf("got %q, want %q", got[i], want[i])
				}
			}
		})
	}
}

// rewrite changes a file of this package.
func rewrite(t *testing.T, name string, change func(string) string) {
	t.Helper()
	old, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(change(string(old))), 0o644); err != nil {
		t.Fatal(err)
	}
}
