//go:build unix

package procgroup_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/procgroup"
)

// Each program has a child that would hold its output for a minute.
func TestGroupEndsAsAWhole(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		end    func(*procgroup.Group, context.CancelFunc)
	}{
		"program ends": {
			script: "sleep 60 & echo begun",
			end:    func(*procgroup.Group, context.CancelFunc) {},
		},
		"killed": {
			script: "sleep 60 & echo begun; wait",
			end:    func(g *procgroup.Group, _ context.CancelFunc) { g.Kill() },
		},
		"terminated": {
			script: "sleep 60 & echo begun; wait",
			end:    func(g *procgroup.Group, _ context.CancelFunc) { g.Terminate() },
		},
		"context ends": {
			script: "trap '' TERM; sleep 60 & echo begun; wait",
			end:    func(_ *procgroup.Group, cancel context.CancelFunc) { cancel() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cmd := exec.CommandContext(ctx, "/bin/sh", "-c", test.script)
			out, in, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			cmd.Stdout = in
			g := procgroup.New(cmd)
			err = g.Start()
			in.Close()
			if err != nil {
				t.Fatal(err)
			}
			begun := make([]byte, len("begun\n"))
			if _, err := io.ReadFull(out, begun); err != nil {
				t.Fatal(err)
			}

			test.end(g, cancel)
			g.Wait()
			out.SetReadDeadline(time.Now().Add(20 * time.Second))
			if _, err := io.ReadAll(out); err != nil {
				t.Errorf("a process of the group still holds the output: %v", err)
			}
			if err := g.Kill(); err != nil {
				t.Errorf("killing a group that has ended: %v", err)
			}
		})
	}
}

// A program with a relative path is looked for in the folder in which it starts.
func TestStartable(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "act")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		program, dir string
		want         error
	}{
		{"./act", dir, nil},
		{file, "", nil},
		{"sh", dir, nil},
		{"./act", "", fs.ErrNotExist},
		{"./act", file, syscall.ENOTDIR},
		{"./act", dir + "/gone", fs.ErrNotExist},
		{"act", dir, exec.ErrNotFound},
	} {
		if err := procgroup.Startable(c.program, c.dir); !errors.Is(err, c.want) {
			t.Errorf("%s in %q: got %v, want %v", c.program, c.dir, err, c.want)
		}
	}
}
