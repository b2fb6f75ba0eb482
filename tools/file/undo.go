package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

// The last mostChanges changes are stored, of files of at most mostVersion bytes.
const mostChanges, mostVersion = 100, 8 << 20

// Change is a stored change of a file.
type Change struct {
	Path   string    `json:"path"`   // below the root, without symbolic links
	At     time.Time `json:"at"`     // when it began
	Before *Version  `json:"before"` // nil means that there was no file
	After  *Version  `json:"after"`  // nil means that there is no file
	Ended  bool      `json:"ended"`  // false means that After is not known
}

// Version is the content of a file.
type Version struct {
	Bytes []byte      `json:"bytes"` // the whole content
	Mode  fs.FileMode `json:"mode"`  // the permissions
}

// undoable makes a change of target, a path without symbolic links. If the Set stores changes, the
// file is on disk a second time before it changes, so that a killed process loses nothing.
func (s *Set) undoable(target string, change func() error) error {
	if s.undo == "" {
		return change()
	}

	before, err := s.version(target)
	c := &Change{Path: target, At: time.Now(), Before: before}
	if err == nil {
		err = c.store(s.undo)
	}
	if err != nil {
		return toolrun.Refuse("%s was not changed, because the change could not be undone: %v", shown(target), err)
	}

	// The change is stored before it is made: a process that is killed in between has a record
	// without an end, which Undo recognizes.
	failed := change()
	c.After, err = s.version(target)
	if err == nil && reflect.DeepEqual(c.Before, c.After) {
		err = os.Remove(c.file(s.undo))
	} else if err == nil {
		c.Ended = true
		err = c.store(s.undo)
	}

	// Each change holds a copy of a file, so that only the newest are kept.
	for all := changes(s.undo); len(all) > mostChanges; all = all[1:] {
		err = errors.Join(err, os.Remove(all[0]))
	}
	return errors.Join(failed, err)
}

// Undo restores the file of the last change that a Set with Options.Undo stored in dir, deletes
// the stored change, and returns it. If the file was changed since, or the call was interrupted,
// Undo restores nothing and returns an error, unless force is set. It changes no protected place;
// directories that the call made stay.
func (s *Set) Undo(ctx context.Context, dir string, force bool) (*Change, error) {
	all := changes(dir)
	if len(all) == 0 {
		return nil, errors.New("there is no change to undo")
	}
	c := new(Change)
	b, err := os.ReadFile(all[len(all)-1])
	if err = errors.Join(err, json.Unmarshal(b, c)); err != nil {
		return nil, err
	}

	now, err := s.version(c.Path)
	switch {
	// The file is as it was, since the change failed or was undone by other means.
	case err != nil, reflect.DeepEqual(now, c.Before):
	case !force && !c.Ended:
		err = fmt.Errorf("the change of %s was interrupted, and it or a later program has changed the file", c.Path)
	case !force && !reflect.DeepEqual(now, c.After):
		err = fmt.Errorf("%s was changed since", c.Path)
	case c.Before == nil:
		_, err = s.delete(ctx, deleteArgs{c.Path})
	default:
		err = s.restore(ctx, c.Path, c.Before)
	}
	if err == nil {
		err = os.Remove(c.file(dir))
	}
	return c, err
}

// restore writes an earlier version of a file.
func (s *Set) restore(ctx context.Context, name string, v *Version) error {
	_, _, err := s.writeFile(ctx, name, nil, func(w io.Writer) error {
		_, err := w.Write(v.Bytes)
		return err
	})
	if err != nil {
		return err
	}
	return s.root.Chmod(name, v.Mode)
}

// version returns the content of a regular file. Nil means that there is none.
func (s *Set) version(name string) (*Version, error) {
	if info, err := s.root.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	f, info, err := s.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostVersion+1))
	if len(b) > mostVersion {
		err = fmt.Errorf("it has more than %d MiB", mostVersion>>20)
	}
	return &Version{b, info.Mode().Perm()}, err
}

// changes returns the stored changes, the first one first.
func changes(dir string) []string {
	list, _ := filepath.Glob(filepath.Join(dir, "*[0-9]"))
	return list
}

// file returns where a change is stored. The names are in the order of time.
func (c *Change) file(dir string) string {
	return filepath.Join(dir, c.At.UTC().Format("20060102-150405.000000000"))
}

// store writes a change whole.
func (c *Change) store(dir string) error {
	b, err := json.Marshal(c)
	temp := c.file(dir) + ".new"
	return errors.Join(err, os.MkdirAll(dir, 0o700), os.WriteFile(temp, b, 0o600), os.Rename(temp, c.file(dir)))
}
