package file

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"

	"github.com/pawl-go/pawl/llm"
)

// Preview is the effect that a call would have on a file, for the person who approves the call.
type Preview struct {
	Path          string // cleaned path
	Before, After string // Whole contents. After is empty for a file that is deleted.
	Exists        bool   // the file exists before the call
}

// Preview returns the effect that a call of file_write, file_edit or file_delete would have on its
// file now. It changes nothing. It returns nil for other calls. It returns an error if the effect
// is unknown: the call would fail as well, or the file is not text that can be shown.
func (s *Set) Preview(ctx context.Context, call llm.ToolCall) (*Preview, error) {
	if !slices.Contains([]string{"file_write", "file_edit", "file_delete"}, call.Name) {
		return nil, nil
	}
	var a struct {
		Path, Content string
		Edits         []edit
	}
	if err := json.Unmarshal(call.Args, &a); err != nil {
		return nil, err
	}
	p, err := s.before(ctx, a.Path)
	if err != nil {
		return nil, err
	}
	switch call.Name {
	case "file_write":
		p.After = a.Content
	case "file_edit":
		e, err := edited(ctx, p.Path, []byte(p.Before), a.Edits)
		if err != nil {
			return nil, err
		}
		p.After = string(e.text)
	}
	return p, nil
}

// before returns the current state of the file.
func (s *Set) before(ctx context.Context, asked string) (*Preview, error) {
	name, err := clean(asked)
	if err != nil {
		return nil, err
	}
	p := &Preview{Path: name}
	if _, err := s.root.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	p.Exists = true
	text, err := s.whole(ctx, name)
	p.Before = string(text)
	return p, err
}
