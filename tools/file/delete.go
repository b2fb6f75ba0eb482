package file

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

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
	info, err := s.root.Lstat(name) // a link itself is deleted, not its target
	if err != nil {
		return llm.ToolResult{}, s.explain(name, err)
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		if names := s.names(name); len(names) > 0 {
			return llm.ToolResult{}, toolrun.Refuse("%q is a directory that is not empty: it has %d entries (%s); delete them first", name, len(names), some(names))
		}
	case !mode.IsRegular() && mode&fs.ModeSymlink == 0:
		return llm.ToolResult{}, toolrun.Refuse("%q is a %s; only regular files, links and empty directories can be deleted", name, special(mode))
	}
	if err := s.root.Remove(name); err != nil {
		return llm.ToolResult{}, s.explain(name, err)
	}
	return toolrun.Result(fmt.Sprintf("Deleted %s", name), deleteArgs{Path: name})
}

// some joins the first few names.
func some(names []string) string {
	if len(names) > 5 {
		return strings.Join(names[:5], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
