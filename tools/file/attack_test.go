//go:build unix

package file_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/internal/test/tooltest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/file"
)

// prompt calls tool and fails the test if the call does not return within a deadline. It returns
// all text of the result.
func prompt(t *testing.T, tool *pawl.Tool, args string) string {
	t.Helper()
	told := make(chan string, 1)
	go func() {
		res, err := tool.Run(context.Background(), llm.ToolCall{Name: tool.Name, Args: json.RawMessage(args)})
		if err != nil {
			told <- "failed: " + err.Error()
			return
		}
		told <- res.Text() + string(res.Data)
	}()
	select {
	case s := <-told:
		return s
	case <-time.After(2 * time.Minute):
		t.Fatalf("%s %s: no answer", tool.Name, args)
		return ""
	}
}

// An attack is a path, and the directory contents it needs, that lets an unguarded program read or
// change a file outside the root.
type attack struct {
	name, path string
	plant      func(dir, around string) error
	// control is that unguarded program. It returns what it read, or changes the file outside.
	control func(dir, around, path string) (string, error)
}

func read(dir, _, path string) (string, error) {
	b, err := os.ReadFile(dir + "/" + path)
	return string(b), err
}

// write changes the file outside the root and reads it there.
func write(name string) func(dir, around, path string) (string, error) {
	return func(dir, around, path string) (string, error) {
		if err := os.WriteFile(dir+"/"+path, []byte(secret+", changed"), 0o644); err != nil {
			return "", err
		}
		b, err := os.ReadFile(filepath.Join(around, name))
		return strings.TrimSuffix(string(b), ", changed"), err
	}
}

func link(target, name string) func(dir, around string) error {
	return func(dir, around string) error {
		return os.Symlink(strings.ReplaceAll(target, "AROUND", around), filepath.Join(dir, name))
	}
}

// plainForm imitates the normalization of a name (NFKC), which turns letters that look like path
// characters into path characters.
var plainForm = strings.NewReplacer("\u2024", ".", "\uff0e", ".", "\uff0f", "/")

var attacks = []attack{
	{"link to a file", "l", link("../f.txt", "l"), read},
	{"link to a file, absolute", "l", link("AROUND/f.txt", "l"), read},
	{"link to a file, written through", "l", link("../f.txt", "l"), write("f.txt")},
	{"link to a directory", "l/f.txt", link("../out", "l"), read},
	{"link to a directory, absolute", "l/f.txt", link("AROUND/out", "l"), read},
	{"link to a directory, made in", "l/new.txt", link("../out", "l"), write("out/new.txt")},
	{"link to nothing", "l", link("../out/new.txt", "l"), write("out/new.txt")},
	{"link to a link", "a/l", func(dir, around string) error {
		return errors.Join(link("..", "a/m")(dir, around), link("m/../out/f.txt", "a/l")(dir, around))
	}, read},
	{"link behind a link", "same/m/f.txt", func(dir, around string) error {
		return errors.Join(link("a", "same")(dir, around), link("../..", "a/m")(dir, around))
	}, read},
	{"dots", "../f.txt", nil, read},
	{"dots behind a name", "a/b/../../../out/f.txt", nil, read},
	{"dots behind nothing", "./../f.txt", nil, read},
	{"dots written", "../new.txt", nil, write("new.txt")},
	{"absolute", "ABS/f.txt", nil, func(_, _, path string) (string, error) { b, err := os.ReadFile(path); return string(b), err }},
	{"dots in a code for URLs", "%2e%2e/f.txt", nil, func(dir, around, path string) (string, error) {
		path, err := url.PathUnescape(path)
		if err != nil {
			return "", err
		}
		return read(dir, around, path)
	}},
	{"dots that look like dots", "\u2024\u2024/f.txt", nil, func(dir, around, path string) (string, error) { return read(dir, around, plainForm.Replace(path)) }},
	{"wide dots and a wide slash", "\uff0e\uff0e\uff0ff.txt", nil, func(dir, around, path string) (string, error) { return read(dir, around, plainForm.Replace(path)) }},
	{"the other slash", `..\f.txt`, nil, func(dir, around, path string) (string, error) {
		return read(dir, around, strings.ReplaceAll(path, `\`, "/"))
	}},
	{"another case", "L/F.TXT", link("../out", "l"), func(dir, around, path string) (string, error) { return read(dir, around, strings.ToLower(path)) }},
	{"a zero byte", "../f.txt\x00.png", nil, func(dir, around, path string) (string, error) {
		path, _, _ = strings.Cut(path, "\x00")
		return read(dir, around, path)
	}},
	{"hard link written", "h", func(dir, around string) error {
		return os.Link(filepath.Join(around, "f.txt"), filepath.Join(dir, "h"))
	}, write("f.txt")},
}

// No tool of the set reads, creates, changes or deletes anything outside the root under any of the
// attacks. Each attack succeeds where there is no guard.
func TestAttacks(t *testing.T) {
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			begin := func() (dir, around, path string) {
				around = t.TempDir()
				dir = filepath.Join(around, "root")
				for _, d := range []string{"root/a/b", "out"} {
					tooltest.Must(t, os.MkdirAll(filepath.Join(around, d), 0o755))
				}
				for _, f := range []string{"f.txt", "out/f.txt"} {
					tooltest.Must(t, os.WriteFile(filepath.Join(around, f), []byte(secret), 0o644))
				}
				if a.plant != nil {
					tooltest.Must(t, a.plant(dir, around))
				}
				return dir, around, strings.ReplaceAll(a.path, "ABS", around)
			}
			dir, around, path := begin()
			if got, err := a.control(dir, around, path); got != secret {
				t.Fatalf("the control gets %q, %v: this is no attack", got, err)
			}
			dir, around, path = begin()
			before := outside(t, around)
			set := open(t, dir)
			for _, tool := range inOrder(set) {
				told := prompt(t, tool, everyArgs(path))
				// a hard link is a file of the root and may be read
				if strings.Contains(told, secret) && !strings.HasPrefix(a.name, "hard link") {
					t.Errorf("%s: %s", tool.Name, told)
				}
				if diff := cmp.Diff(before, outside(t, around)); diff != "" {
					t.Fatalf("%s changed what is outside (-before +after):\n%s", tool.Name, diff)
				}
			}
			// these two also start from the directory above
			for _, tool := range []*pawl.Tool{set.Search, set.List} {
				if told := prompt(t, tool, `{"pattern":"outside"}`); strings.Contains(told, secret) {
					t.Errorf("%s: %s", tool.Name, told)
				}
			}
		})
	}
}

// naive opens name below dir after checking where the path leads, as programs do that check first
// and open later.
func naive(dir, name string) (string, error) {
	real, err := filepath.EvalSymlinks(filepath.Join(dir, name))
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(real, dir+"/") {
		return "", errors.New("outside")
	}
	b, err := os.ReadFile(filepath.Join(dir, name))
	return string(b), err
}

// Another process replaces a directory by a link to the outside, and back, all the time. A program
// that checks first and opens later follows the link out. The tools do not.
func TestRace(t *testing.T) {
	around, err := filepath.EvalSymlinks(t.TempDir())
	tooltest.Must(t, err)
	dir := filepath.Join(around, "root")
	for name, content := range map[string]string{"root/in/f.txt": "inside", "out/f.txt": secret} {
		tooltest.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(around, name)), 0o755))
		tooltest.Must(t, os.WriteFile(filepath.Join(around, name), []byte(content), 0o644))
	}
	tooltest.Must(t, os.Symlink("in", filepath.Join(dir, "good")))
	tooltest.Must(t, os.Symlink("../out", filepath.Join(dir, "evil")))
	tooltest.Must(t, os.Symlink("in", filepath.Join(dir, "d")))
	stop := make(chan struct{})
	var flips atomic.Int64
	var flipping sync.WaitGroup
	flipping.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			target := []string{"in", "../out"}[n%2]
			os.Remove(filepath.Join(dir, "next"))
			if os.Symlink(target, filepath.Join(dir, "next")) == nil &&
				os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "d")) == nil {
				flips.Add(1)
			}
		}
	})
	defer func() { close(stop); flipping.Wait() }()

	led := false
	for end := time.Now().Add(time.Minute); !led && time.Now().Before(end); {
		got, _ := naive(dir, "d/f.txt")
		led = got == secret
	}
	if !led {
		t.Fatalf("the control was not led out, in %d flips", flips.Load())
	}
	set := open(t, dir)
	before, began, calls, inside := outside(t, around), flips.Load(), 0, 0
	for end := time.Now().Add(soak.N(time.Second, 3*time.Second)); time.Now().Before(end) ||
		flips.Load()-began < 1000; {
		for _, tool := range []*pawl.Tool{set.Read, set.Stat, set.Search, set.Edit, set.Write} {
			told := prompt(t, tool, `{"path":"d/f.txt","content":"inside","edits":[{"old":"inside","new":"inside."}],"pattern":"."}`)
			if strings.Contains(told, secret) || strings.Contains(told, sum(secret)) || strings.Contains(told, `"size":18`) {
				t.Fatalf("%s followed a link outside: %s", tool.Name, told)
			}
			if calls++; strings.Contains(told, "inside") {
				inside++
			}
		}
		for _, tool := range []*pawl.Tool{set.Search, set.List, set.Delete} {
			if told := prompt(t, tool, `{"path":"d/only","pattern":"outside"}`); strings.Contains(told, secret) {
				t.Fatalf("%s followed a link outside: %s", tool.Name, told)
			}
		}
		if told := prompt(t, set.Search, `{"path":"d","pattern":"outside"}`); strings.Contains(told, "1: "+secret) {
			t.Fatalf("a search followed a link outside: %s", told)
		}
	}
	if diff := cmp.Diff(before, outside(t, around)); diff != "" {
		t.Errorf("what is outside changed (-before +after):\n%s", diff)
	}
	t.Logf("%d flips, %d calls, %d of them reached the file inside", flips.Load()-began, calls, inside)
	if inside == 0 {
		t.Error("no call reached the file inside, so nothing was tried")
	}
}

// Pipes, devices and files that the kernel presents: no tool blocks, and nothing without an end is
// read.
func TestEndless(t *testing.T) {
	dir, set := root(t, nil)
	pipe := filepath.Join(dir, "pipe")
	tooltest.Must(t, syscall.Mkfifo(pipe, 0o644))
	opened := make(chan error, 1)
	go func() { // the control: a program that opens the pipe waits for a writer
		f, err := os.Open(pipe)
		if err == nil {
			f.Close()
		}
		opened <- err
	}()
	for {
		select {
		case err := <-opened:
			t.Fatalf("the control did not wait: %v", err)
		default:
		}
		f, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if errors.Is(err, syscall.ENXIO) {
			continue // this case did not occur; where it does, the program waits for this
		}
		tooltest.Must(t, err)
		f.Close()
		break
	}
	<-opened
	paths := []string{"pipe"}
	if err := syscall.Mknod(filepath.Join(dir, "zero"), syscall.S_IFCHR|0o666, 1<<8|5); err == nil {
		if b := make([]byte, 1<<20); func() bool {
			f, err := os.Open(filepath.Join(dir, "zero"))
			if err != nil {
				return true // on a file system without devices the refusal is the same
			}
			defer f.Close()
			n, _ := f.Read(b)
			return n == len(b)
		}() {
			paths = append(paths, "zero")
		}
	}
	for _, path := range paths {
		for _, tool := range inOrder(set) {
			if told := prompt(t, tool, everyArgs(path)); !strings.Contains(told, "is a ") &&
				!strings.Contains(told, "not a directory but a") && tool != set.Stat {
				t.Errorf("%s %s: %s", tool.Name, path, told)
			}
		}
	}
	if told := prompt(t, set.Search, `{"pattern":"."}`); !strings.Contains(told, "[no line matches, in 0 files]") {
		t.Errorf("a search around them: %s", told)
	}
	t.Logf("tried: %v", paths)
}

// The kernel's files of a process are files, but its links lead outside the root, although they
// claim to have no path.
func TestProc(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Logf("no /proc here: %v", err)
		return
	}
	around := t.TempDir()
	tooltest.Must(t, os.WriteFile(filepath.Join(around, "f.txt"), []byte(secret), 0o644))
	way := "root" + filepath.Join(around, "f.txt")
	if got, err := read("/proc/self", "", way); got != secret {
		t.Fatalf("the control gets %q, %v", got, err)
	}
	set, err := file.New("/proc/self", nil)
	tooltest.Must(t, err)
	defer set.Close()
	for _, path := range []string{way, "cwd/file.go", "exe", "task/../root" + around} {
		for _, tool := range []*pawl.Tool{set.Read, set.List, set.Stat, set.Search, set.Edit, set.Write} {
			if told := prompt(t, tool, everyArgs(path)); !strings.Contains(told, "leads outside the root") {
				t.Errorf("%s %s: %s", tool.Name, path, told)
			}
		}
	}
	// a file that reports a size of 0 bytes
	if told := prompt(t, set.Read, `{"path":"status"}`); !strings.Contains(told, "VmHWM:") {
		t.Errorf("status: %s", told)
	}
	if told := prompt(t, set.Search, `{"path":"status","pattern":"^VmHWM"}`); !strings.Contains(told, "[1 line matches") {
		t.Errorf("status: %s", told)
	}
	if told := prompt(t, set.Edit, `{"path":"status","edits":[{"old":"VmHWM","new":"x"}]}`); strings.Contains(told, "Edited") {
		t.Errorf("status: %s", told)
	}
}

// Paths up to the deepest that the system allows work. Deeper paths are refused, and a search
// descends as deep as it may.
func TestDeep(t *testing.T) {
	dir, set := root(t, nil)
	tooltest.Must(t, os.Symlink(".", filepath.Join(dir, "self")))
	name := strings.Repeat("d/", 150)
	tooltest.Must(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
	tooltest.Must(t, os.WriteFile(filepath.Join(dir, name, "f"), []byte("deep"), 0o644))
	tooltest.Must(t, os.WriteFile(filepath.Join(dir, strings.Repeat("d/", 98), "f"), []byte("deep"), 0o644))
	if got, err := read(dir, "", name+"f"); got != "deep" {
		t.Fatalf("the control gets %q, %v", got, err)
	}
	for _, tool := range inOrder(set) {
		for _, path := range []string{name + "f", strings.Repeat("d/", 5000), strings.Repeat("self/", 120) + "f"} {
			if told := prompt(t, tool, everyArgs(path)); !strings.Contains(told, "parts; at most 100 can be used") || len(told) > 1000 {
				t.Errorf("%s: %.300s", tool.Name, told)
			}
		}
		if told := prompt(t, tool, everyArgs(strings.Repeat("self/", 60)+"f")); !strings.Contains(told, "cycle") &&
			!strings.Contains(told, "no such") && !strings.Contains(told, "levels") && tool != set.Write {
			t.Errorf("%s: %.300s", tool.Name, told)
		}
	}
	if told := prompt(t, set.Search, `{"pattern":"deep"}`); !strings.Contains(told, "[1 line matches in 1 file") {
		t.Errorf("%.300s", told)
	}
}

// Bytes that are not UTF-8 are reported, survive an edit of other lines, and are not overwritten by
// their replacement characters.
func TestInvalidUTF8(t *testing.T) {
	const before = "na\xefve caf\xe9\nplain\n"
	dir, set := root(t, map[string]string{"f": before, "sound": "a \uFFFD that is meant\n"})
	shown := tooltest.Call(t, set.Read, `{"path":"f"}`)
	if !strings.HasSuffix(shown, "[some bytes are not UTF-8 and stand here as \uFFFD]") {
		t.Errorf("read: %q", shown)
	}
	text, _, _ := strings.Cut(shown, "[")
	// The control: writing back the text that was read loses the bytes.
	if text == before || strings.ReplaceAll(text, "\uFFFD", "") == before {
		t.Fatalf("%q came through", before)
	}
	if got := tooltest.Call(t, set.Write, `{"path":"f","content":`+quote(text)+`}`); !strings.HasPrefix(got, `error: not written: "f" has bytes that are not UTF-8`) {
		t.Errorf("write: %s", got)
	}
	if got := tooltest.Call(t, set.Search, `{"path":"f","pattern":"caf"}`); !strings.Contains(got, "1: na\uFFFDve caf\uFFFD\n") || !strings.Contains(got, "not UTF-8") {
		t.Errorf("search: %s", got)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "f")); string(b) != before {
		t.Errorf("the file has %q", b)
	}
	if got := tooltest.Call(t, set.Edit, `{"path":"f","edits":[{"old":"plain","new":"simple"}]}`); strings.HasPrefix(got, "error") {
		t.Error(got)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "f")); string(b) != "na\xefve caf\xe9\nsimple\n" {
		t.Errorf("the file has %q", b)
	}
	for args, want := range map[string]string{
		`{"path":"f","content":"naïve café\n"}`:           "Written 13 bytes to f",
		`{"path":"sound","content":"another \ufffd one"}`: "Written 15 bytes to sound",
		`{"path":"new","content":"\ufffd"}`:               "Written 3 bytes to new",
	} {
		if got := tooltest.Call(t, set.Write, args); got != want {
			t.Errorf("%s: %s", args, got)
		}
	}
	// Names are bytes as well.
	if os.WriteFile(filepath.Join(dir, "caf\xe9"), []byte("x"), 0o644) == nil {
		if got := tooltest.Call(t, set.List, `{}`); !strings.Contains(got, `file	"caf\xe9"`) {
			t.Errorf("list: %s", got)
		}
	}
}
