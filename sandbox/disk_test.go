//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/sandbox"
)

func TestDiskAsUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		asNobody(t, "TestDisk", soak.Env())
	}
}

// The limit applies to all files of the folders together, each of which is small enough: in one
// folder or many, with names or without, at any depth. Writing within the limit is permitted, also
// while another program fills the disk, and existing files do not count. A process that ends just
// when it is examined hides nothing.
func TestDisk(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	for _, level := range []sandbox.Level{sandbox.Strict, sandbox.Standard, sandbox.None} {
		if level == sandbox.Standard && os.Geteuid() == 0 {
			continue // it cannot write root's folders
		}
		if !soak.On() && (level == sandbox.None || level == sandbox.Strict && os.Getenv(nobody) != "") {
			continue // root tries strict
		}
		if p := sandbox.Probe().Level(level); !p.OK {
			t.Logf("%s cannot be enforced here, so nothing is tried: %s", level, p.Reason)
			continue
		}
		for _, test := range []struct {
			name, script string
			want         sandbox.End
			others       bool
			delete       bool // others delete a file, instead of creating it
		}{
			{name: "files", script: `for i in 1 2 3 4 5 6 7 8 9; do head -c 16000000 /dev/zero >f$i || exit; done; sleep 20`, want: sandbox.UsedDisk},
			{name: "without names", script: `exec 3>a; rm a; exec 4>a; rm a; exec 5>a; rm a; head -c 30000000 /dev/zero >&3; head -c 30000000 /dev/zero >&4; head -c 30000000 /dev/zero >&5; sleep 20`, want: sandbox.UsedDisk},
			{name: "too deep for a path", script: `n=$(printf %0200d 0); i=0; while [ $i -lt 30 ]; do mkdir $n && cd -P $n || exit; i=$((i+1)); done; for i in 1 2 3 4 5 6; do head -c 16000000 /dev/zero >f$i || exit; done; sleep 20`, want: sandbox.UsedDisk},
			{name: "closed", script: `mkdir d; for i in 1 2 3 4 5 6; do head -c 16000000 /dev/zero >d/f$i || exit; done; chmod 0 d; sleep 20`, want: sandbox.UsedDisk},
			{name: "within", script: `head -c 30000000 /dev/zero >f; sleep 0.6; rm f; head -c 30000000 /dev/zero >f; echo done`, want: sandbox.Exited},
			{name: "processes end", script: `for n in 1 2 3 4 5 6; do while [ ! -e end ]; do rm -f none; done & done; i=0; while [ $i -lt 20 ]; do head -c 5000000 /dev/zero >f; rm f; i=$((i+1)); done; touch end; wait; echo done`, want: sandbox.Exited},
			{name: "others", script: `head -c 1000000 /dev/zero >f; touch go; while ! [ -e went ]; do sleep 0.05; done; sleep 0.6; echo done`, want: sandbox.Exited, others: true},
			{name: "others delete", script: `head -c 30000000 /dev/zero >f; touch go; while ! [ -e went ]; do sleep 0.05; done; sleep 0.6; for i in 1 2 3 4; do head -c 16000000 /dev/zero >f$i || exit; done; sleep 20`, want: sandbox.UsedDisk, others: true, delete: true},
		} {
			t.Run(level.String()+"/"+test.name, func(t *testing.T) {
				dir, err := filepath.EvalSymlinks(t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { os.Chmod(filepath.Join(dir, "d"), 0o755) })
				if err := os.WriteFile(filepath.Join(dir, "before"), make([]byte, 80*mb), 0o644); err != nil {
					t.Fatal(err)
				}
				if test.others {
					other := filepath.Join(t.TempDir(), "other")
					if test.delete {
						if err := os.WriteFile(other, make([]byte, 100*mb), 0o644); err != nil {
							t.Fatal(err)
						}
					}
					go func() {
						for range time.Tick(10 * time.Millisecond) {
							if _, err := os.Stat(filepath.Join(dir, "go")); err == nil {
								break
							}
						}
						if test.delete {
							os.Remove(other)
						} else {
							os.WriteFile(other, make([]byte, 100*mb), 0o644)
						}
						os.WriteFile(filepath.Join(dir, "went"), nil, 0o644)
					}()
				}
				began := time.Now()
				res := run(t, sandbox.Spec{Level: level, Args: []string{"/bin/sh", "-c", test.script},
					Write: []string{dir}, Limits: sandbox.Limits{Disk: 64 * mb, Time: 60 * time.Second}})
				if res.End != test.want || test.want == sandbox.Exited && res.Stdout.String() != "done\n" {
					t.Errorf("%s after %v, want %s: %s%s", res.End, time.Since(began), test.want, res.Stdout.String(), res.Stderr.String())
				}
			})
		}
	}
}

func TestDiskOfSemaphoresAsUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		asNobody(t, "TestDiskOfSemaphores")
	}
}

// A semaphore is a deleted file in the machine's shared memory that a user may not examine. It is
// on no disk, so it counts as nothing, however large a file may be.
func TestDiskOfSemaphores(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("not here: " + err.Error())
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}

	const script = `import multiprocessing, os, time
held = [multiprocessing.Semaphore() for _ in range(3)]
for _ in range(200):
    with open("f", "wb") as f:
        f.write(bytes(5000000))
    os.remove("f")
    time.sleep(0.01)
print("done")`
	res := run(t, sandbox.Spec{
		Level:  sandbox.None,
		Args:   []string{"python3", "-c", script},
		Write:  []string{dir},
		Limits: sandbox.Limits{Disk: 64 << 20, FileSize: 128 << 20, Time: 60 * time.Second},
	})
	if res.End != sandbox.Exited || res.Stdout.String() != "done\n" {
		t.Errorf("%s: %s%s", res.End, res.Stdout.String(), res.Stderr.String())
	}
}

// What the sandbox itself passes to a program's first process while it is set up counts as nothing,
// however long the process takes to read it, also while other programs use the disk.
func TestDiskWhileSetUp(t *testing.T) {
	t.Parallel()
	if p := sandbox.Probe().Level(sandbox.Strict); !p.OK {
		t.Skip(p.Reason)
	}
	noise := filepath.Join(t.TempDir(), "noise")
	stop := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				os.WriteFile(noise, make([]byte, 4<<20), 0o644)
				os.Remove(noise)
			}
		}
	})
	defer others.Wait()
	defer close(stop)

	var programs sync.WaitGroup
	defer programs.Wait()
	for range 16 {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		programs.Go(func() {
			res, err := sandbox.Run(t.Context(), sandbox.Spec{
				Level:  sandbox.Strict,
				Args:   []string{"/bin/echo", "done"},
				Write:  []string{dir},
				Limits: sandbox.Limits{Disk: 64 << 10, Time: 60 * time.Second},
			})
			if err != nil {
				t.Error(err)
				return
			}
			if res.End != sandbox.Exited || res.Stdout.String() != "done\n" {
				t.Errorf("%s: %s%s", res.End, res.Stdout.String(), res.Stderr.String())
			}
		})
	}
}
