// Package file gives a model the files below one directory, and no others.
//
//	files, err := file.New("./workspace", nil)
//	if err != nil { … }
//	defer files.Close()
//	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{files}}
//
// A Set is a pawl.Toolset of seven tools, each of which can also be offered alone:
//
//	file_read    Read   a page of a text file: 2,000 lines or 64 KiB, and how to get the next
//	file_list    Read   what is in a directory, sorted
//	file_stat    Read   size, type, time and SHA-256 of one file
//	file_search  Read   lines that match a pattern, or files by their names
//	file_write   Write  a whole file, atomically; directories are made
//	file_edit    Write  texts in a file replaced by others, all or none
//	file_delete  Write  one file or one empty directory
//
// Every access goes through an os.Root. A path is relative to the root; absolute paths, paths that climb out by
// "..", and symbolic links that lead out are refused, whoever made the link and whenever. Pipes, devices and sockets are
// refused without being opened. A hard link is a file of the root; what is written to it does not reach its other names. What an os.Root does not keep out are file systems mounted below the root.
//
// Errors are worded for the model: what was wrong, what would be right, and for a missing path the nearest one that
// is there. No text names a path outside the root, nor the root itself.
//
// No call needs more memory for a large file than for a small one: what is read is read in pages, and file_edit refuses what is larger than it holds.
//
// file_write, file_edit and file_delete have the effect Write, so that whoever runs an agent can ask before they run. Calls of one step
// that change the same path run in call order.
package file

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"github.com/pawl-go/pawl"
)

// Set is the file tools over one directory. It may be used concurrently; its fields are not to be changed after the
// first use.
type Set struct {
	Read   *pawl.Tool // file_read
	Write  *pawl.Tool // file_write
	List   *pawl.Tool // file_list
	Delete *pawl.Tool // file_delete
	Stat   *pawl.Tool // file_stat
	Edit   *pawl.Tool // file_edit
	Search *pawl.Tool // file_search

	root     *os.Root
	readOnly bool
	commit   sync.Mutex // held from the check of a precondition to the change it allows
}

var _ pawl.Toolset = (*Set)(nil)

// Options are what New can be told. Nil and the zero value offer all seven tools.
type Options struct {
	ReadOnly bool // offer file_read, file_list, file_stat and file_search only; the other tools of the Set are nil
}

// New returns the tools over the directory dir, which must exist. The error is for the person who runs the program
// and names dir. The Set follows the directory when it is moved. Close it when no call runs any more.
func New(dir string, opts *Options) (*Set, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("file tools: %w", err)
	}
	s := &Set{root: root}
	if opts != nil {
		s.readOnly = opts.ReadOnly
	}
	s.Read = s.readTool()
	s.List = s.listTool()
	s.Stat = s.statTool()
	s.Search = s.searchTool()
	if !s.readOnly {
		s.Write = s.writeTool()
		s.Delete = s.deleteTool()
		s.Edit = s.editTool()
	}
	return s, nil
}

// Tools returns the tools in the order file_read, file_write, file_list, file_delete, file_stat, file_edit, file_search.
func (s *Set) Tools(context.Context) ([]*pawl.Tool, error) {
	if s.readOnly {
		return []*pawl.Tool{s.Read, s.List, s.Stat, s.Search}, nil
	}
	return []*pawl.Tool{s.Read, s.Write, s.List, s.Delete, s.Stat, s.Edit, s.Search}, nil
}

// Close lets the directory go. Calls after it are answered with an error.
func (s *Set) Close() error { return s.root.Close() }

// serial is the Serial key of a tool that changes a path: the path, cleaned.
func serial(args json.RawMessage) string {
	var a struct{ Path string }
	if json.Unmarshal(args, &a) != nil {
		return ""
	}
	name, err := clean(a.Path)
	if err != nil {
		return "" // such a call changes nothing
	}
	return "file:" + name
}
