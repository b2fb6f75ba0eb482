package file

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

const (
	listEntries = 1000
	listBytes   = 30 << 10 // leaves room for the marker within the limit of a result
)

type listArgs struct {
	Path  string `json:"path"`
	After string `json:"after"`
}

type listData struct {
	Path    string    `json:"path"`
	Total   int       `json:"total"` // entries in the directory
	Entries []entry   `json:"entries"`
	Next    *listArgs `json:"next,omitempty"`
}

type entry struct {
	Type string `json:"type"` // file, dir, link (a link that cannot be followed) or other
	Name string `json:"name"`
	Note string `json:"note,omitempty"`
}

func (s *Set) list(ctx context.Context, a listArgs) (llm.ToolResult, error) {
	name, err := clean(a.Path)
	if err != nil {
		return llm.ToolResult{}, err
	}
	info, err := s.root.Stat(name)
	if err != nil {
		return llm.ToolResult{}, s.explain(name, err)
	}
	if !info.IsDir() {
		what := "file; file_read reads it"
		if !info.Mode().IsRegular() {
			what = special(info.Mode())
		}
		return llm.ToolResult{}, toolrun.Refuse("%s is not a directory but a %s", shown(name), what)
	}
	found, total, err := s.entries(ctx, name, a.After, listEntries+1)
	if err != nil {
		return llm.ToolResult{}, s.explain(name, err)
	}
	data := listData{Path: name, Total: total, Entries: []entry{}}
	var text strings.Builder
	for _, d := range found {
		e := s.entry(name, d)
		line := e.Type + "\t" + plain(e.Name)
		if e.Note != "" {
			line += "\t" + e.Note
		}
		if len(data.Entries) == listEntries || text.Len()+len(line) >= listBytes {
			last := data.Entries[len(data.Entries)-1].Name
			data.Next = &listArgs{Path: name, After: last}
			next, _ := jsonform.Marshal(data.Next)
			fmt.Fprintf(&text, "[%d of %d entries; list on with %s]", len(data.Entries), total, next)
			break
		}
		text.WriteString(line + "\n")
		data.Entries = append(data.Entries, e)
	}
	switch {
	case total == 0:
		fmt.Fprintf(&text, "[%s is empty]", shown(name))
	case len(data.Entries) == 0:
		fmt.Fprintf(&text, "[none of the %d entries sorts after %q]", total, a.After)
	}
	return toolrun.Result(strings.TrimSuffix(text.String(), "\n"), data)
}

// entries returns the first most entries of a directory whose names sort after the name after, in
// order, and the number of all its entries. Memory is bounded by a small multiple of most, even for
// a huge directory.
func (s *Set) entries(ctx context.Context, name, after string, most int) (first []fs.DirEntry, total int, err error) {
	f, err := s.openDir(name)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	byName := func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) }
	for {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		some, err := f.ReadDir(1000)
		if err != nil && err != io.EOF {
			return nil, 0, err
		}
		for _, d := range some {
			if total++; after == "" || d.Name() > after {
				first = append(first, d)
			}
		}
		if err == io.EOF || len(first) >= 4*most {
			slices.SortFunc(first, byName)
			first = slices.Clip(first[:min(len(first), most)])
		}
		if err == io.EOF {
			return first, total, nil
		}
	}
}

// entry describes d. A link is described by its target and marked as a link. A target outside the
// root is not revealed.
func (s *Set) entry(dir string, d fs.DirEntry) entry {
	e := entry{Name: d.Name()}
	mode := d.Type()
	if mode&fs.ModeSymlink != 0 {
		info, err := s.root.Stat(path.Join(dir, d.Name()))
		if err != nil {
			e.Type, e.Note = "link", "broken, or leads outside the root"
			return e
		}
		e.Note, mode = "link", info.Mode()
	}
	switch {
	case mode.IsDir():
		e.Type = "dir"
	case mode.IsRegular():
		e.Type = "file"
	default:
		e.Type, e.Note = "other", special(mode)
	}
	return e
}
