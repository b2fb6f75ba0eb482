//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-go/pawl/internal/test/parts"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/sandbox"
)

//go:embed testdata/escape.py
var escapePy string

//go:embed testdata/escape.sh
var escapeSh string

// given describes the environment that an attempt targets.
type given struct {
	Work     string `json:"work"`
	Read     string `json:"read"`
	Temp     string `json:"temp"`
	Secret   string `json:"secret"`
	Socket   string `json:"socket"`
	Datagram string `json:"datagram"`
	Abstract string `json:"abstract"`
	Port     int    `json:"port"`
	Victim   int    `json:"victim"`
	Parent   int    `json:"parent"`
	FD       int    `json:"fd"`
}

// attempt is a way by which a program tries to escape.
type attempt struct {
	name string
	root bool // succeeds without a sandbox only as root
	some bool // uses something that only some kernels have
	args []string
}

// attempts returns all attempts in the two files.
func attempts(t *testing.T, g given) []attempt {
	told, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	var list []attempt
	for _, m := range regexp.MustCompile(`(?m)^def try_(\w+)\(\):(.*)`).FindAllStringSubmatch(escapePy, -1) {
		list = append(list, attempt{"python/" + m[1], strings.Contains(m[2], "root"),
			strings.Contains(m[2], "kernel"), []string{"/usr/bin/python3", "-c", escapePy, m[1], string(told)}})
	}
	for _, m := range regexp.MustCompile(`(?m)^try_(\w+)\(\) \{(.*)`).FindAllStringSubmatch(escapeSh, -1) {
		script := fmt.Sprintf("%s\nSECRET=%s WORK=%s VICTIM=%d PARENT=%d PORT=%d\nif try_%s; then echo OUT; else echo stopped: $?; fi", escapeSh, g.Secret, g.Work, g.Victim, g.Parent, g.Port, m[1])
		list = append(list, attempt{"shell/" + m[1], strings.Contains(m[2], "root"), false, []string{"/bin/sh", "-c", script}})
	}
	return list
}

// surroundings creates the targets of the attempts: a file of another user, a process, sockets, a
// variable, and an open descriptor.
func surroundings(t *testing.T) given {
	t.Helper()
	t.Setenv("PAWL_CANARY", "canary")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := given{Work: filepath.Join(dir, "work"), Read: filepath.Join(dir, "read"),
		Secret: filepath.Join(dir, "private", "secret"), Parent: os.Getpid()}
	for _, d := range []string{g.Work, g.Read, filepath.Dir(g.Secret)} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{g.Secret, filepath.Join(g.Read, "given")} {
		if err := os.WriteFile(f, []byte("a secret"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// without O_CLOEXEC: every child inherits it
	if g.FD, err = unix.Open(g.Secret, unix.O_RDONLY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(g.FD) })
	victim := exec.Command("/bin/sleep", "600")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { victim.Process.Kill(); victim.Wait() })
	g.Victim = victim.Process.Pid
	g.Socket, g.Abstract = filepath.Join(dir, "private", "s"), fmt.Sprintf("pawl-%d", os.Getpid())
	for _, a := range [][2]string{{"tcp4", "127.0.0.1:0"}, {"unix", g.Socket}, {"unix", "@" + g.Abstract}} {
		l, err := net.Listen(a[0], a[1])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		if tcp, ok := l.Addr().(*net.TCPAddr); ok {
			g.Port = tcp.Port
		}
	}
	g.Datagram = g.Socket + "d"
	d, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: g.Datagram, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	go func() { // each attempt finds room for its datagram
		for b := make([]byte, 16); err == nil; {
			_, err = d.Read(b)
		}
	}()
	return g
}

// An attempt that fails as root may fail because root's files are mapped, and an attempt that fails
// as a user may fail because users have few rights. So the attempts run as both.
func TestEscapesAsUser(t *testing.T) {
	soak.Sequential(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user; TestEscapes runs as this one")
	}
	enforced(t, sandbox.Strict)
	asNobody(t, "TestEscapes", soak.Env())
}

// nobody is an environment variable of a test that asNobody runs.
const nobody = "PAWL_TEST_AS_NOBODY"

// asNobody runs a test of this binary as the user nobody, who owns only a temporary folder.
func asNobody(t *testing.T, test string, env ...string) {
	t.Helper()
	// the user nobody cannot enter the parent folder of t.TempDir
	dir, err := os.MkdirTemp("/tmp", "pawl-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+test+"$", "-test.v", "-test.timeout=14m")
	cmd.Dir = dir
	cmd.Env = append([]string{nobody + "=1", "TMPDIR=" + dir, "PATH=/usr/bin:/bin", "HOME=" + dir}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+test+" ") {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "attempts stopped,") || strings.Contains(line, "--- SKIP") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// tight are limits that the attempts to exhaust resources reach.
var tight = sandbox.Limits{Time: 30 * time.Second, CPU: 10 * time.Second, Memory: 300 << 20, Processes: 40,
	FileSize: 8 << 20, Temp: 20 << 20, OpenFiles: 100}

// No attempt escapes from Strict, and each succeeds without a sandbox: the sandbox stopped it, and
// not a mistake in the attempt. Attempts that need root are tested when the test runs as root.
func TestEscapes(t *testing.T) {
	soak.Sequential(t)
	enforced(t, sandbox.Strict)
	escapes(t, sandbox.Strict, nil)
}

// Standard stops what it promises to stop. The page on security names what it does not stop: it
// limits neither the number of processes nor the temporary folder, and a program can find out
// whether a file exists.
func TestEscapesStandard(t *testing.T) {
	soak.Sequential(t)
	enforced(t, sandbox.Standard)
	if os.Geteuid() == 0 {
		asNobody(t, "TestEscapesStandard", soak.Env())
		return
	}
	escapes(t, sandbox.Standard, map[string]bool{"python/host_folders": true, "python/shared_memory_folder": true, "shell/cd_out": true, "shell/other_processes": true,
		"python/temp_fill": true, "python/fork_bomb": true})
}

func escapes(t *testing.T, level sandbox.Level, known map[string]bool) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the attempts know the numbers of the system calls of amd64")
	}
	g := surroundings(t)
	stopped, controls := 0, 0
	inside, outside := g, g
	inside.Temp, outside.Temp = "/tmp", filepath.Dir(g.Secret)
	if level != sandbox.Strict {
		inside.Temp = g.Work
	}
	out := attempts(t, outside)
	every := soak.N(4, 1)
	for i, a := range attempts(t, inside) {
		if i%every != 0 {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			empty(t, g.Work)
			res, err := sandbox.Run(context.Background(),
				sandbox.Spec{Level: level, Args: a.args, Write: []string{g.Work}, Read: []string{g.Read},
					Limits: tight})
			if err != nil {
				t.Fatal(err)
			}
			said := res.Stdout.String()
			switch got := strings.Contains(said, "OUT"); {
			case got && known[a.name]:
			case got:
				t.Errorf("got out: %s%s", said, res.Stderr.String())
			case known[a.name]:
				t.Errorf("is stopped: %s; the page on security says that it is not", said)
			case !strings.Contains(said, "stopped") && res.End == sandbox.Exited && res.Exit == 0:
				t.Errorf("was not tried: %s: %q %q", res.End, said, res.Stderr.String())
			default:
				stopped++
			}
			if level == sandbox.Strict && (!a.root || os.Geteuid() == 0) && control(t, g, a, out[i].args) {
				controls++
			}
		})
	}
	t.Logf("%s as uid %d: %d attempts stopped, %d not and known, %d shown to work without a sandbox", level, os.Geteuid(), stopped, len(known), controls)
	if want := soak.N(30, 120); stopped < want {
		t.Errorf("%d attempts were stopped, want at least %d", stopped, want)
	}
}

// control makes an attempt without a sandbox and reports whether it succeeded.
func control(t *testing.T, g given, a attempt, args []string) bool {
	t.Helper()
	empty(t, g.Work)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	b, err := cmd.CombinedOutput()
	if a.some && (strings.Contains(string(b), "OSError(38") || strings.Contains(string(b), "FileNotFoundError")) {
		t.Logf("this kernel has no such thing: %s", b)
		return false
	}
	if err != nil || !strings.Contains(string(b), "OUT") {
		t.Errorf("does not get out without a sandbox either, so it proves nothing: %v %s", err, b)
		return false
	}
	return true
}

// enforced skips a test with a message if a level cannot be enforced.
func enforced(t *testing.T, level sandbox.Level) {
	t.Helper()
	if testing.Short() {
		t.Skip("the attempts take minutes")
	}
	if p := sandbox.Probe().Level(level); !p.OK {
		t.Skip("this machine cannot enforce it: " + p.Reason)
	}
	parts.Program(t, "/usr/bin/python3", "python3")
}

func empty(t *testing.T, dir string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
}
