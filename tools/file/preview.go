package file

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"

	"github.com/pawl-go/pawl/llm"
)

// Preview is what a call would make of a file, for whoever decides about it.
type Preview struct {
	Path          string // cleaned
	Before, After string // all of it; a file that is deleted has nothing after
	Exists        bool   // there is such a file before
}

// Preview returns what a call of file_write, file_edit or file_delete would make of its file as it is now, and changes nothing. It is nil for other calls. The
// error says why it cannot be known; the call then fails, too, or the file is none whose text could be shown.
func (s *Set) Preview(ctx context.Context, call llm.ToolCall) (*Preview, error) {
	switch call.Name {
	case "file_write":
		var a writeArgs
		if err := json.Unmarshal(call.Args, &a); err != nil {
			return nil, err
		}
		p, err := s.before(ctx, a.Path)
		if err != nil {
			return nil, err
		}
		p.After = a.Content
		return p, nil
	case "file_edit":
		var a editArgs
		if err := json.Unmarshal(call.Args, &a); err != nil {
			return nil, err
		}
		p, err := s.before(ctx, a.Path)
		if err != nil {
			return nil, err
		}
		e, err := edited(ctx, p.Path, []byte(p.Before), a.Edits)
		if err != nil {
			return nil, err
		}
		p.After = string(e.text)
		return p, nil
	case "file_delete":
		var a struct{ Path string }
		if err := json.Unmarshal(call.Args, &a); err != nil {
			return nil, err
		}
		return s.before(ctx, a.Path)
	}
	return nil, nil
}

// before is the file as it is now.
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
