package file

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/internal/protect"
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
	if err := s.reachable(name, s.places.Sight()); err != nil {
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

	all, err := s.entries(name, s.places.Sight())
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return llm.ToolResult{}, s.explain(name, err)
	}

	after := slices.IndexFunc(all, func(d fs.DirEntry) bool { return d.Name() > a.After })
	switch {
	case len(all) == 0:
		text := fmt.Sprintf("[%s is empty]", shown(name))
		return toolrun.Result(text, listData{Path: name, Entries: []entry{}})
	case after < 0:
		text := fmt.Sprintf("[none of the %d entries sorts after %q]", len(all), a.After)
		return toolrun.Result(text, listData{Path: name, Total: len(all), Entries: []entry{}})
	}
	return s.listPage(name, all, all[after:])
}

// listPage returns the entries from the beginning of rest that fit into a result. rest is the end
// of all, and not empty.
func (s *Set) listPage(name string, all, rest []fs.DirEntry) (llm.ToolResult, error) {
	data := listData{Path: name, Total: len(all)}
	var text strings.Builder
	for _, d := range rest {
		e := s.entry(name, d)
		line := e.Type + "\t" + plain(e.Name)
		if e.Note != "" {
			line += "\t" + e.Note
		}

		// The name of the last entry is the place to continue. A number would shift when files
		// appear or vanish.
		if len(data.Entries) == listEntries || text.Len()+len(line) >= listBytes {
			last := data.Entries[len(data.Entries)-1].Name
			data.Next = &listArgs{Path: name, After: last}
			next, _ := jsonform.Marshal(data.Next)
			fmt.Fprintf(&text, "[%d of %d entries; list on with %s]", len(data.Entries), len(all), next)
			break
		}
		text.WriteString(line + "\n")
		data.Entries = append(data.Entries, e)
	}
	return toolrun.Result(strings.TrimSuffix(text.String(), "\n"), data)
}

// entries returns the entries of a directory that are not hidden, in the order of their names.
func (s *Set) entries(name string, sight *protect.Sight) ([]fs.DirEntry, error) {
	f, err := s.openDir(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := f.ReadDir(-1)
	all = slices.DeleteFunc(all, func(d fs.DirEntry) bool { return s.hides(name, d, sight) })
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return all, err
}

// hides reports whether an entry of the directory dir is hidden, or is a link to a hidden place.
func (s *Set) hides(dir string, d fs.DirEntry, sight *protect.Sight) bool {
	name := path.Join(dir, d.Name())
	if sight.Named(name) != "" {
		return true
	}
	if d.Type()&fs.ModeSymlink != 0 {
		target, err := s.real(name)
		return err == nil && sight.Find(target, s.root.Lstat) != ""
	}
	return !sight.Empty() && isHidden(d, sight)
}

// isHidden reports whether an entry is another name of a hidden file or folder.
func isHidden(d fs.DirEntry, sight *protect.Sight) bool {
	info, err := d.Info()
	return err == nil && sight.Is(info) != ""
}

// entry describes d. A link is described by its target and marked as a link. A target outside the
// root is not revealed.
func (s *Set) entry(dir string, d fs.DirEntry) entry {
	e := entry{Name: d.Name()}
	mode := d.Type()
	if mode&fs.ModeSymlink != 0 {
		info, err := s.root.Stat(path.Join(dir, d.Name()))
		if err != nil {
			e.Type = "link"
			e.Note = "broken, or leads outside the root"
			return e
		}
		e.Note = "link"
		mode = info.Mode()
	}

	switch {
	case mode.IsDir():
		e.Type = "dir"
	case mode.IsRegular():
		e.Type = "file"
	default:
		e.Type = "other"
		e.Note = special(mode)
	}
	return e
}

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
	if err := s.reachable(name, s.places.Sight()); err != nil {
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

	data := statData{
		Name:     path.Base(name),
		Size:     info.Size(),
		Modified: info.ModTime().UTC().Format(time.RFC3339),
		Link:     link.Mode()&fs.ModeSymlink != 0,
	}
	switch {
	case info.IsDir():
		data.Type = "directory"
	case info.Mode().IsRegular():
		data.Type = "file"
		if info.Size() <= hashedBytes {
			// A file that cannot be read but can be inspected still has the other properties.
			data.SHA256, err = s.hash(ctx, name)
			if err != nil && ctx.Err() != nil {
				return llm.ToolResult{}, err
			}
		}
	default:
		data.Type = special(info.Mode())
	}
	b, err := jsonform.Marshal(data)
	return llm.ToolResult{Parts: []llm.Part{llm.Text{Text: string(b)}}, Data: b}, err
}
