package file_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/internal/test/tooltest"
	"github.com/pawl-go/pawl/tools/file"
)

// childDir is set in the environment of the child process that does the work of TestLargeFiles.
const childDir = "PAWL_TEST_LARGE_FILES"

const gib = 1 << 30

func TestMain(m *testing.M) { tooltest.Children(m, childDir, useLargeFiles) }

// useLargeFiles uses each tool on the files that TestLargeFiles made, and prints the memory that
// the process used.
func useLargeFiles(dir string) error {
	if strings.HasSuffix(dir, "control") {
		b, err := os.ReadFile(filepath.Join(dir, "text"))
		fmt.Printf("read %d bytes whole\n", len(b))
		return err
	}
	set, err := file.New(dir, nil)
	if err != nil {
		return err
	}
	defer set.Close()
	var reg pawl.Registry
	for _, tool := range inOrder(set) {
		tool = tool.Clone()
		tool.Timeout = 10 * time.Minute // the duration depends on the machine and is not tested
		if err := reg.Add(tool); err != nil {
			return err
		}
	}
	for _, c := range []struct{ name, args, want string }{
		{"file_list", `{}`, "file\tsparse"},
		{"file_list", `{"path":"many"}`, " of 30000 entries; list on with"},
		{"file_stat", `{"path":"sparse"}`, `"size":2147483648`},
		{"file_read", `{"path":"sparse"}`, "head 1\nhead 2\n"},
		{"file_read", `{"path":"sparse","offset":4}`, "the end"},
		{"file_read", `{"path":"text","offset":1000}`, "line 1000 "},
		{"file_read", `{"path":"text","offset":LAST}`, "this is the end of the file"},
		{"file_read", `{"path":"one line","column":100000000}`, `; read on with {"path":"one line","offset":1,"column":100065536}`},
		{"file_search", `{"path":"text","pattern":"^the (last) line$"}`, "LAST: the last line\n[1 line matches"},
		{"file_search", `{"path":"text","pattern":"the last line","literal":true}`, "LAST: the last line\n[1 line matches"},
		{"file_search", `{"path":"text","pattern":"line","limit":1000}`, "there are more, continue with"},
		{"file_search", `{"path":"one line","pattern":"the end","literal":true}`, "…xxx"},
		{"file_search", `{"path":"many","include":["29999"]}`, "many/29999"},
		{"file_search", `{"pattern":"line to search","exclude":["many","one line"]}`, "1 binary file was passed over (sparse)"},
		{"file_edit", `{"path":"sparse","edits":[{"old":"head","new":"x"}]}`, "is too large to be edited"},
		{"file_edit", `{"path":"edited","edits":[{"old":"12345","new":"54321","all":true}]}`, "Edited edited: 838860 places"},
		{"file_write", `{"path":"sparse","content":"\ufffd"}`, "Written 3 bytes"},
		{"file_delete", `{"path":"text"}`, "Deleted text"},
	} {
		args := strings.ReplaceAll(c.args, "LAST", os.Getenv("LAST"))
		began := time.Now()
		x := reg.Execute(context.Background(), c.name, json.RawMessage(args))
		text := x.Result.Text()
		fmt.Printf("%-11s %-75s %7.1f ms %6d bytes\n", c.name, args, float64(time.Since(began).Microseconds())/1000, len(text))
		if want := strings.ReplaceAll(c.want, "LAST", os.Getenv("LAST")); !strings.Contains(text, want) {
			return fmt.Errorf("%s %s: %.500s; want %q in it", c.name, args, text, want)
		}
	}
	return nil
}

// Files of 2 GiB are listed, looked at, read at their ends, searched, edited (which is refused),
// written over and deleted by a process that never takes more than 64 MiB; the control, which reads
// a file whole, takes more. The file of text has 136 MiB, in make soak 256; PAWL_SCALE=2048 makes
// it 2 GiB. The file of one line has 104 MiB, in make soak 200.
func TestLargeFiles(t *testing.T) {
	soak.Sequential(t)
	if runtime.GOOS != "linux" {
		t.Log("left out: the peak of a process is read from /proc")
		return
	}
	size := soak.N(136, 256) << 20
	if n, err := strconv.Atoi(os.Getenv("PAWL_SCALE")); err == nil {
		size = n << 20
	}
	dir := t.TempDir()
	control := filepath.Join(dir, "control")
	work := filepath.Join(dir, "work")
	tooltest.Must(t, os.MkdirAll(filepath.Join(work, "many"), 0o755))
	tooltest.Must(t, os.MkdirAll(control, 0o755))
	sparse, err := os.Create(filepath.Join(work, "sparse"))
	tooltest.Must(t, err)
	_, err = sparse.WriteString(strings.Repeat("head 1\nhead 2\n", 1) + strings.Repeat("x", 9000))
	tooltest.Must(t, err)
	_, err = sparse.WriteAt([]byte("\nthe end\n"), 2*gib-9)
	tooltest.Must(t, err)
	tooltest.Must(t, sparse.Close())
	last := writeText(t, filepath.Join(work, "text"), size)
	line := append(bytes.Repeat([]byte("x"), soak.N(104, 200)<<20), "the end"...)
	tooltest.Must(t, os.WriteFile(filepath.Join(work, "one line"), line, 0o644))
	tooltest.Must(t, os.WriteFile(filepath.Join(work, "edited"), bytes.Repeat([]byte("012345678\n"), 838_860), 0o644))
	for i := range 30_000 {
		tooltest.Must(t, os.Symlink("x", filepath.Join(work, "many", strconv.Itoa(i))))
	}
	for _, name := range []string{"99", "29999"} {
		tooltest.Must(t, os.Remove(filepath.Join(work, "many", name)))
		tooltest.Must(t, os.WriteFile(filepath.Join(work, "many", name), nil, 0o644))
	}
	tooltest.Must(t, os.Link(filepath.Join(work, "text"), filepath.Join(control, "text")))

	env := fmt.Sprintf("LAST=%d", last)
	if _, peak := tooltest.Child(t, childDir, control, env); peak < 128<<10 {
		t.Errorf("the control took %d kB: the measure is none", peak)
	}
	if _, peak := tooltest.Child(t, childDir, work, env); peak == 0 || peak > 64<<10 {
		t.Errorf("the tools took %d kB; 65536 are allowed", peak)
	}
}

// writeText writes a file of numbered lines and returns the number of lines.
func writeText(t *testing.T, path string, size int) (lines int) {
	t.Helper()
	f, err := os.Create(path)
	tooltest.Must(t, err)
	var b bytes.Buffer
	for written := 0; written < size; b.Reset() {
		for b.Len() < 1<<20 {
			lines++
			fmt.Fprintf(&b, "line %d is a line to search in, as there are many\n", lines)
		}
		written += b.Len()
		_, err := f.Write(b.Bytes())
		tooltest.Must(t, err)
	}
	_, err = io.WriteString(f, "the last line\n")
	tooltest.Must(t, err)
	tooltest.Must(t, f.Close())
	return lines + 1
}
