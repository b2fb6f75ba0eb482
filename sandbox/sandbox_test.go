//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/test/parts"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/sandbox"
)

// each runs a test at every level that the machine can enforce, and skips the other levels with a
// message.
func each(t *testing.T, do func(t *testing.T, level sandbox.Level)) {
	r := sandbox.Probe()
	for l := sandbox.Strict; l <= sandbox.None; l++ {
		t.Run(l.String(), func(t *testing.T) {
			if p := r.Level(l); !p.OK {
				t.Skip("this machine cannot enforce it: " + p.Reason)
			}
			do(t, l)
		})
	}
}

func run(t *testing.T, spec sandbox.Spec) *sandbox.Result {
	t.Helper()
	res, err := sandbox.Run(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func sh(level sandbox.Level, script string) sandbox.Spec {
	return sandbox.Spec{Level: level, Args: []string{"sh", "-c", script}}
}

func TestResult(t *testing.T) {
	each(t, func(t *testing.T, level sandbox.Level) {
		spec := sh(level, `cat; echo oops >&2; exit 7`)
		spec.Stdin = []byte("in")
		res := run(t, spec)
		got := []any{res.End, res.Exit, res.Signal, res.Stdout.String(), res.Stderr.String()}
		if diff := cmp.Diff(got, []any{sandbox.Exited, 7, "", "in", "oops\n"}); diff != "" {
			t.Error(diff)
		}
		if res = run(t, sh(level, `sh -c 'kill -9 $$'; echo $?`)); res.Stdout.String() != "137\n" {
			t.Errorf("a child that was killed: %q", res.Stdout.String())
		}
	})
}

func TestEnvironment(t *testing.T) {
	t.Setenv("PAWL_CANARY", "canary")
	each(t, func(t *testing.T, level sandbox.Level) {
		res := run(t, sandbox.Spec{Level: level, Args: []string{"env"}, Env: []string{"A=b", "HOME=/nowhere", "TMPDIR=/t"}})
		got := strings.Split(strings.TrimSpace(res.Stdout.String()), "\n")
		slices.Sort(got)
		if diff := cmp.Diff(got, []string{"A=b", "HOME=/nowhere", "LANG=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "TMPDIR=/t"}); diff != "" {
			t.Error(diff)
		}
	})
}

// begun starts a program that prints up, and returns when it has, with the files that it holds
// open. If a busy machine reaches the time limit first, the limit is doubled.
func begun(t *testing.T, spec sandbox.Spec) (*sandbox.Process, *os.File) {
	t.Helper()
	for {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		spec.Files = []*os.File{w}
		p, err := sandbox.Start(context.Background(), spec)
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
		if _, err = io.ReadFull(r, make([]byte, 3)); err == nil {
			return p, r
		}
		if res, _ := p.Wait(); res == nil || res.End != sandbox.TimedOut || spec.Limits.Time > 30*time.Second {
			t.Fatalf("it did not begin: %v, %+v", err, res)
		}
		spec.Limits.Time *= 2
	}
}

// No process that the program started outlives it, and none delays the end.
func TestEndsWhole(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancelled := errors.New("enough")
	cancel(cancelled)
	for _, tt := range []struct {
		name, script string
		limits       sandbox.Limits
		cancel       bool
		want         sandbox.End
	}{
		{"background", `sleep 600 & (sleep 600 & sleep 600) & echo begun`, sandbox.Limits{}, false, sandbox.Exited},
		{"time", `sleep 600 & echo begun; sleep 600`, sandbox.Limits{Time: 500 * time.Millisecond}, false, sandbox.TimedOut},
		{"cpu", `sleep 600 & echo begun; while :; do :; done`, sandbox.Limits{CPU: time.Second}, false, sandbox.UsedCPU},
		{"cancelled", `sleep 600 & echo begun; sleep 600`, sandbox.Limits{}, true, sandbox.Cancelled},
		{"endless print", `sleep 600 & echo begun; yes`, sandbox.Limits{Time: 500 * time.Millisecond}, false, sandbox.TimedOut},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, level sandbox.Level) {
				spec := sh(level, `echo up >&3; `+tt.script)
				spec.Limits = tt.limits
				p, r := begun(t, spec)
				if tt.cancel {
					p.Kill()
				}
				res, err := p.Wait()
				if err != nil {
					t.Fatal(err)
				}
				// a process that still holds the other end would keep this open
				r.SetReadDeadline(time.Now().Add(10 * time.Second))
				if b, err := io.ReadAll(r); err != nil || len(b) > 0 {
					t.Errorf("something of it lives on: %q, %v", b, err)
				}
				if res.End != tt.want || res.Time > 30*time.Second {
					t.Errorf("got %q after %s, want %q", res.End, res.Time, tt.want)
				}
				if len(res.Stdout.Head)+len(res.Stdout.Tail) > 64<<10 {
					t.Errorf("kept %d bytes", len(res.Stdout.Head)+len(res.Stdout.Tail))
				}
			})
		})
	}
	if _, err := sandbox.Run(ctx, sh(sandbox.None, "true")); !errors.Is(err, cancelled) {
		t.Errorf("got %v, want the context's cause", err)
	}
}

// If a context ends while the program runs, Run returns its cause as error together with the
// Result.
func TestContext(t *testing.T) {
	each(t, func(t *testing.T, level sandbox.Level) {
		ctx, cancel := context.WithCancelCause(context.Background())
		p, err := sandbox.Start(ctx, sh(level, "sleep 600"))
		if err != nil {
			t.Fatal(err)
		}
		enough := errors.New("enough")
		cancel(enough)
		if res, err := p.Wait(); !errors.Is(err, enough) || res.End != sandbox.Cancelled {
			t.Errorf("got %v, %v", res, err)
		}
	})
}

// A program ends when the process that runs it is killed and cannot end it: also its children, and
// a program that asks the kernel to forget that process.
func TestParentKilled(t *testing.T) {
	const helper = "PAWL_SANDBOX_HELPER"
	if script, ok := os.LookupEnv(helper); ok {
		var level sandbox.Level
		if err := level.UnmarshalText([]byte(os.Getenv(helper + "_LEVEL"))); err != nil {
			t.Fatal(err)
		}
		spec := sh(level, script)
		spec.Files = []*os.File{os.NewFile(3, "pipe")}
		sandbox.Run(context.Background(), spec)
		return
	}
	for name, script := range map[string]string{
		"program": "echo up >&3; exec sleep 600",
		"child":   "sleep 600 & echo up >&3; wait",
		"forgets": `exec python3 -c "import ctypes, os, time; ctypes.CDLL(None).prctl(1, 0, 0, 0, 0); os.write(3, b'up\n'); time.sleep(600)"`,
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(script, "python3") {
				parts.Program(t, "/usr/bin/python3", "python3")
			}
			each(t, func(t *testing.T, level sandbox.Level) {
				if level == sandbox.None {
					return // promises nothing
				}
				r, w, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				// the program's user cannot enter the parent folder of t.TempDir
				dir, err := os.MkdirTemp("/tmp", "pawl-killed-")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { os.RemoveAll(dir) })
				if err := os.Chmod(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				cmd := exec.Command("/proc/self/exe", "-test.run=^TestParentKilled$")
				cmd.Env = []string{helper + "=" + script, helper + "_LEVEL=" + level.String(), "TMPDIR=" + dir}
				cmd.ExtraFiles = []*os.File{w}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				w.Close()
				if _, err := io.ReadFull(r, make([]byte, 3)); err != nil {
					t.Fatal(err)
				}
				cmd.Process.Kill()
				cmd.Wait()
				r.SetReadDeadline(time.Now().Add(10 * time.Second))
				if _, err := io.ReadAll(r); err != nil {
					t.Errorf("the program outlives the process that ran it: %v", err)
				}
				// the next programs remove its groups
				for i := 0; len(groupsOf(cmd.Process.Pid)) > 0; i++ {
					if run(t, sh(level, "true")); i == 100 {
						t.Errorf("%v stay", groupsOf(cmd.Process.Pid))
						break
					}
				}
			})
		})
	}
}

func TestProgramsAsUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		asNobody(t, "TestPrograms", soak.Env(), "PATH=/usr/local/go/bin:/usr/bin:/bin")
	}
}

// The filter lets usual programs work, with calls that other systems or versions would choose. Each
// row names what it needs; a program that is missing here is left out aloud.
func TestPrograms(t *testing.T) {
	t.Parallel()
	programs := []struct {
		name, script, want string
		strict             bool // needs modes or files that standard refuses
	}{
		{"sh", `x=$(printf '%s\n' b a | sort | tr '\n' ' '); [ "$x" = "a b " ] && echo fine`, "fine", false},
		{"bash", `bash -c 'for i in 1 2 3; do sleep 0 & done; wait; [[ -d / ]] && cat <(true); echo fine'`, "fine", false},
		{"touch", `mkdir -p a/b && touch a/b/c && cp -r a d && mv d e && ln -s e f && rm -r e && ls -l >/dev/null && du -s . >/dev/null && df . >/dev/null && stat a >/dev/null && date >/dev/null && nice true && timeout 5 true && mktemp >/dev/null && seq 9 | shuf | tac | head -1 >/dev/null && touch a/b/c && sync && echo fine`, "fine", false},
		{"python3", `python3 -c 'import asyncio, subprocess, threading, tempfile, socket, mmap, select, json
t = threading.Thread(target=lambda: None); t.start(); t.join()
assert subprocess.run(["echo", "a"], capture_output=True).stdout == b"a\n"
async def main():
    p = await asyncio.create_subprocess_exec("true"); assert await p.wait() == 0
    assert await asyncio.to_thread(lambda: 3) == 3
asyncio.run(main())
a, b = socket.socketpair(); a.sendall(b"x"); assert b.recv(1) == b"x"
tempfile.TemporaryFile().write(b"x"); mmap.mmap(-1, 4096)
print("fine")'`, "fine", false},
		{"python3", `python3 -c 'import multiprocessing
with multiprocessing.get_context("fork").Pool(2) as p: print("fine" if p.map(abs, [-1, -2]) == [1, 2] else "wrong")'`, "fine", true},
		{"node", `node -e '
const fs = require("fs"), cp = require("child_process"), {Worker} = require("worker_threads");
fs.writeFileSync("n", "x"); fs.promises.readFile("n", "utf8").then(() => {
  cp.execFileSync("true"); cp.spawnSync("echo", ["a"]);
  new Worker("require(\"worker_threads\").parentPort.postMessage(1)", {eval: true}).on("message", () => {
    setTimeout(() => console.log("fine"), 1) }) })'`, "fine", false},
		{"gcc", `printf '#include <stdio.h>\nint main(){puts("fine");}' > x.c && gcc -O1 x.c -o x && ./x`, "fine", true},
		{"git", `git init -q . && git config user.email a@b && git config user.name a && echo x > f && git add f && git commit -qm x && git gc -q && git log --oneline | grep -c . && git status --short && git checkout -qb y && echo fine`, "1\nfine", true},
		{"go", `printf 'package main\nfunc main() { println("fine") }' > x.go && gofmt x.go >v && go version >>v && ` +
			soak.N(`echo fine`, `GO111MODULE=off GOCACHE=$PWD/c go build -o y x.go && ./y 2>&1`), "fine", false},
		{"java", `printf 'class X { public static void main(String[] a) throws Exception { Thread t = new Thread(() -> System.out.println("fine")); t.start(); t.join(); } }' > X.java && java -XX:+UseSerialGC X.java`, "fine", false},
	}
	each(t, func(t *testing.T, level sandbox.Level) {
		if level == sandbox.Standard && os.Geteuid() == 0 {
			return // it cannot write root's folders; TestProgramsAsUser tries it
		}
		for _, p := range programs {
			if p.strict && level == sandbox.Standard {
				continue
			}
			t.Run(p.name, func(t *testing.T) {
				where, err := exec.LookPath(p.name)
				if err == nil {
					where, err = filepath.EvalSymlinks(where)
				}
				if err != nil {
					t.Skip("not here: " + err.Error())
				}
				dir, err := filepath.EvalSymlinks(t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				spec := sh(level, "cd "+dir+" && "+p.script)
				spec.Write = []string{dir}
				spec.Env = []string{"PATH=/usr/local/go/bin:/usr/bin:/bin"}
				spec.Limits = sandbox.Limits{Memory: 16 << 30, MemoryInAll: 2 << 30, Processes: 200,
					Time: 4 * time.Minute, OpenFiles: 1024}
				if res := run(t, spec); strings.TrimSpace(res.Stdout.String()) != p.want {
					t.Errorf("%s, %s %d: %s%s", where, res.End, res.Exit, res.Stdout.String(), res.Stderr.String())
				}
			})
		}
	})
}

// Files that a program wrote outside the paths of Write are deleted with it.
func TestNothingRemains(t *testing.T) {
	each(t, func(t *testing.T, level sandbox.Level) {
		if level == sandbox.Strict {
			run(t, sh(level, "echo secret > /tmp/left"))
		} else {
			run(t, sh(level, `echo secret > "$TMPDIR/left"`))
		}
		if res := run(t, sh(level, `ls -A "$TMPDIR"`)); len(res.Stdout.Head) > 0 {
			t.Errorf("the program before left %q", res.Stdout.String())
		}
	})
}

func TestWorkspace(t *testing.T) {
	if p := sandbox.Probe().Level(sandbox.Strict); !p.OK {
		t.Skip("this machine cannot enforce strict: " + p.Reason)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	given := filepath.Join(dir, "given")
	for _, f := range []string{given, filepath.Join(dir, "kept")} {
		if err := os.WriteFile(f, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	spec := sh(sandbox.Strict, `pwd; cat ../given; ls ..; echo new > made; echo new > ../given`)
	spec.Write, spec.Read = []string{work}, []string{given}
	res := run(t, spec)
	if got, want := res.Stdout.String(), work+"\noldgiven\nwork\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	st, err := os.Stat(filepath.Join(work, "made"))
	if err != nil {
		t.Fatal(err)
	}
	if uid := int(st.Sys().(*syscall.Stat_t).Uid); uid != os.Geteuid() {
		t.Errorf("what the program made belongs to %d, want the owner of the folder, %d", uid, os.Geteuid())
	}
	if b, _ := os.ReadFile(given); string(b) != "old" {
		t.Errorf("a file to read was written: %q", b)
	}
}

// A fault in a Spec is reported as such, and not as a machine that cannot enforce it.
func TestWrongSpec(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/usr", link); err != nil {
		t.Fatal(err)
	}
	ok := []string{"true"}

	// The program is looked up after the level has been set up, so these rows need a
	// level that this machine can enforce.
	level := sandbox.Strict
	if sandbox.Check(level) != nil {
		level = sandbox.None
	}
	for _, tt := range []struct {
		spec sandbox.Spec
		want string
	}{
		{sandbox.Spec{}, "Args is empty"},
		{sandbox.Spec{Args: ok, Level: 7}, "unknown level 7"},
		{sandbox.Spec{Args: ok, Write: []string{"work"}}, "not a clean absolute path"},
		{sandbox.Spec{Args: ok, Write: []string{dir + "/../x"}}, "not a clean absolute path"},
		{sandbox.Spec{Args: ok, Write: []string{"/"}}, "belongs to the system"},
		{sandbox.Spec{Args: ok, Read: []string{"/proc/1"}}, "belongs to the system"},
		{sandbox.Spec{Args: ok, Write: []string{link}}, "symbolic link"},
		{sandbox.Spec{Args: ok, Write: []string{filepath.Join(dir, "absent")}}, "no such file"},
		{sandbox.Spec{Args: ok, Env: []string{"A"}}, "NAME=value"},
		{sandbox.Spec{Args: []string{"a\x00b"}}, "zero byte"},
		{sandbox.Spec{Args: ok, Files: []*os.File{nil}}, "is nil"},
		{sandbox.Spec{Args: ok, Limits: sandbox.Limits{Memory: -1}}, "less than 0"},
		{sandbox.Spec{Level: level, Args: []string{"pawl-no-such-program"}}, "no such program"},
		{sandbox.Spec{Level: level, Args: ok, Dir: "/nowhere"}, "the folder to start in"},
	} {
		if _, err := sandbox.Run(context.Background(), tt.spec); err == nil || !strings.Contains(err.Error(),
			tt.want) || errors.Is(err, sandbox.ErrUnenforced) {
			t.Errorf("%+v: got %v, want %q", tt.spec, err, tt.want)
		}
	}
}

// If a protection cannot be set up, nothing runs: here in a user namespace that allows no other.
func TestFailsClosed(t *testing.T) {
	if dir := os.Getenv("PAWL_SANDBOX_HELPER"); dir != "" {
		made := filepath.Join(dir, "made")
		_, err := sandbox.Run(context.Background(), sandbox.Spec{Args: []string{"touch", made}, Write: []string{dir}})
		if !errors.Is(err, sandbox.ErrUnenforced) {
			t.Errorf("got %v, want ErrUnenforced", err)
		}
		if _, err := os.Stat(made); err == nil {
			t.Error("the program ran")
		}
		if p := sandbox.Probe().Level(sandbox.Strict); p.OK || p.Reason == "" {
			t.Errorf("the probe says %+v", p)
		}
		return
	}
	if p := sandbox.Probe().Level(sandbox.Strict); !p.OK {
		t.Skip("this machine cannot enforce strict: " + p.Reason)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "-Ur", "sh", "-c", `echo 0 >/proc/sys/user/max_user_namespaces && exec "$0" -test.v -test.run='^TestFailsClosed$'`, executable(t))
	cmd.Env = []string{"PAWL_SANDBOX_HELPER=" + dir, "TMPDIR=" + dir, "PATH=/usr/bin:/bin"}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestFailsClosed") {
		t.Errorf("%v\n%s", err, out)
	}
}

func executable(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A process started under a child's name does nothing without a complete order, and does not damage
// the machine with an order for protections outside namespaces.
func TestBrokenOrder(t *testing.T) {
	whole := `"Args":["true"],"Dir":"/","Temp":"/tmp","Limits":{"Time":1,"CPU":1,"Memory":1,"MemoryInAll":1,"Processes":1,"FileSize":1,"Disk":1,"Files":1,"Temp":1,"OpenFiles":1,"Output":1}`
	for _, tt := range []struct{ order, want string }{
		{"", ""},
		{"\x00\x00\x00\x40{", "order"},
		{"\xff\xff\xff\xff{}", "order"},
		{framed("[]"), "order"},
		{framed("{}"), "order"},
		{framed(`{` + whole + `}`), "namespaces"},
		{framed(`{` + whole + `,"Parent":["a","b","c","d","e","f","g"]}`), "namespaces"},
	} {
		fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
		if _, err := ours.WriteString(tt.order); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Shutdown(fds[0], syscall.SHUT_WR); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/proc/self/exe")
		cmd.Args = []string{"pawl sandbox child", "3"}
		cmd.ExtraFiles = []*os.File{theirs}
		// a child that does not refuse damages what this test creates, and not the machine
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS}
		}
		err = cmd.Run()
		theirs.Close()
		said, _ := io.ReadAll(ours)
		ours.Close()
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 125 ||
			!strings.Contains(string(said), tt.want) || strings.Contains(string(said), `"Ready":true`) {
			t.Errorf("order %q: %v, %s, want %q", tt.order, err, said, tt.want)
		}
	}
}

func framed(s string) string { return string(binary.BigEndian.AppendUint32(nil, uint32(len(s)))) + s }

func TestOutput(t *testing.T) {
	spec := sh(sandbox.None, `echo first; i=0; while [ $i -lt 5000 ]; do echo xxxxxxxxx; i=$((i+1)); done; echo last`)
	spec.Limits.Output = 100
	res := run(t, spec)
	if got := res.Stdout.String(); !strings.HasPrefix(got, "first\nxxx") || !strings.HasSuffix(got,
		"xxx\nlast\n") || !strings.Contains(got, "[… 49911 bytes left out …]") || !res.Stdout.Truncated() {
		t.Errorf("got %q", got)
	}
}

// The cost of a start, including the sandbox and python3.
func BenchmarkPython(b *testing.B) {
	for l := sandbox.Strict; l <= sandbox.None; l++ {
		b.Run(l.String(), func(b *testing.B) {
			for b.Loop() {
				res, err := sandbox.Run(context.Background(), sandbox.Spec{Level: l, Args: []string{"/usr/bin/python3", "-S", "-E", "-c", "print(6*7)"}})
				if err != nil {
					b.Skip(err)
				}
				b.ReportMetric(float64(res.Setup.Microseconds())/1000, "setup-ms")
				if res.Stdout.String() != "42\n" {
					b.Fatal(res.Stderr.String())
				}
			}
		})
	}
}

// The cost of a start, with the smallest program.
func BenchmarkTrue(b *testing.B) {
	for l := sandbox.Strict; l <= sandbox.None; l++ {
		b.Run(l.String(), func(b *testing.B) {
			for b.Loop() {
				if _, err := sandbox.Run(context.Background(), sandbox.Spec{Level: l, Args: []string{"/bin/true"}}); err != nil {
					b.Skip(err)
				}
			}
		})
	}
}

// A limit of time that passes before the program runs is reported as one, and not as a sandbox that
// cannot be enforced.
func TestTimeOverDuringSetUp(t *testing.T) {
	each(t, func(t *testing.T, level sandbox.Level) {
		spec := sh(level, "sleep 600")
		spec.Limits.Time = time.Microsecond
		res, err := sandbox.Run(t.Context(), spec)
		if err != nil || res.End != sandbox.TimedOut || len(res.Stdout.Head) > 0 {
			t.Errorf("got %+v, %v, want the end %q", res, err, sandbox.TimedOut)
		}
	})
}
