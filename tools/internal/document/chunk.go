package document

import (
	"strings"
	"unicode/utf8"
)

// The sizes that stand for zero, in bytes.
const (
	DefaultMax     = 2048
	DefaultOverlap = 200
)

// Chunk is a piece of a document.
type Chunk struct {
	Heading string // the headings above it
	Text    string
	Overlap int // how many bytes of Text, from its beginning, stand in the chunk before as well, or above the table that it is of
}

// Chunks cuts blocks into chunks of at most maxBytes (0: 2048; at least 64), without their headings. A chunk is of one part of the document. It ends where a block ends, else
// where a sentence, a line or a row ends, else at a space, and only where there is none inside of a word; never inside of a rune. Where prose goes on
// in the next chunk, that begins with up to overlap bytes (0: 200; negative: none) of the one before; a part of a table begins with the table's head.
func Chunks(blocks []Block, maxBytes, overlap int) []Chunk {
	if maxBytes == 0 {
		maxBytes = DefaultMax
	}
	if overlap == 0 {
		overlap = DefaultOverlap
	}
	c := &chunker{max: max(maxBytes, 64), overlap: max(overlap, 0)}
	for i := range blocks {
		b := &blocks[i]
		if b.Heading != c.heading {
			c.flush()
			c.heading, c.tail, c.head = b.Heading, "", ""
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
	text         strings.Builder // of the chunk at work
	over         int             // its Overlap
	head         string          // of the table that it ends with
	tail         string          // the end of the chunk before, where prose may repeat it
	flowing      bool            // the chunk at work ends with prose
}

func (c *chunker) flush() {
	c.tail = ""
	if c.text.Len() > c.over {
		text := c.text.String()
		c.out = append(c.out, Chunk{c.heading, text, c.over})
		if c.flowing {
			c.tail = c.end(text)
		}
	}
	c.text.Reset()
	c.over, c.head, c.flowing = 0, "", false
}

// end is what the next chunk may begin with.
func (c *chunker) end(text string) string {
	if c.overlap == 0 || len(text) <= c.overlap {
		return ""
	}
	cut := len(text) - c.overlap
	for cut < len(text) && !utf8.RuneStart(text[cut]) {
		cut++
	}
	tail := text[cut:]
	if space := strings.IndexAny(tail, " \n\t"); space >= 0 {
		tail = tail[space+1:]
	}
	return strings.TrimLeft(tail, " \n\t")
}

// add puts a piece of at most max bytes into the chunk at work, after sep, or into a new one.
func (c *chunker) add(sep, piece string, prose bool) {
	if c.text.Len() > 0 && c.text.Len()+len(sep)+len(piece) > c.max {
		c.flush()
	}
	switch {
	case c.text.Len() > 0:
		c.text.WriteString(sep)
	case prose && sep != "" && c.tail != "" && len(c.tail)+len(sep)+len(piece) <= c.max:
		c.text.WriteString(c.tail)
		c.text.WriteString(sep)
		c.over = c.text.Len()
	}
	c.text.WriteString(piece)
	c.flowing, c.head = prose, ""
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

// words adds a text that may be too long, cut between words.
func (c *chunker) words(sep, text string) {
	for len(text) > c.max {
		cut := c.max
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		next := cut
		after := ""
		if space := strings.LastIndexAny(text[:cut], " \n\t"); space > cut/2 {
			cut, next, after = space, space+1, text[space:space+1]
		}
		c.add(sep, text[:cut], true)
		text, sep = text[next:], after
	}
	if text != "" {
		c.add(sep, text, true)
	}
}

func (c *chunker) code(text string) {
	if len(text) <= c.max {
		c.add("\n\n", text, false)
		return
	}
	sep := "\n\n"
	for line := range strings.SplitSeq(text, "\n") {
		for len(line) > c.max {
			cut := c.max
			for !utf8.RuneStart(line[cut]) {
				cut--
			}
			c.add(sep, line[:cut], false)
			line, sep = line[cut:], ""
		}
		c.add(sep, line, false)
		sep = "\n"
	}
}

// rows keeps a table together where it fits, else its rows.
func (c *chunker) rows(b *Block) {
	size := len(b.Head)
	for _, r := range b.Rows {
		if size += 1 + len(r); size > c.max {
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
		repeat = "" // a head that is half of a chunk is no help
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

// begin puts the first row of a table with its head into a chunk.
func (c *chunker) begin(head, row string) {
	if len(head)+1+len(row) <= c.max {
		c.add("\n\n", head+"\n"+row, false)
		return
	}
	c.add("\n\n", head, false)
	c.piece("\n", head, row)
}

// piece adds a row; a chunk that begins with it begins with the head.
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
		if head != "" {
			c.text.WriteString(head + "\n")
			c.over = c.text.Len()
		}
		part, rest := row, ""
		if len(row) > room {
			cut := room
			for !utf8.RuneStart(row[cut]) {
				cut--
			}
			part, rest = row[:cut], row[cut:]
		}
		c.text.WriteString(part)
		if rest == "" {
			return
		}
		row = rest
		c.flush()
	}
}
