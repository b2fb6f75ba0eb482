package markdown_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/cmd/pawl/internal/show/markdown"
	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
)

var update = flag.Bool("update", false, "write what is shown into the files of testdata")

func Example() {
	s := markdown.New(30)
	for _, fragment := range []string{"# Umbre", "llas\n\nIt **rai", "ns** in Oslo.\n\n- ta", "ke one\n"} {
		for _, l := range s.Write(fragment) {
			fmt.Println(l)
		}
	}
	for _, l := range s.Close() {
		fmt.Println(l)
	}
	// Output:
	// Umbrellas
	//
	// It rains in Oslo.
	//
	// • take one
}

// marked returns the lines with their styles as text, as in [b:bold], for golden files.
func marked(lines []term.Line) string {
	names := []struct {
		style term.Style
		name  string
	}{{term.Bold, "b"}, {term.Dim, "d"}, {term.Italic, "i"}, {term.Underline, "u"}, {term.Strike, "s"}}
	var b strings.Builder
	for _, l := range lines {
		for _, s := range l {
			name := ""
			for _, n := range names {
				if s.Style&n.style != 0 {
					name += n.name
				}
			}
			if c := s.Style >> 8; c != 0 {
				name += "-rgylmc"[c : c+1]
			}
			if name == "" {
				b.WriteString(s.Text)
			} else {
				b.WriteString("[" + name + ":" + s.Text + "]")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func plain(lines []term.Line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	return b.String()
}

// Each file holds a text and its rendering in 80 columns, in 40 columns, and with styles.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d files, %v", len(files), err)
	}
	for _, name := range files {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		in := string(a.Files[0].Data)
		got := &txtar.Archive{Comment: a.Comment, Files: []txtar.File{
			a.Files[0],
			{Name: "80", Data: []byte(plain(markdown.Render(in, 79)))},
			{Name: "40", Data: []byte(plain(markdown.Render(in, 39)))},
			{Name: "styles", Data: []byte(marked(markdown.Render(in, 79)))},
		}}
		text := txtar.Format(got)
		if *update {
			if err := os.WriteFile(name, text, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if diff := cmp.Diff(string(txtar.Format(a)), string(text)); diff != "" {
			t.Errorf("%s, want -, got +\n%s", name, diff)
		}
	}
}

// pieces are the parts of generated texts: each form of Markdown, and incomplete forms.
var pieces = []string{"# ", "## x", "- ", "1. ", "  - ", "> ", "```go\n", "```\n", "~~~", "| a | b |\n",
	"|---|:-:|\n", "**", "*", "_", "`", "~~", "[x](", "http://a.b/c)", "](", "!", "\\", "<", ">", "&amp;",
	"\n", "\n\n", "  \n", "\t", "---\n", "===\n", "word ", "word", "日本語", "é", "👩‍👩‍👧", "\r\n", "\x1b[31m", "\u202e", "\xff", "    ", "[ ] ", "x := \"a\" // b", strings.Repeat("long ", 90)}

// The fragments of a text do not change its lines. Open has no effect on them.
func TestCutAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 25).Draw(t, "text"), "")
		width := rapid.IntRange(10, 90).Draw(t, "width")
		want := markdown.Render(text, width)
		s := markdown.New(width)
		var got []term.Line
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, min(len(rest), 40)).Draw(t, "cut")
			if rapid.Bool().Draw(t, "far") {
				n = rapid.IntRange(1, len(rest)).Draw(t, "cut")
			}
			got = append(got, s.Write(rest[:n])...)
			if look := rapid.IntRange(0, 9).Draw(t, "look"); look == 0 {
				before := marked(s.Open())
				if again := marked(s.Open()); again != before {
					t.Fatalf("to look at what is open changes it:\n%s\n%s", before, again)
				}
			}
			rest = rest[n:]
		}
		got = append(got, s.Close()...)
		if diff := cmp.Diff(marked(want), marked(got)); diff != "" {
			t.Fatalf("%q, whole -, cut +\n%s", text, diff)
		}
	})
}

// blocks are the parts of generated documents. There is no rule after a table among them: goldmark
// takes it for the underline of the paragraph before the table.
var blocks = []string{"# head\n", "para one\nmore **b\nold** x\n", "- a\n", "- b\n  cont\n", "  - sub\n",
	"  - sub2\n    1. deep\n    2. deeper\n", "\n", "\n", "  inner para\n",
	"- x\n  ```go\n  code := 1\n\n  more\n  ```\n  after\n", "1. one\n2. two\n", "   - sub of two\n", "> quote\n> more\n",
	"> - ql\n>   para\n>\n> para2\n", "> ```\n> code\n> ```\n", "```\nc\n\nd\n```\n", "| a | b |\n|---|---|\n| 1 | 2 |\n",
	"  | a | b |\n  |---|---|\n  | 1 | 2 |\n", "- [ ] task\n", "10. ten\n\n    inside ten\n", "* star\n", "-   wide\n\n    in wide\n",
	"    code\n"}

// A text that is parsed block by block has the lines of a text that is parsed in one piece, except
// empty ones.
func TestWhole(t *testing.T) {
	shown := func(lines []term.Line) string {
		var b strings.Builder
		for _, l := range lines {
			if s := strings.TrimRight(l.String(), " "); strings.Trim(s, " ▎") != "" {
				b.WriteString(s + "\n")
			}
		}
		return b.String()
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(blocks), 1, 7).Draw(t, "text"), "")
		if diff := cmp.Diff(shown(markdown.RenderAtOnce(text, 60)), shown(markdown.Render(text, 60))); diff != "" {
			t.Fatalf("%q, at once -, by blocks +\n%s", text, diff)
		}
	})
}

// harmless fails if a line contains a character that controls a terminal.
func harmless(t *testing.T, in string, width int, lines []term.Line) {
	t.Helper()
	for _, l := range lines {
		text := l.String()
		if i := strings.IndexFunc(text, func(r rune) bool {
			return r == '\n' || r == '\t' || term.Hidden(r)
		}); i >= 0 || !utf8.ValidString(text) {
			t.Fatalf("%q: %q reached the terminal", in, text)
		}
	}
}

func FuzzStream(f *testing.F) {
	for _, p := range pieces {
		f.Add(p+"x"+p, 20)
	}
	f.Add(strings.Repeat("q", 5000)+"**"+strings.Repeat("long ", 1000), 20)
	f.Add("| a | b |\n|---|---|\n| "+strings.Repeat("c ", 50)+"| d |\n", 12)
	f.Fuzz(func(t *testing.T, text string, width int) {
		width = 10 + (width&0x7f)%100
		whole := markdown.Render(text, width)
		harmless(t, text, width, whole)
		s := markdown.New(width)
		var got []term.Line
		for i := range len(text) {
			got = append(got, s.Write(text[i:i+1])...)
			if i%97 == 0 {
				harmless(t, text, width, s.Open())
			}
		}
		got = append(got, s.Close()...)
		if diff := cmp.Diff(marked(whole), marked(got)); diff != "" {
			t.Fatalf("%q, whole -, byte by byte +\n%s", text, diff)
		}
	})
}

// Open treats an open emphasis as closed, so that its marks do not appear and disappear.
func TestOpen(t *testing.T) {
	for in, want := range map[string]string{
		"It **rai":               "It [b:rai]\n",
		"It **rains*":            "It [b:rains]\n",
		"It `cod":                "It [y:cod]\n",
		"It **":                  "It\n",
		"2 * 3":                  "2 * 3\n",
		"```go\nx := 1\ny":       "  y\n",
		"| a | b |\n|---|---|\n": "[b:a][d: │ ][b:b]\n[d:──┼──]\n",
	} {
		s := markdown.New(40)
		s.Write(in)
		got := marked(s.Open())
		if got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// The work for one fragment is bounded: a megabyte without a line end, in small fragments, is fast.
func TestLongLine(t *testing.T) {
	s := markdown.New(80)
	lines := 0
	for range 1 << 17 {
		lines += len(s.Write("abcdefg "))
	}
	lines += len(s.Close())
	if want := 1 << 20 / 80; lines < want {
		t.Errorf("got %d lines, want at least %d", lines, want)
	}
}
