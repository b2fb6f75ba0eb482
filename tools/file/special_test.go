//go:build unix

package file_test

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/pawl-go/pawl/internal/test/tooltest"
)

// A pipe without a writer blocks a program that opens it. None of the tools blocks.
func TestSpecialFiles(t *testing.T) {
	dir, set := root(t, nil)
	tooltest.Must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644))
	tooltest.Must(t, os.Symlink("pipe", filepath.Join(dir, "link")))
	short, err := os.MkdirTemp("", "s") // the path of a socket must be short
	tooltest.Must(t, err)
	defer os.RemoveAll(short)
	l, err := net.Listen("unix", filepath.Join(short, "s"))
	tooltest.Must(t, err)
	defer l.Close()
	tooltest.Must(t, os.Rename(filepath.Join(short, "s"), filepath.Join(dir, "socket")))
	for _, tt := range []struct{ got, want string }{
		{tooltest.Call(t, set.Read, `{"path":"pipe"}`), `error: "pipe" is a pipe; only regular files can be used`},
		{tooltest.Call(t, set.Read, `{"path":"link"}`), `error: "link" is a pipe; only regular files can be used`},
		{tooltest.Call(t, set.Read, `{"path":"socket"}`), `error: "socket" is a socket; only regular files can be used`},
		{tooltest.Call(t, set.Write, `{"path":"pipe","content":"x"}`), `error: "pipe" is a pipe; only regular files can be written`},
		{tooltest.Call(t, set.Write, `{"path":"link","content":"x"}`), `error: "link" is a pipe; only regular files can be written`},
		{tooltest.Call(t, set.Delete, `{"path":"pipe"}`), `error: "pipe" is a pipe; only regular files, links and empty directories can be deleted`},
		{tooltest.Call(t, set.List, `{"path":"pipe"}`), `error: "pipe" is not a directory but a pipe`},
		{tooltest.Call(t, set.List, `{}`), "other\tlink\tpipe\nother\tpipe\tpipe\nother\tsocket\tsocket"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %s, want %s", tt.got, tt.want)
		}
	}
	if got := tooltest.Run(t, set.Stat, `{"path":"pipe"}`); got.IsError {
		t.Error(got.Text())
	}
}
