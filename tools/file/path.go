package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/internal/protect"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

// maxDepth limits the number of parts of a path, because an os.Root opens every directory on the
// way each time.
const maxDepth = 100

// clean checks a path as the model wrote it and returns its shortest form, "." for the root. It
// examines the text only; os.Root checks where links lead.
func clean(p string) (string, error) {
	slashed := filepath.ToSlash(p)
	switch {
	case strings.ContainsRune(p, 0):
		return "", toolrun.Refuse("the path %q has a NUL character in it", p)
	case strings.HasPrefix(slashed, "/") || filepath.IsAbs(p):
		return "", toolrun.Refuse("absolute paths not allowed: %q; give a path relative to the root, such as %q, "+
			"or %q for the root itself", p, example(slashed), ".")
	}
	if slashed == "~" || strings.HasPrefix(slashed, "~/") {
		return "", toolrun.Refuse("there is no home directory here: %q; give a path relative to the root", p)
	}

	name := path.Clean(slashed)
	if depth := strings.Count(name, "/") + 1; depth > maxDepth {
		return "", toolrun.Refuse("the path has %d parts; at most %d can be used", depth, maxDepth)
	}
	if name == ".." || strings.HasPrefix(name, "../") {
		return "", toolrun.Refuse("path traversal not allowed: %q leads out of the root by \"..\"; "+
			"give a path below the root", p)
	}
	// Names that a system reserves, such as NUL on Windows.
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", toolrun.Refuse("the path %q cannot be used here; give a path relative to the root", p)
	}
	return name, nil
}

// example returns a relative path that may be meant by an absolute one.
func example(slashed string) string {
	name := path.Base(path.Clean(slashed))
	if name == "/" || !filepath.IsLocal(name) {
		return "notes.txt"
	}
	return name
}

// shown returns a cleaned path in the form that texts use.
func shown(name string) string {
	if name == "." {
		return "the root"
	}
	return fmt.Sprintf("%q", name)
}

// explain rewrites err, from an access to name, for the model. Errors of package os name other
// paths (temporary files, for example), so their texts are not passed on.
func (s *Set) explain(name string, err error) error {
	var r toolrun.Refusal
	switch {
	case err == nil, errors.As(err, &r), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, os.ErrClosed):
		return toolrun.Refuse("the file tools are closed")
	case errors.Is(err, syscall.ENOTDIR):
		// before ErrNotExist, because the two are equal on one system
		return s.missing(name)
	case errors.Is(err, fs.ErrNotExist):
		return s.missing(name)
	case errors.Is(err, fs.ErrPermission):
		return toolrun.Refuse("permission denied: %s", shown(name))
	case strings.HasSuffix(err.Error(), "path escapes from parent"):
		// package os exports no value for this error
		return toolrun.Refuse("%s leads outside the root through a symbolic link; "+
			"only files below the root can be used", shown(name))
	case errors.Is(err, syscall.ELOOP), strings.HasSuffix(err.Error(), "too many symlinks"):
		return toolrun.Refuse("%s is part of a cycle of symbolic links", shown(name))
	case errors.Is(err, syscall.ENAMETOOLONG):
		return toolrun.Refuse("the name is too long: %d bytes, with parts of up to %d; "+
			"file systems take about 255 a part",
			len(name), longest(strings.Split(name, "/")))
	case errors.Is(err, syscall.ENOSPC):
		return toolrun.Refuse("no space is left for %s; nothing was changed", shown(name))
	case errors.Is(err, syscall.EROFS):
		return toolrun.Refuse("%s cannot be changed: the file system is read-only", shown(name))
	case errors.Is(err, syscall.EISDIR):
		return toolrun.Refuse("%s is a directory", shown(name))
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return toolrun.Refuse("%s: %s", shown(name), errno.Error())
	}
	return toolrun.Refuse("%s could not be used", shown(name))
}

func longest(parts []string) int {
	n := 0
	for _, p := range parts {
		n = max(n, len(p))
	}
	return n
}

// missing returns an error that says which part of name does not exist and what exists instead.
func (s *Set) missing(name string) error {
	// The first part that is missing says more than the path: models often guess a folder.
	dir := "."
	rest := strings.Split(name, "/")
	for len(rest) > 0 {
		next := path.Join(dir, rest[0])
		info, err := s.root.Stat(next)
		if err != nil {
			if l, lerr := s.root.Lstat(next); lerr == nil && l.Mode()&fs.ModeSymlink != 0 {
				return toolrun.Refuse("%s is a symbolic link to something that is not there", shown(next))
			}
			break
		}
		if !info.IsDir() && len(rest) > 1 {
			return toolrun.Refuse("no such file: %q, because %q is a file, not a directory", name, next)
		}
		dir, rest = next, rest[1:]
	}
	if len(rest) == 0 {
		return toolrun.Refuse("no such file: %q", name) // it was created in the meantime
	}
	names := s.names(dir)
	what := "file"
	if len(rest) > 1 {
		what = "directory"
	}
	text := fmt.Sprintf("no such %s: %q", what, path.Join(dir, rest[0]))
	if same := sameCharacters(rest[0], names); same != "" {
		// Both names look alike, so that only escapes show the difference.
		return toolrun.Refuse("%s; the name there has other code points for the same characters: %+q",
			text, path.Join(dir, same))
	}
	if near := likely(rest[0], names); near != "" {
		hint := path.Join(dir, near)
		if whole := path.Join(append([]string{hint}, rest[1:]...)...); len(rest) > 1 && s.exists(whole) {
			hint = whole
		}
		return toolrun.Refuse("%s; the nearest there is: %q", text, hint)
	}
	n := len(names)
	switch {
	case n == 0:
		text += fmt.Sprintf("; %s is empty", shown(dir))
	case n <= 12:
		text += fmt.Sprintf("; %s has: %s", shown(dir), strings.Join(names, ", "))
	default:
		text += fmt.Sprintf("; %s has %d entries, which file_list lists", shown(dir), n)
	}
	return toolrun.Refusal(text)
}

// sameCharacters returns the name that has the characters of s in another Unicode form, as systems
// write them that decompose accents; "" for none.
func sameCharacters(s string, names []string) string {
	form := norm.NFC.String(s)
	for _, n := range names {
		if norm.NFC.String(n) == form {
			return n
		}
	}
	return ""
}

func (s *Set) exists(name string) bool {
	_, err := s.root.Stat(name)
	return err == nil
}

// names returns the first 2,000 names in dir, sorted. It returns nil if dir cannot be read.
func (s *Set) names(dir string) []string {
	f, err := s.openDir(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(2000)
	slices.Sort(names)
	sight := s.places.Sight()
	names = slices.DeleteFunc(names, func(n string) bool { return sight.Named(path.Join(dir, n)) != "" })
	for i, n := range names {
		names[i] = plain(n)
	}
	return names
}

// unseen reports whether r controls a terminal, or changes the text around it without being seen.
func unseen(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' ||
		r >= 0xE0000 && r <= 0xE007F
}

// plain returns a name that fits on a line of text: it is quoted if it contains control characters.
func plain(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return unseen(r) || r == '\uFFFD' }) {
		return fmt.Sprintf("%q", name)
	}
	return name
}

// likely returns the name that s may refer to: the most similar name, or a name that contains s, as
// both sales.csv and sales-2024.csv contain sales. It returns "" if there is none.
func likely(s string, names []string) string {
	if near := nearest.Word(s, names); near != "" {
		return near
	}
	low := strings.ToLower(s)
	stem := strings.TrimSuffix(low, path.Ext(low))
	for _, n := range names {
		if len(stem) >= 3 && strings.Contains(strings.ToLower(n), stem) {
			return n
		}
	}
	return ""
}

// regular refuses anything but a regular file. A pipe or a device must not even be opened, because
// that may block or have an effect.
func regular(name string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return toolrun.Refuse("%s is a directory; file_list lists it", shown(name))
	case !info.Mode().IsRegular():
		return toolrun.Refuse("%s is a %s; only regular files can be used", shown(name), special(info.Mode()))
	}
	return nil
}

func special(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeDevice != 0:
		return "device"
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	}
	return "special file"
}

// open opens the regular file name for reading, unless it is hidden.
func (s *Set) open(name string) (*os.File, fs.FileInfo, error) {
	sight := s.places.Sight()
	if err := s.reachable(name, sight); err != nil {
		return nil, nil, err
	}
	return s.openSeen(name, sight)
}

// openSeen opens a regular file whose path is not hidden.
func (s *Set) openSeen(name string, sight *protect.Sight) (*os.File, fs.FileInfo, error) {
	info, err := s.root.Stat(name)
	if err == nil {
		err = regular(name, info)
	}
	if err != nil {
		return nil, nil, s.explain(name, err)
	}
	// Another process may replace the file by a pipe at this moment. NONBLOCK then keeps the open
	// from waiting, and the second check refuses the pipe.
	f, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, s.explain(name, err)
	}
	info, err = f.Stat()
	if err == nil {
		err = regular(name, info)
	}
	if err == nil {
		err = hidden(name, sight.Is(info)) // the opened file itself, by any path
	}
	if err != nil {
		f.Close()
		return nil, nil, s.explain(name, err)
	}
	return f, info, nil
}

// reachable refuses a path that is hidden, or that leads to a hidden place through links.
func (s *Set) reachable(name string, sight *protect.Sight) error {
	target, err := s.real(name)
	if err != nil {
		return s.explain(name, err)
	}
	return hidden(name, sight.Find(target, s.root.Lstat))
}

// hidden returns the refusal for a path in a hidden place, or nil if place is "".
func hidden(name, place string) error {
	switch place {
	case "":
		return nil
	case protect.OwnState:
		return toolrun.Refuse("%s is out of reach: it is %s, which no tool reads or changes", shown(name), place)
	}
	return toolrun.Refuse("%s is out of reach: %q holds secrets, so no tool reads or changes it. "+
		"A person can allow it in the settings of the agent (protect)", shown(name), place)
}

// openDir opens the directory name for reading. If another process replaces it by a pipe at this
// moment, the open does not wait, and the opened file returns no entries.
func (s *Set) openDir(name string) (*os.File, error) {
	return s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// Open opens the text file at the path asked, under the rules of file_read. It serves programs and
// tools that take the path of a file. The text of an error is meant for the model. The caller
// closes the file.
func (s *Set) Open(_ context.Context, asked string) (io.ReadCloser, error) {
	name, err := clean(asked)
	if err != nil {
		return nil, err
	}
	f, info, err := s.open(name)
	if err != nil {
		return nil, err
	}
	head := make([]byte, headBytes)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		f.Close()
		return nil, s.explain(name, err)
	}
	if kind := binary(head[:n]); kind != "" {
		f.Close()
		return nil, toolrun.Refuse("%s is not text: it is %s, %d bytes", shown(name), kind, info.Size())
	}
	return f, nil
}

// Create writes the file at the path asked, under the rules of file_write. The file keeps its old
// content until content has returned, and also if content returns an error. A Set with ReadOnly
// refuses.
func (s *Set) Create(ctx context.Context, asked string, content func(io.Writer) error) error {
	if s.readOnly {
		return toolrun.Refuse("%q cannot be written: the files are for reading only", asked)
	}
	_, _, err := s.writeFile(ctx, asked, nil, content)
	return err
}

// mostLinks is the number of symbolic links that a path may lead through.
const mostLinks = 32

// real returns the path of name without symbolic links. Parts that do not exist stay as they are.
func (s *Set) real(name string) (string, error) {
	var done []string
	links := 0
	for rest := strings.Split(name, "/"); len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch {
		case part == "" || part == ".":
			continue
		case part == ".." && len(done) > 0:
			done = done[:len(done)-1]
			continue
		case part == "..":
			return "", s.astray(name)
		}
		// Protected places are compared with the path that is meant, so that no link leads around
		// the comparison.
		next := path.Join(append(done[:len(done):len(done)], part)...)
		info, err := s.root.Lstat(next)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			done = append(done, part) // the access itself reports an error
			continue
		}
		link, err := s.root.Readlink(next)
		if err != nil {
			return "", err
		}
		link = filepath.ToSlash(link)
		links++
		// An absolute link leads out of the root, or comes back into it by a way that os.Root
		// refuses too.
		if links > mostLinks || path.IsAbs(link) || filepath.IsAbs(link) {
			return "", s.astray(name)
		}
		rest = append(strings.Split(link, "/"), rest...)
	}
	return path.Join(append([]string{"."}, done...)...), nil
}

// astray returns the error for a path whose links cannot be followed.
func (s *Set) astray(name string) error {
	if _, err := s.root.Stat(name); err != nil {
		return err
	}
	return toolrun.Refuse("%q cannot be followed: its symbolic links have changed", name)
}

// guarded refuses to change target, a path without symbolic links, if it is protected or hidden.
func (s *Set) guarded(name, target string) error {
	if err := hidden(name, s.places.Sight().Find(target, s.root.Lstat)); err != nil {
		return err
	}
	place := cmp.Or(s.places.Find(target), s.places.InGit(target))
	if place == "" {
		if info, err := s.root.Lstat(target); err == nil && info.Mode().IsRegular() {
			place = s.places.Same(info)
		}
	}
	if place == "" {
		return nil
	}
	return toolrun.Refuse("%s is protected: %q may start programs or decide what this agent may do, so it is only for reading. "+
		"A person can change it, or allow it in the settings of the agent (protect)", shown(name), place)
}

// pinned opens the directory dir, a path without symbolic links, part by part. With create, missing
// parts are created. A part that has become a link in the meantime is refused: the directory is the
// checked one, also if other programs move links. Close it.
func (s *Set) pinned(dir string, create bool) (*os.Root, error) {
	at, err := s.root.OpenRoot(".")
	if err != nil || dir == "." {
		return at, err
	}
	for _, part := range strings.Split(dir, "/") {
		next, err := step(at, part, create)
		at.Close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

func step(at *os.Root, part string, create bool) (*os.Root, error) {
	info, err := at.Lstat(part)
	if create && errors.Is(err, fs.ErrNotExist) {
		if err := at.Mkdir(part, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		info, err = at.Lstat(part)
	}
	if err != nil {
		return nil, err
	}
	next, err := at.OpenRoot(part)
	if err != nil {
		return nil, err
	}
	// Between Lstat and OpenRoot, another program may have put a link in place of the directory.
	if now, err := next.Stat("."); err != nil || !os.SameFile(info, now) {
		next.Close()
		return nil, toolrun.Refuse("%q was replaced while it was used; call again", part)
	}
	return next, nil
}
