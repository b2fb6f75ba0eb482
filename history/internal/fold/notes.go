package fold

import (
	_ "embed"
)

// Notes returns the latest notes at state p, or "".
func (c *Rounds) Notes(p *Mark) string {
	if p.NotesAt > 0 && p.NotesAt <= len(c.At) {
		if m, ok, fits := MarkOf(&c.Msgs[c.At[p.NotesAt-1]], p.NotesAt-1); ok && fits {
			return m.Notes
		}
	}
	return ""
}
