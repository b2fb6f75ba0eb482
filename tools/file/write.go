package file

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

type writeArgs struct {
	Path    string  `json:"path"`
	Content string  `json:"content"`
	Expect  *string `json:"expect"` // nil means any content
}

type writeData struct {
	Path    string `json:"path"`
	Bytes   int    `json:"bytes"`
	SHA256  string `json:"sha256"`
	Created bool   `json:"created"`
}

func (s *Set) write(ctx context.Context, a writeArgs) (llm.ToolResult, error) {
	if strings.ContainsRune(a.Content, utf8.RuneError) {
		if err := s.keepsBytes(ctx, a.Path); err != nil {
			return llm.ToolResult{}, err
		}
	}
	name, created, err := s.writeFile(ctx, a.Path, a.Expect, func(w io.Writer) error {
		_, err := io.WriteString(w, a.Content)
		return err
	})
	if err != nil {
		return llm.ToolResult{}, err
	}
	return toolrun.Result(fmt.Sprintf("Written %d bytes to %s", len(a.Content), name),
		writeData{Path: name, Bytes: len(a.Content), SHA256: hexSum([]byte(a.Content)), Created: created})
}

// keepsBytes refuses to write U+FFFD over a file with bytes that are not UTF-8. The model would
// write back the replacement characters that file_read showed, and the bytes would be lost.
func (s *Set) keepsBytes(ctx context.Context, asked string) error {
	name, err := clean(asked)
	if err != nil {
		return err
	}
	f, _, err := s.open(name)
	if err != nil {
		return ctx.Err() // the write itself reports what is wrong
	}
	defer f.Close()
	r := bufio.NewReaderSize(reader{ctx, f}, pageBytes)
	for {
		b, err := r.Peek(pageBytes)
		// A piece may end within a character, which the next piece completes.
		whole := b[:runeStart(b, len(b))]
		partOfRune := len(whole) == 0 && len(b) > 0
		switch {
		case !utf8.Valid(whole) || partOfRune:
			return toolrun.Refuse("not written: %q has bytes that are not UTF-8, which file_read shows as \uFFFD; "+
				"writing \uFFFD back would destroy them. Change the other parts with file_edit, which keeps them, "+
				"or write the whole text without \uFFFD", name)
		case len(b) == 0 && err == io.EOF:
			return nil
		case err != nil && err != io.EOF:
			return s.explain(name, err)
		}
		r.Discard(len(whole))
	}
}

// writeFile writes a new file in the same directory and renames it: a reader sees the old content
// or the new, and a crash leaves one of them. expect is the precondition of writeArgs. It holds
// against the other calls of this Set, and against other programs until the moment between check
// and rename. name is the cleaned path.
func (s *Set) writeFile(ctx context.Context, asked string, expect *string, content func(io.Writer) error) (name string,
	created bool, err error) {
	name, err = clean(asked)
	if err != nil {
		return "", false, err
	}
	if name == "." || strings.HasSuffix(asked, "/") {
		return "", false, toolrun.Refuse("%q names a directory; give the path of a file", asked)
	}
	// A person could not see what such a name is in a list or a question.
	if strings.ContainsFunc(name, unseen) {
		return "", false, toolrun.Refuse("%q has characters in it that are not shown or that control a terminal; "+
			"choose a name without them", name)
	}

	target, err := s.real(name)
	if err != nil {
		return "", false, s.cannotMake(name, err)
	}
	if err := s.guarded(name, target); err != nil {
		return "", false, err
	}
	if _, err := s.replaced(name, s.root, target); err != nil { // before directories are created
		return "", false, err
	}

	// The folder is opened and then used by its descriptor, so that a link put in its place changes
	// nothing.
	dir, base := split(target)
	at, err := s.pinned(dir, true)
	if err != nil {
		return "", false, s.cannotMake(name, err)
	}
	defer at.Close()

	// In the same directory, because a rename between file systems is a copy, which others can see
	// half done.
	temp := ".pawl-" + rand.Text() + ".tmp"
	if err := s.create(at, temp, content); err != nil {
		return "", false, s.explain(name, err)
	}
	err = s.undoable(target, func() (err error) {
		created, err = s.place(ctx, name, at, temp, base, expect)
		return err
	})
	if err != nil {
		at.Remove(temp)
		return "", false, s.explain(name, err)
	}
	return name, created, nil
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// split cuts name before its last part, without cleaning it.
func split(name string) (dir, base string) {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i], name[i+1:]
	}
	return ".", name
}

// replaced returns the file that a write to target, below at, would replace. Nil means none.
func (s *Set) replaced(name string, at *os.Root, target string) (fs.FileInfo, error) {
	info, err := at.Lstat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, s.cannotMake(name, err)
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, toolrun.Refuse("%s was replaced while it was used; call again", shown(name))
	case info.IsDir():
		return nil, toolrun.Refuse("%s is a directory; give the path of a file", shown(name))
	case !info.Mode().IsRegular():
		return nil, toolrun.Refuse("%s is a %s; only regular files can be written", shown(name), special(info.Mode()))
	case info.Mode().Perm()&0o222 == 0:
		// a rename would not check this
		return nil, toolrun.Refuse("permission denied: %s is read-only", shown(name))
	}
	return info, nil
}

// cannotMake explains why no directory can be created for name. The usual reason is a file in its
// place.
func (s *Set) cannotMake(name string, err error) error {
	for dir, _ := split(name); dir != "."; dir, _ = split(dir) {
		if info, serr := s.root.Stat(dir); serr == nil && !info.IsDir() {
			return toolrun.Refuse("%q cannot be written: %q is a file, not a directory", name, dir)
		}
	}
	return s.explain(name, err)
}

func (s *Set) create(at *os.Root, temp string, content func(io.Writer) error) error {
	f, err := at.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	err = content(f)
	serr := f.Sync()
	if err == nil {
		err = serr // without the sync, a crash after the rename could leave an empty file
	}
	cerr := f.Close()
	if err == nil {
		err = cerr
	}
	if err != nil {
		at.Remove(temp)
	}
	return err
}

// place checks the precondition and renames temp to base, both in the directory at.
func (s *Set) place(ctx context.Context, name string, at *os.Root, temp, base string, expect *string) (created bool,
	err error) {
	s.commit.Lock()
	defer s.commit.Unlock()
	if err := ctx.Err(); err != nil {
		return false, err
	}
	old, err := s.replaced(name, at, base)
	if err != nil {
		return false, err
	}
	if expect != nil {
		if err := s.check(ctx, name, old, *expect); err != nil {
			return false, err
		}
	}
	// A script stays executable, and a private file private.
	if old != nil {
		if err := at.Chmod(temp, old.Mode().Perm()); err != nil {
			return false, err
		}
	}
	return old == nil, at.Rename(temp, base)
}

func (s *Set) check(ctx context.Context, name string, old fs.FileInfo, expect string) error {
	switch {
	case expect == "" && old == nil:
		return nil
	case expect == "":
		return toolrun.Refuse("not written: %q is there already (%d bytes); choose another path, "+
			"or leave expect out to replace it", name, old.Size())
	case old == nil:
		return toolrun.Refuse("not written: expect names a content, but there is no file %q; "+
			"with expect \"\" it is made", name)
	}
	sum, err := s.hash(ctx, name)
	if err != nil {
		return err
	}
	if !strings.EqualFold(sum, expect) {
		return toolrun.Refuse("not written: %q has changed; its SHA-256 is %s, expect says %s. "+
			"Read it again before you write",
			name, sum, strings.ToLower(expect))
	}
	return nil
}

// hash returns the SHA-256 of the file name in hexadecimal.
func (s *Set) hash(ctx context.Context, name string) (string, error) {
	f, _, err := s.open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, reader{ctx, f}); err != nil {
		return "", s.explain(name, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// reader reads from r until ctx ends.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}

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

	// Only the directory is resolved: a link at the end is what the call names, and its target
	// stays.
	dir, base := split(name)
	dir, err = s.real(dir)
	if err != nil {
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
	mode := info.Mode()
	switch {
	case mode.IsDir():
		if names := s.names(name); len(names) > 0 {
			return llm.ToolResult{}, toolrun.Refuse("%q is a directory that is not empty: it has %d entries (%s); "+
				"delete them first", name, len(names), text.First(names, 5, ", …"))
		}
	// A socket or a device belongs to a program that runs.
	case !mode.IsRegular() && mode&fs.ModeSymlink == 0:
		return llm.ToolResult{}, toolrun.Refuse("%q is a %s; only regular files, links and empty directories "+
			"can be deleted",
			name, special(mode))
	}

	if err := s.undoable(path.Join(dir, base), func() error { return at.Remove(base) }); err != nil {
		return llm.ToolResult{}, s.explain(name, err)
	}
	return toolrun.Result(fmt.Sprintf("Deleted %s", name), deleteArgs{Path: name})
}
