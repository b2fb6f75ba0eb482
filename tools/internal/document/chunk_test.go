package document_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/tools/internal/document"
)

// words returns s without its spaces.
func words(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

// No text is lost or added, no chunk is too large, no chunk ends inside a rune, and each overlap
// equals the end of the chunk before.
func TestChunksProperties(t *testing.T) {
	piece := rapid.OneOf(rapid.SampledFrom([]string{". ", ".\n", "! ", "? ", "。", "！", "\n", " ", "  ", "Dr. ", "3.14", "e.g. ", "東京", "é", "🙂", "\u0301", "|", "A", "Zebra"}), rapid.StringN(0, 12, -1),
		rapid.Map(rapid.IntRange(1, 300), func(n int) string { return strings.Repeat("x", n) }))
	rapid.Check(t, func(t *rapid.T) {
		size, overlap := rapid.IntRange(64, 400).Draw(t, "max"), rapid.SampledFrom([]int{-1, 0, 10, 60}).Draw(t, "overlap")
		var blocks []document.Block
		all := ""
		for range rapid.IntRange(0, 8).Draw(t, "blocks") {
			b := document.Block{Heading: rapid.SampledFrom([]string{"", "A", "A > B"}).Draw(t, "heading"),
				Form: document.Form(rapid.IntRange(0, 2).Draw(t, "form"))}
			text := func() string {
				return strings.ToValidUTF8(strings.Join(rapid.SliceOfN(piece, 1, 60).Draw(t, "text"), ""), "?")
			}
			if b.Form == document.Rows {
				if rapid.Bool().Draw(t, "head") {
					b.Head = text()
				}
				for range rapid.IntRange(1, 5).Draw(t, "rows") {
					b.Rows = append(b.Rows, text())
				}
				all += b.Head + strings.Join(b.Rows, "")
			} else {
				b.Text = text()
				all += b.Text
			}
			blocks = append(blocks, b)
		}
		got, last := "", ""
		for i, c := range document.Chunks(blocks, size, overlap) {
			if len(c.Text) > size || !utf8.ValidString(c.Text) || c.Overlap < 0 || c.Overlap > len(c.Text) {
				t.Fatalf("chunk %d has %d bytes of %d, overlap %d: %q", i, len(c.Text), size, c.Overlap, c.Text)
			}
			got += words(c.Text[c.Overlap:])
			if over := words(c.Text[:c.Overlap]); over != "" && !strings.HasSuffix(last, over) &&
				!strings.Contains(all, c.Text[:c.Overlap-1]) {
				t.Fatalf("chunk %d begins with %q, which is the end of nothing", i, over)
			}
			last = words(c.Text)
		}
		if want := words(all); got != want {
			t.Fatalf("got  %q\nwant %q", got, want)
		}
	})
}

func chunkTexts(text string, size, overlap int) []string {
	var out []string
	for _, c := range document.Chunks([]document.Block{{Text: text}}, size, overlap) {
		out = append(out, c.Text)
	}
	return out
}

// Prose is split in these places.
func TestSentences(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"Dr. Smith came at 5.30 p. m. and left. He was tired! Was he? yes.", "Dr. Smith came at 5.30 p. m. and left.|He was tired!|Was he? yes."},
		{"See fig. 3 and vol. 2, i.e. The end. J. R. Tolkien wrote. \"So.\" He said (so.) And went.", "See fig. 3 and vol. 2, i.e. The end.|J. R. Tolkien wrote.|\"So.\"|He said (so.)|And went."},
		{"今日は晴れ。明日は雨！本当？はい", "今日は晴れ。|明日は雨！|本当？|はい"},
		{"Version 1.2.3 of example.com is out.\nand so on", "Version 1.2.3 of example.com is out.|and so on"},
	} {
		if diff := cmp.Diff(strings.Split(row.want, "|"), document.Sentences(row.text)); diff != "" {
			t.Errorf("%s: -want +got\n%s", row.text, diff)
		}
	}
	got := chunkTexts("The first sentence is here, and it is long. The second one follows it at once. The third one is the last of them.", 70, 30)
	want := []string{"The first sentence is here, and it is long.", "is here, and it is long. The second one follows it at once.", "one follows it at once. The third one is the last of them."}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// A table or a listing that fits is not split. A longer table repeats its head in each part.
func TestTables(t *testing.T) {
	head := "| a | b |\n|---|---|"
	blocks := []document.Block{{Text: strings.Repeat("w", 50)},
		{Form: document.Rows, Head: head, Rows: []string{"| 1 | 2 |", "| 3 | 4 |"}}, {Form: document.Code, Text: "```\nx\n\ny\n```"}}
	var got []string
	for _, c := range document.Chunks(blocks, 64, 0) {
		got = append(got, c.Text)
	}
	want := []string{strings.Repeat("w", 50), head + "\n| 1 | 2 |\n| 3 | 4 |\n\n```\nx\n\ny\n```"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	var rows []string
	for i := range 10 {
		rows = append(rows, fmt.Sprintf("| %d | %s |", i, strings.Repeat("z", 10)))
	}
	for i, c := range document.Chunks([]document.Block{{Form: document.Rows, Head: head, Rows: rows}}, 80, 0) {
		if !strings.HasPrefix(c.Text, head+"\n| ") || i > 0 && c.Overlap != len(head)+1 {
			t.Errorf("part %d begins with %q, overlap %d", i, c.Text, c.Overlap)
		}
	}
}

// Twice the text takes about twice the time, for any kind of content.
func TestChunksLinear(t *testing.T) {
	soak.Sequential(t)
	for _, unit := range []string{"x", "word ", "A. ", "。", "a\n\n", "|", "é", ". "} {
		run := func(n int) time.Duration {
			s := strings.Repeat(unit, n/len(unit))
			best := time.Hour
			for range 3 {
				began := time.Now()
				document.Chunks([]document.Block{{Text: s}, {Form: document.Code, Text: s},
					{Form: document.Rows, Head: "h", Rows: []string{s}}}, 0, 0)
				best = min(best, time.Since(began))
			}
			return best
		}
		small, large := run(1<<18), run(1<<22) // 16 times
		if large > 100*small+100*time.Millisecond {
			t.Errorf("%q: %v for 256 KiB, %v for 4 MiB", unit, small, large)
		}
	}
}
