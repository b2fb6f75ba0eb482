package tui

import (
	"io"
	"sync"
)

// Screen is a writer that can be held, so that no output comes between a question and its answer.
type Screen struct {
	mu sync.Mutex
	w  io.Writer
}

// NewScreen returns a screen that writes to w.
func NewScreen(w io.Writer) *Screen { return &Screen{w: w} }
