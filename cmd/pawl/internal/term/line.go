package term

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Style is the look of a span: attributes and one colour, combined with |. The zero value is plain
// text.
type Style uint16

// The attributes.
const (
	Bold Style = 1 << iota
	Dim
	Italic
	Underline
	Strike
	Reverse
)

// The colours, from the palette of the terminal, so that they fit its background.
const (
	Red Style = (iota + 1) << 8
	Green
	Yellow
	Blue
	Magenta
	Cyan
)

const colours = 0xff00

// codes are the SGR parameters of the attributes, in the order of their bits.
var codes = [...]string{"1", "2", "3", "4", "9", "7"}

// write writes text in the style. Control characters in text are made visible and have no effect.
func (s Style) write(b *strings.Builder, text string, on bool) {
	text = oneLine(Visible(text))
	if !on || s == 0 || text == "" {
		b.WriteString(text)
		return
	}
	b.WriteString("\x1b[")
	sep := ""
	for i, c := range codes {
		if s&(1<<i) != 0 {
			b.WriteString(sep + c)
			sep = ";"
		}
	}
	if c := s & colours >> 8; c != 0 {
		b.WriteString(sep + "3" + string('0'+rune(c)))
	}
	b.WriteString("m" + text + "\x1b[0m")
}

func oneLine(s string) string {
	if strings.ContainsAny(s, "\n\t") {
		return strings.NewReplacer("\n", " ", "\t", "    ").Replace(s)
	}
	return s
}

// Span is a part of a line with one style. Its text may contain any characters: control characters
// are made visible when it is written.
type Span struct {
	Text  string
	Style Style
}

// Line is a line of a screen, without a line end. The zero value is an empty line. Lines are
// immutable: their methods return new lines.
type Line []Span

// Text returns a line with one span.
func Text(style Style, text string) Line { return Line{{text, style}} }

// Add returns l followed by text. It continues the last span if the style is the same.
func (l Line) Add(style Style, text string) Line {
	n := len(l) - 1
	switch {
	case text == "":
		return l
	case n >= 0 && l[n].Style == style:
		return append(l[:n:n], Span{l[n].Text + text, style})
	}
	return append(l[:len(l):len(l)], Span{text, style})
}

// With returns l followed by the spans more.
func (l Line) With(more ...Span) Line { return append(l[:len(l):len(l)], more...) }

// Styled returns l with style added to each span. A span that has a colour keeps it.
func (l Line) Styled(style Style) Line {
	out := make(Line, len(l))
	for i, s := range l {
		if s.Style&colours != 0 {
			s.Style |= style &^ colours
		} else {
			s.Style |= style
		}
		out[i] = s
	}
	return out
}

// Width returns the number of columns that l occupies.
func (l Line) Width() int {
	n := 0
	for _, s := range l {
		n += Width(oneLine(Visible(s.Text)))
	}
	return n
}

// String returns the text of l without styles, with control characters made visible.
func (l Line) String() string { return l.Render(false) }

// Render returns the bytes that show l on a terminal, with or without colours.
func (l Line) Render(colours bool) string {
	var b strings.Builder
	for _, s := range l {
		s.Style.write(&b, s.Text, colours)
	}
	return b.String()
}

// Cut returns l cut to width columns. A line that is cut ends in "…".
func (l Line) Cut(width int) Line {
	if l.Width() <= width {
		return l
	}
	var out Line
	for _, s := range l {
		text := oneLine(Visible(s.Text))
		w := Width(text)
		if w < width {
			out = append(out, Span{text, s.Style})
			width -= w
			continue
		}
		return append(out, Span{Cut(text+"…", width), s.Style})
	}
	return out
}

// cell is a grapheme cluster with its style.
type cell struct {
	text  string
	width int
	style Style
}

func (l Line) cells() []cell {
	var out []cell
	for _, s := range l {
		rest := oneLine(Visible(s.Text))
		for rest != "" {
			var c cell
			c.text, rest, c.width = first(rest)
			c.style = s.Style
			out = append(out, c)
		}
	}
	return out
}

func joined(cells []cell) Line {
	var out Line
	var b strings.Builder
	for i := 0; i < len(cells); {
		style := cells[i].style
		b.Reset()
		for ; i < len(cells) && cells[i].style == style; i++ {
			b.WriteString(cells[i].text)
		}
		out = append(out, Span{b.String(), style})
	}
	return out
}

// Wrap breaks l into lines of at most width columns, between words or next to wide characters. A
// word longer than width is broken. It returns at least one line.
func (l Line) Wrap(width int) []Line {
	width = max(width, 1)
	if l.Width() <= width {
		return []Line{l}
	}

	cells := l.cells()
	var out []Line
	for start := 0; start < len(cells); {
		last, next := breakOf(cells, start, width)
		// No spaces stand at a break, on either side of it.
		for next < len(cells) && last > start && isSpace(cells[last-1]) {
			last--
		}
		out = append(out, joined(cells[start:last]))
		for next < len(cells) && next > start && isSpace(cells[next]) {
			next++
		}
		start = next
	}
	return out
}

// breakOf returns the end of the line that begins at start and has at most width columns, and the
// start of the next one.
func breakOf(cells []cell, start, width int) (last, next int) {
	used := 0
	end := start
	last = -1
	for end < len(cells) && (used+cells[end].width <= width || end == start) {
		used += cells[end].width
		switch {
		case isSpace(cells[end]):
			last = end
			next = end + 1
		// Between wide characters, as in Chinese, a line may break anywhere.
		case cells[end].width == 2:
			last = end + 1
			next = end + 1
		}
		end++
	}

	switch {
	case end == len(cells):
		return end, end
	case isSpace(cells[end]): // the space is the first cell that does not fit
		return end, end + 1
	case cells[end].width == 2 || last <= start:
		return end, end
	}
	return last, next
}

func isSpace(c cell) bool { return c.text == " " }

// Indent puts first before the first line and rest before the other lines.
func Indent(lines []Line, first, rest Line) []Line {
	out := make([]Line, len(lines))
	for i, l := range lines {
		head := rest
		if i == 0 {
			head = first
		}
		out[i] = head.With(l...)
	}
	return out
}

// Chop breaks l into lines of at most width columns, within words if necessary. It returns at least
// one line.
func (l Line) Chop(width int) (out []Line) {
	cells := l.cells()
	for {
		used := 0
		n := 0
		for n < len(cells) && (used+cells[n].width <= width || n == 0) {
			used += cells[n].width
			n++
		}
		out = append(out, joined(cells[:n]))
		cells = cells[n:]
		if len(cells) == 0 {
			return out
		}
	}
}

// Visible returns s with all characters that could control a terminal written as escapes: control
// characters except newline and tab, characters that change the direction of text, and bytes that
// are not UTF-8. Text of a model or a tool is shown and has no other effect.
func Visible(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, Hidden) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == '\r' && strings.HasPrefix(s[n:], "\n"): // a Windows line end
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case Hidden(r) && r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case Hidden(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// Hidden reports whether r is a character that a terminal interprets or does not show. Newline and
// tab are not hidden.
func Hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case unicode.IsControl(r):
		return true
	}
	return unicode.In(r, directions, invisible)
}

// directions are the marks of text direction.
var directions = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x061C, Hi: 0x061C, Stride: 1},
	{Lo: 0x200E, Hi: 0x200F, Stride: 1},
	{Lo: 0x202A, Hi: 0x202E, Stride: 1},
	{Lo: 0x2066, Hi: 0x2069, Stride: 1},
}}

// invisible are the line ends of Unicode and characters without a shape.
var invisible = &unicode.RangeTable{
	R16: []unicode.Range16{{Lo: 0x2028, Hi: 0x2029, Stride: 1}, {Lo: 0xFEFF, Hi: 0xFEFF, Stride: 1}},
	R32: []unicode.Range32{{Lo: 0xE0000, Hi: 0xE007F, Stride: 1}},
}

// Exact is Visible for text that a person decides about: each character without a shape of its own
// is an escape, so that no text hides in it. The selectors and the joiners of an emoji stay.
func Exact(s string) string {
	var b strings.Builder
	last := '\n' // the character before that has a shape
	for i, r := range s {
		_, n := utf8.DecodeRuneInString(s[i:])
		after, _ := utf8.DecodeRuneInString(s[i+n:])
		switch {
		case selects(last, r), joins(last, r, after):
			b.WriteString(s[i : i+n])
		case !shapeless(r) && !(unicode.Is(unicode.M, r) && unicode.IsSpace(last)):
			b.WriteString(s[i : i+n])
		default:
			fmt.Fprintf(&b, `\u{%x}`, r)
			// The escape itself has a shape, so that a mark that follows it is not hidden.
			r = '}'
		}
		last = r
	}
	return Visible(b.String())
}

// The characters that change the emoji before them.
const (
	emojiSelector = 0xFE0F
	joiner        = 0x200D
)

// isEmoji reports whether a selector or a joiner may follow r.
func isEmoji(r rune) bool {
	return unicode.In(r, unicode.So, unicode.Sk) && r > 0x203B && r != utf8.RuneError
}

// selects reports whether r is the selector of the emoji before it.
func selects(before, r rune) bool { return r == emojiSelector && isEmoji(before) }

// joins reports whether r joins two emojis, of which the first may have its selector.
func joins(before, r, after rune) bool {
	if r != joiner || !isEmoji(before) && before != emojiSelector {
		return false
	}
	return unicode.Is(unicode.So, after) && after != utf8.RuneError && !shapeless(after)
}

// shapeless reports whether r is not a control character, and nothing of it is seen.
func shapeless(r rune) bool {
	isBlank := r == 0x2800 || r == 0x1D159 // an empty Braille pattern, a note without a head
	return isBlank || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp,
		unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point,
		unicode.Noncharacter_Code_Point)
}

// Width returns the number of columns of plain text: 2 for a Chinese character or an emoji, 0 for a
// combining mark.
func Width(s string) int {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return uniseg.StringWidth(s)
		}
	}
	return len(s)
}

// first splits off the first grapheme cluster, and returns its width.
func first(s string) (letter, rest string, width int) {
	// An ASCII character is a cluster if no mark follows, which would not be ASCII.
	plain := len(s) > 0 && s[0] < utf8.RuneSelf
	if plain && (len(s) == 1 || s[1] < utf8.RuneSelf) {
		return s[:1], s[1:], 1
	}
	letter, rest, width, _ = uniseg.FirstGraphemeClusterInString(s, -1)
	return letter, rest, width
}

// Cut returns plain text cut to width columns. Text that is cut ends in "…".
func Cut(s string, width int) string {
	if len(s) <= width || Width(s) <= width {
		return s
	}
	if width <= 0 {
		return ""
	}
	used := 0
	rest := s
	for rest != "" {
		_, more, w := first(rest)
		if used+w > width-1 {
			break
		}
		used += w
		rest = more
	}
	return s[:len(s)-len(rest)] + "…"
}
