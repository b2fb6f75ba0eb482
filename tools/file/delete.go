package file

import (
	"context"
	"fmt"
	"io/fs"
	"path"

	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

type deleteArgs struct {
	Path string `json:"path"`
}

func (s *Set) delete(ctx context.Context, a deleteArgs) (llm.ToolResult, error) {
	name, err := clean(a.Path)
	if err != nil {
		return llm.ToolResult{}, err
	}
	if name == "." {
		return llm.ToolResult{}, toolrun.Refuse("the root itself cannot be deleted; give the path of something in it")
	}
	s.commit.Lock()
	defer s.commit.Unlock()
	if err := ctx.Err(); err != nil {
		return llm.ToolResult{}, err
	}
	dir, base := split(name)
	if dir, err = s.real(dir); err != nil {
		return llm.ToolResult{}, s.explain(name, err)
	}
	if err := s.guarded(name, path.Join(dir, base)); err != nil {
		return llm.ToolResult{}, err
	}
	at, err := s.pinned(dir, false)
	if err != nil {
		return llm.ToolResult{}, s.explain(name, err)
	}
	defer at.Close()
	info, err := at.Lstat(base) // a link itself is deleted, not its target
	if err != nil {
		return llm.ToolResult{}, s.explain(name, err)
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		if names := s.names(name); len(names) > 0 {
			return llm.ToolResult{}, toolrun.Refuse("%q is a directory that is not empty: it has %d entries (%s); delete them first", name, len(names), text.First(names, 5, ", …"))
		}
	case !mode.IsRegular() && mode&fs.ModeSymlink == 0:
		return llm.ToolResult{}, toolrun.Refuse("%q is a %s; only regular files, links and empty directories can be deleted", name, special(mode))
	}
	if err := s.undoable(path.Join(dir, base), func() error { return at.Remove(base) }); err != nil {
		return llm.ToolResult{}, s.explain(name, err)
	}
	return toolrun.Result(fmt.Sprintf("Deleted %s", name), deleteArgs{Path: name})
}
