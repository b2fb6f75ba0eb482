package document

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-go/pawl/internal/text"
)

// The default sizes, in bytes.
const (
	DefaultMax     = 2048
	DefaultOverlap = 200
)

// Chunk is a piece of a document.
type Chunk struct {
	Heading string // the headings above it
	Text    string
	// Overlap is the number of bytes at the beginning of Text that are repeated from the chunk
	// before, or from the head of its table.
	Overlap int
}

// Chunks splits blocks into chunks of at most maxBytes, without counting their headings (0 means
// 2048, the minimum is 64). A chunk belongs to one part of the document. It ends where a block
// ends, otherwise where a sentence, a line or a row ends, otherwise at a space, and only without
// any space inside a word. It never ends inside a rune. If prose continues in the next chunk, that
// chunk begins with up to overlap bytes of the chunk before (0 means 200, negative means none). A
// chunk with a later part of a table begins with the head of the table.
func Chunks(blocks []Block, maxBytes, overlap int) []Chunk {
	maxBytes = cmp.Or(maxBytes, DefaultMax)
	overlap = cmp.Or(overlap, DefaultOverlap)
	c := &chunker{max: max(maxBytes, 64), overlap: max(overlap, 0)}
	for i := range blocks {
		b := &blocks[i]
		// A passage from two sections would be cited with the heading of one.
		if b.Heading != c.heading {
			c.flush()
			c.heading = b.Heading
			c.tail = ""
			c.head = ""
		}

		switch {
		case b.Form == Rows:
			c.rows(b)
		case b.Form == Code:
			c.code(b.Text)
		default:
			c.prose(b.Text)
		}
	}
	c.flush()
	return c.out
}

type chunker struct {
	max, overlap int
	heading      string
	out          []Chunk
	text         strings.Builder // text of the current chunk
	over         int             // Overlap of the current chunk
	head         string          // head of the table at its end
	tail         string          // end of the previous chunk, if it may be repeated
	flowing      bool            // the current chunk ends with prose
}

func (c *chunker) flush() {
	c.tail = ""
	if c.text.Len() > c.over {
		text := c.text.String()
		c.out = append(c.out, Chunk{c.heading, text, c.over})
		if c.flowing {
			c.tail = c.overlapOf(text)
		}
	}
	c.text.Reset()
	c.over = 0
	c.head = ""
	c.flowing = false
}

// overlapOf returns the text with which the next chunk may begin.
func (c *chunker) overlapOf(s string) string {
	if c.overlap == 0 || len(s) <= c.overlap {
		return ""
	}
	tail := s[text.RuneAfter(s, len(s)-c.overlap):]
	if space := strings.IndexAny(tail, " \n\t"); space >= 0 {
		tail = tail[space+1:]
	}
	return strings.TrimLeft(tail, " \n\t")
}

// add appends a piece of at most max bytes to the current chunk, after sep, or begins a new one.
func (c *chunker) add(sep, piece string, prose bool) {
	if c.text.Len() > 0 && c.text.Len()+len(sep)+len(piece) > c.max {
		c.flush()
	}
	switch {
	case c.text.Len() > 0:
		c.text.WriteString(sep)
	case prose && sep != "" && c.tail != "":
		if len(c.tail)+len(sep)+len(piece) > c.max {
			break
		}
		c.text.WriteString(c.tail)
		c.text.WriteString(sep)
		c.over = c.text.Len()
	}
	c.text.WriteString(piece)
	c.flowing = prose
	c.head = ""
}

func (c *chunker) prose(text string) {
	if len(text) <= c.max {
		c.add("\n\n", text, true)
		return
	}
	sep := "\n\n"
	for _, s := range sentences(text) {
		c.words(sep, s.text)
		sep = s.after
	}
}

// words adds a text that may be too long. It is split between words.
func (c *chunker) words(sep, s string) {
	for len(s) > c.max {
		cut := text.RuneBefore(s, c.max)
		next := cut
		after := ""
		if space := strings.LastIndexAny(s[:cut], " \n\t"); space > cut/2 {
			cut = space
			next = space + 1
			after = s[space : space+1]
		}
		c.add(sep, s[:cut], true)
		s = s[next:]
		sep = after
	}
	if s != "" {
		c.add(sep, s, true)
	}
}

func (c *chunker) code(s string) {
	if len(s) <= c.max {
		c.add("\n\n", s, false)
		return
	}
	sep := "\n\n"
	for line := range strings.SplitSeq(s, "\n") {
		for len(line) > c.max {
			cut := text.RuneBefore(line, c.max)
			c.add(sep, line[:cut], false)
			line = line[cut:]
			sep = ""
		}
		c.add(sep, line, false)
		sep = "\n"
	}
}

// rows keeps a table in one chunk if it fits, and otherwise keeps its rows whole.
func (c *chunker) rows(b *Block) {
	size := len(b.Head)
	for _, r := range b.Rows {
		size += 1 + len(r)
		if size > c.max {
			break
		}
	}
	if size <= c.max && c.text.Len()+2+size > c.max {
		c.flush()
	}
	first := true
	for _, r := range b.Rows {
		c.row(b.Head, r, &first)
	}
}

func (c *chunker) row(head, row string, first *bool) {
	repeat := head
	if len(head) > c.max/2 {
		repeat = "" // a head that fills half of a chunk does not help
	}
	if *first {
		*first = false
		if head != "" && repeat == "" {
			c.code(head)
		} else if head != "" {
			c.begin(head, row)
			return
		}
		c.piece("\n\n", "", row)
		return
	}
	c.piece("\n", repeat, row)
}

// begin begins a chunk with the head and the first row of a table.
func (c *chunker) begin(head, row string) {
	if len(head)+1+len(row) <= c.max {
		c.add("\n\n", head+"\n"+row, false)
		return
	}
	c.add("\n\n", head, false)
	c.piece("\n", head, row)
}

// piece adds a row. If the row begins a chunk, the head precedes it.
func (c *chunker) piece(sep, head, row string) {
	if c.text.Len() > 0 && c.text.Len()+len(sep)+len(row) <= c.max {
		c.add(sep, row, false)
		return
	}
	c.flush()
	room := c.max
	if head != "" {
		room -= len(head) + 1
	}

	for {
		// A row without its head means nothing when it is found alone.
		if head != "" {
			c.text.WriteString(head + "\n")
			c.over = c.text.Len()
		}
		part := row
		rest := ""
		if len(row) > room {
			cut := text.RuneBefore(row, room)
			part = row[:cut]
			rest = row[cut:]
		}
		c.text.WriteString(part)
		if rest == "" {
			return
		}
		row = rest
		c.flush()
	}
}

// sentence is a sentence and the white space after it: "\n" for a line break, " " for other white
// space, "" for none.
type sentence struct{ text, after string }

// sentences splits text after . ! ? before a space and a capital letter, a line break or the end.
// It also splits after Chinese and Japanese full stops anywhere. A stop after an abbreviation or an
// initial, or inside a number, does not end a sentence.
func sentences(text string) []sentence {
	var out []sentence
	begin := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		at := i
		i += size
		cjk := strings.ContainsRune("。！？｡", r)
		if !cjk && !strings.ContainsRune(".!?", r) {
			continue
		}

		// Quotes and brackets behind the stop belong to the sentence.
		i += closing(text[i:])
		next := len(text) - len(strings.TrimLeft(text[i:], " \n\t"))
		if !cjk && !ends(text, begin, at, i, next) {
			continue
		}

		after := ""
		if gap := text[i:next]; strings.Contains(gap, "\n") {
			after = "\n"
		} else if gap != "" {
			after = " "
		}
		out = append(out, sentence{text[begin:i], after})
		begin = next
		i = next
	}
	if begin < len(text) {
		out = append(out, sentence{text[begin:], ""})
	}
	return out
}

// closing returns the number of bytes of the marks at the beginning of text that belong to the
// sentence before it.
func closing(text string) int {
	n := 0
	for n < len(text) {
		r, size := utf8.DecodeRuneInString(text[n:])
		if !strings.ContainsRune(`"')]}”’»」』.!?。！？`, r) {
			break
		}
		n += size
	}
	return n
}

// ends reports whether the stop at text[at] ends its sentence. The sentence continues to from, and
// spaces follow up to next.
func ends(text string, begin, at, from, next int) bool {
	if next == len(text) {
		return true
	}
	if next == from { // no space: a decimal, an address or a version
		return false
	}
	if text[at] == '.' && abbreviated(text[begin:at]) {
		return false
	}
	if strings.Contains(text[from:next], "\n") {
		return true
	}
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(text[next:min(len(text), next+8)], `"'([{“‘«`))
	return unicode.IsUpper(r) || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

// abbreviated reports whether text ends in an abbreviation or in an initial.
func abbreviated(text string) bool {
	const longest = 8
	tail := text[max(0, len(text)-longest):]
	word := tail[strings.LastIndexAny(tail, " \n\t(\"'[")+1:]
	if len(word) == 1 && word[0] >= 'A' && word[0] <= 'Z' {
		return true
	}
	switch strings.ToLower(word) {
	case "mr", "mrs", "ms", "dr", "prof", "sr", "jr", "st",
		"vs", "etc", "e.g", "i.e", "cf", "al", "approx", "est",
		"fig", "figs", "no", "nos", "vol", "pp", "p", "ch", "sec", "eq", "ed", "eds",
		"inc", "ltd", "co", "corp", "dept",
		"jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec",
		"z.b", "d.h", "u.a", "bzw", "ca":
		return true
	}
	return false
}
