// Package file provides tools that give a model access to the files below one directory, and to no
// other files.
//
//	files, err := file.New("./workspace", nil)
//	if err != nil { … }
//	defer files.Close()
//	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{files}}
//
// A Set is a pawl.Toolset of seven tools. Each of them can also be offered alone:
//
//	file_read    EffectRead   a page of a text file: 2,000 lines or 64 KiB
//	file_list    EffectRead   the entries of a directory, sorted
//	file_stat    EffectRead   size, type, time and SHA-256 of one file
//	file_search  EffectRead   lines that match a pattern, or files by their names
//	file_write   EffectWrite  writes a whole file atomically and creates its directories
//	file_edit    EffectWrite  replaces texts in a file, all of them or none
//	file_delete  EffectWrite  deletes one file or one empty directory
//
// Every access uses an os.Root. A path is relative to the root. Absolute paths, paths that leave
// the root by "..", and symbolic links that lead outside are refused, even if the link is created
// during the call. Pipes, devices and sockets are refused without being opened. A hard link counts
// as a file of the root; a write to it does not reach its other names. An os.Root does not exclude
// file systems that are mounted below the root.
//
// Error texts are written for the model: what was wrong, what would be right, and for a missing
// path the nearest existing one. No text names a path outside the root or the root itself.
//
// Places that start programs or decide what the agent may do, such as .git, .vscode or the files of
// the agent, are only for reading, also through links (Options.Protect; docs/security.md). Files
// with secrets and the state of the program cannot be read either (Options.Hide).
//
// A large file needs no more memory than a small one: files are read in pages, and file_edit
// refuses a file that exceeds its size limit.
//
// file_write, file_edit and file_delete have the effect EffectWrite, so that an approval can be
// required before they run. Calls of one step that change the same path run in call order.
package file

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/protect"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

// definitions are the descriptions and schemas of the tools.
//
//go:embed *.md *.json
var definitions embed.FS

// Set holds the file tools over one directory. It is safe for concurrent use. Its fields must not
// be changed after the first use.
type Set struct {
	Read   *pawl.Tool // file_read
	Write  *pawl.Tool // file_write
	List   *pawl.Tool // file_list
	Delete *pawl.Tool // file_delete
	Stat   *pawl.Tool // file_stat
	Edit   *pawl.Tool // file_edit
	Search *pawl.Tool // file_search

	root     *os.Root
	places   *protect.Places
	undo     string
	readOnly bool
	commit   sync.Mutex // held from the check of a precondition until the change is made
}

var _ pawl.Toolset = (*Set)(nil)

// Options are the options of New. Nil and the zero value offer all seven tools.
type Options struct {
	// ReadOnly offers only file_read, file_list, file_stat and file_search. The other tools of the
	// Set are nil.
	ReadOnly bool

	// Protect adds to the protected places, which the tools do not change: a name or path that
	// counts at any depth (.git, .github/workflows), or the absolute path of a file or folder.
	// -NAME removes a place, and -* removes all places. docs/security.md lists the default.
	Protect []string

	// Hide lists files and folders that the tools neither read nor change, create, list or search,
	// at any path and by any link, such as the database of the program. Files named .env are
	// hidden by default; Protect can remove that with -.env, and nothing removes an entry of Hide.
	Hide []string

	// Undo is a folder that stores files before the tools change them, for Set.Undo: the last 100
	// changes, of files of at most 8 MiB; a larger file is not changed. It must not be below the
	// root, and nothing else may write to it. Empty means that changes are not stored.
	Undo string
}

// New returns the tools over the directory dir, which must exist. Its error is meant for the
// operator and names dir. The Set follows the directory if it is moved. Close it when no call is
// running any more.
func New(dir string, opts *Options) (*Set, error) {
	o := cmp.Or(opts, new(Options))
	if dir == "" {
		return nil, errors.New("file tools: the root is empty; name a folder, such as the current one: \".\"")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("file tools: %w", err)
	}
	s := &Set{root: root, undo: o.Undo, readOnly: o.ReadOnly}
	s.places, err = protect.New(dir, o.Protect, protect.NewOwn(o.Hide...))
	if err != nil {
		root.Close()
		return nil, fmt.Errorf("file tools: %w", err)
	}
	// The result of file_read is bounded by the limits of a page.
	s.Read = toolrun.Define(definitions, "read", &pawl.Tool{Name: "file_read", Effect: pawl.EffectRead, MaxResult: -1,
		Run: toolrun.Func(s.read)})
	s.List = toolrun.Define(definitions, "list", &pawl.Tool{Name: "file_list", Effect: pawl.EffectRead,
		Run: toolrun.Func(s.list)})
	s.Stat = toolrun.Define(definitions, "stat", &pawl.Tool{Name: "file_stat", Effect: pawl.EffectRead,
		Run: toolrun.Func(s.stat)})
	// The result of file_search is bounded by searchBytes.
	s.Search = toolrun.Define(definitions, "search", &pawl.Tool{Name: "file_search", Effect: pawl.EffectRead,
		MaxResult: -1, Run: toolrun.Func(s.search)})
	if !s.readOnly {
		s.Write = toolrun.Define(definitions, "write", &pawl.Tool{Name: "file_write", Effect: pawl.EffectWrite,
			Serial: serial, Run: toolrun.Func(s.write)})
		s.Delete = toolrun.Define(definitions, "delete", &pawl.Tool{Name: "file_delete", Effect: pawl.EffectWrite,
			Serial: serial, Run: toolrun.Func(s.delete)})
		s.Edit = toolrun.Define(definitions, "edit", &pawl.Tool{Name: "file_edit", Effect: pawl.EffectWrite,
			Serial: serial, Run: toolrun.Func(s.edit)})
	}
	return s, nil
}

// Tools returns the tools in the order file_read, file_write, file_list, file_delete, file_stat,
// file_edit, file_search.
func (s *Set) Tools(context.Context) ([]*pawl.Tool, error) {
	if s.readOnly {
		return []*pawl.Tool{s.Read, s.List, s.Stat, s.Search}, nil
	}
	return []*pawl.Tool{s.Read, s.Write, s.List, s.Delete, s.Stat, s.Edit, s.Search}, nil
}

// Close closes the directory. Calls after Close return an error to the model.
func (s *Set) Close() error { return s.root.Close() }

// serial returns the Serial key of a tool that changes a path: the cleaned path.
func serial(args json.RawMessage) string {
	var a struct{ Path string }
	if json.Unmarshal(args, &a) != nil {
		return ""
	}
	name, err := clean(a.Path)
	if err != nil {
		return "" // such a call is refused and changes nothing
	}
	return "file:" + name
}
