package file

import (
	"context"
	"io/fs"
	"path"
	"time"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
)

// No SHA-256 is reported for larger files, because reading them takes longer than everything else.
const hashedBytes = 8 << 20

type statArgs struct {
	Path string `json:"path"`
}

type statData struct {
	Name     string `json:"name"`
	Size     int64  `json:"size"`
	Type     string `json:"type"` // file, directory, pipe, socket, device or special file
	Modified string `json:"modified"`
	SHA256   string `json:"sha256,omitempty"`
	Link     bool   `json:"link,omitempty"`
}

func (s *Set) stat(ctx context.Context, a statArgs) (llm.ToolResult, error) {
	name, err := clean(a.Path)
	if err != nil {
		return llm.ToolResult{}, err
	}
	link, err := s.root.Lstat(name)
	if err != nil {
		return llm.ToolResult{}, s.explain(name, err)
	}
	info, err := s.root.Stat(name)
	if err != nil {
		return llm.ToolResult{}, s.explain(name, err)
	}
	data := statData{Name: path.Base(name), Size: info.Size(), Modified: info.ModTime().UTC().Format(time.RFC3339),
		Link: link.Mode()&fs.ModeSymlink != 0}
	switch {
	case info.IsDir():
		data.Type = "directory"
	case info.Mode().IsRegular():
		data.Type = "file"
		if info.Size() <= hashedBytes {
			// A file that cannot be read but can be inspected still has the other properties.
			if data.SHA256, err = s.hash(ctx, name); err != nil && ctx.Err() != nil {
				return llm.ToolResult{}, err
			}
		}
	default:
		data.Type = special(info.Mode())
	}
	b, err := jsonform.Marshal(data)
	return llm.ToolResult{Parts: []llm.Part{llm.Text{Text: string(b)}}, Data: b}, err
}
