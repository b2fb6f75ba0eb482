package markdown

import "github.com/pawl-go/pawl/cmd/pawl/internal/term"

// RenderAtOnce formats a complete text that is parsed in one piece.
func RenderAtOnce(text string, width int) []term.Line {
	s := state{text: text}
	s.read(width, true)
	return s.out
}
