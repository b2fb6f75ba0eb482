package term

import (
	"fmt"
	"io"
	"strings"
)

// Screen writes to a terminal, from the position of its cursor: permanent lines, and below them
// live lines that are repainted in place. It never changes lines that have scrolled away, and it
// writes each frame with one call, so that nothing flickers. A Screen must not be used
// concurrently.
type Screen struct {
	out           io.Writer
	colours       bool
	width, height int

	live   []string // as last painted
	widths []int    // widths of the lines in live
	row    int      // row of the cursor in live
	column int
	err    error
}

// NewScreen returns a screen on w with the given size.
func NewScreen(w io.Writer, width, height int, colours bool) *Screen {
	return &Screen{out: w, colours: colours, width: max(width, 8), height: max(height, 3)}
}

// Width returns the number of columns for a line. It is one less than the width of the terminal, so
// that the terminal never wraps a line.
func (s *Screen) Width() int { return s.width - 1 }

// Height returns the number of rows of the terminal.
func (s *Screen) Height() int { return s.height }

// unknown is a live line with unknown content on the terminal.
const unknown = "\x00"

// eraseBelow clears the rows below the cursor. The row of the cursor is overwritten or cleared
// separately, because a terminal multiplexer that sees a clear from the first row saves the screen
// in its scrollback.
const eraseBelow = "\x1b7\x1b[B\r\x1b[J\x1b8"

// Cursor is a position within the live lines, from 0.
type Cursor struct{ Row, Column int }

// Resize sets the size of the terminal. The terminal has already rewrapped live lines that are
// wider than the new size.
func (s *Screen) Resize(width, height int) {
	width = max(width, 8)
	height = max(height, 3)
	if width == s.width && height == s.height {
		return
	}

	// The cursor is as many rows lower as the terminal has wrapped lines above it.
	if len(s.live) > 0 {
		rows := 0
		for i := range s.row {
			rows += max(1, (s.widths[i]+width-1)/width)
		}
		s.row = min(rows+s.column/width, height-1)
		s.live = []string{unknown}
		s.widths = []int{0}
	}
	s.width = width
	s.height = height
}

// Paint writes the permanent lines print, and paints live below them. Live lines are cut to the
// width, and the first ones are dropped if there are too many for the height. The cursor moves to
// at; nil hides it. Paint returns the error of the writer, and writes nothing after an error.
func (s *Screen) Paint(print, live []Line, at *Cursor) error {
	if s.err != nil {
		return s.err
	}
	if over := len(live) - (s.height - 1); over > 0 {
		live = live[over:]
		if at != nil {
			at = &Cursor{max(0, at.Row-over), at.Column}
		}
	}

	var b strings.Builder
	before := s.goToTop(&b)
	if len(print) > 0 || before == 0 {
		s.live = nil
	}
	for _, l := range print {
		b.WriteString(l.Render(s.colours) + "\x1b[K\r\n")
	}
	s.repaint(&b, live)
	// Nothing of the rows before stays below the new ones.
	if len(live) == 0 && before > len(print) {
		b.WriteString("\x1b[K")
	}
	if max(len(live), 1)+len(print) < before {
		b.WriteString(eraseBelow)
	}
	b.WriteString("\x1b[?7h")
	s.place(&b, at)

	// Mode 2026 shows the frame at once. Terminals that do not support it ignore it.
	_, s.err = io.WriteString(s.out, "\x1b[?2026h\x1b[?25l"+b.String()+"\x1b[?2026l")
	return s.err
}

// goToTop moves the cursor to the first live row, and returns the number of live rows of which the
// content is known.
func (s *Screen) goToTop(b *strings.Builder) (before int) {
	b.WriteString("\r")
	if s.row > 0 {
		fmt.Fprintf(b, "\x1b[%dA", s.row)
	}
	if len(s.live) > 0 && s.live[0] == unknown {
		b.WriteString(eraseBelow)
		return 0
	}
	return len(s.live)
}

// repaint writes the live rows that differ from what the terminal shows. The cursor is then in the
// last one.
func (s *Screen) repaint(b *strings.Builder, live []Line) {
	rows := make([]string, len(live))
	widths := make([]int, len(live))
	for i, l := range live {
		l = l.Cut(s.Width())
		rows[i] = l.Render(s.colours)
		widths[i] = l.Width()
	}

	// no automatic wrap, for characters that the terminal shows wider than expected
	b.WriteString("\x1b[?7l")
	for i, r := range rows {
		if i > 0 {
			b.WriteString("\r\n")
		}
		if i >= len(s.live) || s.live[i] != r {
			b.WriteString(r + "\x1b[K")
		}
	}
	s.live = rows
	s.widths = widths
	s.row = max(0, len(rows)-1)
	s.column = 0
}

// place moves the cursor from the last live row to at, and shows it. nil leaves it hidden.
func (s *Screen) place(b *strings.Builder, at *Cursor) {
	if at == nil {
		b.WriteString("\x1b[?25l")
		return
	}
	b.WriteString("\r")
	if up := s.row - at.Row; up > 0 {
		fmt.Fprintf(b, "\x1b[%dA", up)
	}
	if at.Column > 0 {
		fmt.Fprintf(b, "\x1b[%dC", min(at.Column, s.width-1))
	}
	s.row = min(at.Row, s.row)
	s.column = at.Column
	b.WriteString("\x1b[?25h")
}

// Close removes the live lines and shows the cursor. Paint may be called again afterwards.
func (s *Screen) Close() error {
	return s.Paint(nil, nil, &Cursor{})
}
