package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ReadFile reads the file at path. flag is the name of the flag, for the error.
func ReadFile(flag, path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, Usage("names of files are relative to the current directory", "%s: %s", flag, Plain(err))
	}
	return b, nil
}

// Plain returns the text of an error about a file without the name of the system call.
func Plain(err error) string {
	if p, ok := err.(*os.PathError); ok {
		return p.Path + ": " + p.Err.Error()
	}
	return err.Error()
}

// Cause returns the text of an error about a file without the path of the file.
func Cause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// WriteFile replaces the file at path atomically. A new file is readable by its owner only, because
// conversations are private.
func WriteFile(path string, content []byte) (err error) {
	mode := os.FileMode(0o600)
	target := path // a link stays a link: the file that it names is replaced
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		target = resolved
	}
	if info, err := os.Stat(target); err == nil {
		// a pipe or a device, such as /dev/stdout, is written directly
		if !info.Mode().IsRegular() {
			return os.WriteFile(target, content, mode)
		}
		mode = info.Mode().Perm()
	}

	// A rename is atomic within one file system only, so the new file is made in the same folder.
	f, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".*")
	if err != nil {
		return fmt.Errorf("save %s: %s", path, Cause(err))
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
			err = fmt.Errorf("save %s: %s", path, Cause(err))
		}
	}()

	_, err = f.Write(content)
	if err := errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), target)
}

// Savable returns an error if no file can be written at path. Commands call it before a run, so
// that no result is lost. An empty path is no error. flag is the name of the flag, for the error.
func Savable(flag, path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return Usage("name a file", "%s %s: this is a directory", flag, path)
	case err == nil && !info.Mode().IsRegular():
		return nil // errors of a pipe or a device show when it is written
	}

	dir := filepath.Dir(path)
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		dir = filepath.Dir(resolved)
	}
	if info, err := os.Stat(dir); err != nil {
		return Usage("make the directory first", "%s %s", flag, Plain(err))
	} else if !info.IsDir() {
		return Usage("name a file in a directory", "%s %s: %s is not a directory", flag, path, dir)
	}

	// Only an attempt shows what permissions, quotas and read-only file systems allow.
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return Usage("name a file in a directory that can be written to", "%s %s: %v", flag, path, Cause(err))
	}
	f.Close()
	return os.Remove(f.Name())
}
