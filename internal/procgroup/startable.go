package procgroup

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Startable returns the error of a program that cannot be started in dir: its file is absent or may
// not be executed, [Executable] has an error for it, or dir is no directory. An empty dir means the
// current directory. A name without a separator is looked up in PATH. Another name is relative to
// dir, as in [exec.Cmd].
func Startable(program, dir string) error {
	if dir != "" {
		at, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if !at.IsDir() {
			return syscall.ENOTDIR
		}

		isRelative := filepath.Base(program) != program && !filepath.IsAbs(program)
		if isRelative {
			program = dir + string(filepath.Separator) + program
		}
	}
	file, err := exec.LookPath(program)
	if err != nil {
		return err
	}
	return Executable(file, dir)
}

// reasons are why programs do not start, in words without a path of this machine.
var reasons = []struct {
	cause error
	text  string
}{
	{exec.ErrNotFound, "executable file not found"},
	{fs.ErrNotExist, "no such file or directory"},
	{fs.ErrPermission, "permission denied"},
	{syscall.ENOEXEC, "exec format error"},
	{syscall.ENOTDIR, "not a directory"},
	{syscall.EISDIR, "is a directory"},
	{syscall.ELOOP, "too many levels of interpreters or symbolic links"},
}

// Reason returns why a program did not start, in words and for errors.Is, without a path of this
// machine.
func Reason(err error) (text string, cause error) {
	for _, r := range reasons {
		if errors.Is(err, r.cause) {
			return r.text, r.cause
		}
	}
	const other = "it did not start"
	return other, errors.New(other)
}
