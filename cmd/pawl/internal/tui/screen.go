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

// Write waits while the screen is held.
func (s *Screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(b)
}

// hold blocks Write until the returned function is called.
func (s *Screen) hold() func() {
	s.mu.Lock()
	return s.mu.Unlock
}
