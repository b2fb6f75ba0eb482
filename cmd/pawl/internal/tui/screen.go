package tui

import (
	"io"
	"sync"
)

// Screen is a writer that can be held, so that a question is not written over.
type Screen struct {
	mu sync.Mutex
	w  io.Writer
}

// NewScreen returns a screen that writes to w.
func NewScreen(w io.Writer) *Screen { return &Screen{w: w} }
