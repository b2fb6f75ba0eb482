package term

import (
	"fmt"
	"io"
	"strings"
)

// Screen writes to a terminal from where its cursor stands: lines that stay, and under them a few
// live ones that are painted again in place. What has scrolled away is never touched, and one write
// paints one frame, so nothing flickers. It may be used by one goroutine at a time.
type Screen struct {
	w             io.Writer
	colours       bool
	width, height int

	live   []string // as painted
	widths []int    // of live
	row    int      // where the cursor stands in live
	column int
	err    error
}

// NewScreen returns a screen of width and height on w.
func NewScreen(w io.Writer, width, height int, colours bool) *Screen {
	return &Screen{w: w, colours: colours, width: max(width, 8), height: max(height, 3)}
}

// Width returns how many columns a line has room for: one less than the terminal has, so that none
// wraps by itself.
func (s *Screen) Width() int { return s.width - 1 }

// Height returns how many rows the terminal has.
func (s *Screen) Height() int { return s.height }

// unknown is a live line of which nobody knows how it looks now.
const unknown = "\x00"

// eraseBelow clears the rows under the cursor. The cursor's own is written anew, or is cleared by
// itself: a multiplexer takes the clearing of a whole screen from its first row for something worth
// keeping, and scrolls it away.
const eraseBelow = "\x1b7\x1b[B\r\x1b[J\x1b8"

// Cursor is a place within the live lines, from 0.
type Cursor struct{ Row, Column int }

// Resize says that the terminal has another size. It has broken the live lines anew by then, if
// they became too long.
func (s *Screen) Resize(width, height int) {
	width, height = max(width, 8), max(height, 3)
	if width == s.width && height == s.height {
		return
	}
	if len(s.live) > 0 {
		rows := 0
		for i := range s.row {
			rows += max(1, (s.widths[i]+width-1)/width)
		}
		s.row = min(rows+s.column/width, height-1)
		s.live = []string{unknown}
		s.widths = []int{0}
	}
	s.width, s.height = width, height
}

// Paint writes print for good, and paints live under it. Live lines are cut to the width, and to
// the last ones that there is room for. at is where the cursor goes; nil hides it. The error is
// that of the writer; after one nothing is written any more.
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
	rows, widths := make([]string, len(live)), make([]int, len(live))
	for i, l := range live {
		l = l.Cut(s.Width())
		rows[i], widths[i] = l.Render(s.colours), l.Width()
	}
	var b strings.Builder
	b.WriteString("\r")
	if s.row > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.row)
	}
	before := len(s.live)
	if before > 0 && s.live[0] == unknown {
		b.WriteString(eraseBelow)
		before = 0
	}
	if len(print) > 0 || before == 0 {
		s.live = nil
	}
	for _, l := range print {
		b.WriteString(l.Render(s.colours) + "\x1b[K\r\n")
	}
	b.WriteString("\x1b[?7l") // a letter that the terminal takes for wider than it is breaks no line
	for i, r := range rows {
		if i > 0 {
			b.WriteString("\r\n")
		}
		if i >= len(s.live) || s.live[i] != r {
			b.WriteString(r + "\x1b[K")
		}
	}
	if len(rows) == 0 && before > len(print) {
		b.WriteString("\x1b[K")
	}
	if max(len(rows), 1)+len(print) < before {
		b.WriteString(eraseBelow)
	}
	b.WriteString("\x1b[?7h")
	s.live, s.widths, s.row, s.column = rows, widths, max(0, len(rows)-1), 0
	show := "\x1b[?25l"
	if at != nil {
		b.WriteString("\r")
		if up := s.row - at.Row; up > 0 {
			fmt.Fprintf(&b, "\x1b[%dA", up)
		}
		if at.Column > 0 {
			fmt.Fprintf(&b, "\x1b[%dC", min(at.Column, s.width-1))
		}
		s.row, s.column = min(at.Row, s.row), at.Column
		show = "\x1b[?25h"
	}
	// Terminals that know 2026 show the frame at once; the others pass it over.
	_, s.err = io.WriteString(s.w, "\x1b[?2026h\x1b[?25l"+b.String()+show+"\x1b[?2026l")
	return s.err
}

// Close takes the live lines away and shows the cursor. The screen can be painted again afterwards.
func (s *Screen) Close() error {
	err := s.Paint(nil, nil, &Cursor{})
	return err
}
