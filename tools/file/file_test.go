package file_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/tooltest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/file"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// root creates a directory with files, given as path and content. A path that ends in a slash is a
// directory.
func root(t testing.TB, files map[string]string) (string, *file.Set) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		full := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			tooltest.Must(t, os.MkdirAll(full, 0o755))
			continue
		}
		tooltest.Must(t, os.MkdirAll(filepath.Dir(full), 0o755))
		tooltest.Must(t, os.WriteFile(full, []byte(content), 0o644))
	}
	return dir, open(t, dir)
}

func open(t testing.TB, dir string) *file.Set {
	t.Helper()
	set, err := file.New(dir, nil)
	tooltest.Must(t, err)
	t.Cleanup(func() { set.Close() })
	return set
}

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func TestRead(t *testing.T) {
	dir, set := root(t, map[string]string{
		"a.txt":            "one\ntwo\nthree\n",
		"a..b.txt":         "dots are no escape",
		"data/sales.csv":   "region,amount\nnorth,1\n",
		"data/costs.csv":   "x\n",
		"empty.txt":        "",
		"logo.png":         "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
		"old.txt":          "na\xefve caf\xe9\n",
		"thing.bin":        "abc\x01\x02\xff\xfe",
		"late.txt":         strings.Repeat("text\n", 4000) + "\x00\n",
		"MZ.txt":           "MZ is how this text begins\n",
		"crlf.txt":         "a\r\nb\r\n",
		"many/0.txt":       "",
		"unterminated.txt": "one\ntwo",
	})
	tooltest.Must(t, os.Symlink("data/sales.csv", filepath.Join(dir, "link.csv")))
	tooltest.Must(t, os.Symlink("nowhere", filepath.Join(dir, "dangling")))
	tooltest.Must(t, os.Symlink("loop2", filepath.Join(dir, "loop1")))
	tooltest.Must(t, os.Symlink("loop1", filepath.Join(dir, "loop2")))
	for i := range 20 {
		tooltest.Must(t, os.WriteFile(filepath.Join(dir, "many", fmt.Sprint(i, ".txt")), nil, 0o644))
	}
	for _, tt := range []struct{ args, want string }{
		{`{"path":"a.txt"}`, "one\ntwo\nthree\n"},
		{`{"path":"./data/../a.txt"}`, "one\ntwo\nthree\n"},
		{`{"path":"a..b.txt"}`, "dots are no escape"},
		{`{"path":"link.csv"}`, "region,amount\nnorth,1\n"},
		{`{"path":"crlf.txt"}`, "a\r\nb\r\n"},
		{`{"path":"MZ.txt"}`, "MZ is how this text begins\n"},
		{`{"path":"empty.txt"}`, "[empty.txt is empty]"},
		{`{"path":"a.txt","offset":0,"limit":0}`, "one\ntwo\nthree\n"},
		{`{"path":"a.txt","limit":2}`, "one\ntwo\n[lines 1-2, bytes 1-8 of 14; read on with {\"path\":\"a.txt\",\"offset\":3,\"limit\":2}]"},
		{`{"path":"a.txt","offset":2,"limit":1}`, "two\n[lines 2-2, bytes 5-8 of 14; read on with {\"path\":\"a.txt\",\"offset\":3,\"limit\":1}]"},
		{`{"path":"a.txt","offset":3}`, "three\n[lines 3-3, bytes 9-14 of 14; this is the end of the file]"},
		{`{"path":"unterminated.txt","offset":2}`, "two\n[lines 2-2, bytes 5-7 of 7; this is the end of the file]"},
		{`{"path":"a.txt","offset":1,"column":3}`, "e\ntwo\nthree\n[lines 1-3, bytes 3-14 of 14; this is the end of the file]"},
		{`{"path":"old.txt"}`, "na\uFFFDve caf\uFFFD\n[some bytes are not UTF-8 and stand here as \uFFFD]"},

		{`{"path":"a.txt","offset":4}`, `error: offset 4 is past the end: "a.txt" has 3 lines`},
		{`{"path":"unterminated.txt","offset":9}`, `error: offset 9 is past the end: "unterminated.txt" has 2 lines`},
		{`{"path":"a.txt","offset":1,"column":5}`, `error: column 5 is past the end: line 1 of "a.txt" has 4 bytes`},
		{`{"path":"a.txt","offset":3,"column":500}`, `error: column 500 is past the end: line 3 of "a.txt" has 6 bytes`},
		{`{"path":"logo.png"}`, `error: "logo.png" is not text: it is a PNG image, 16 bytes`},
		{`{"path":"thing.bin"}`, `error: "thing.bin" is not text: it is binary data, 7 bytes`},
		{`{"path":"late.txt","offset":4000}`, `error: "late.txt" is not text: lines 4000-4001 have NUL bytes; 20002 bytes in all`},
		{`{"path":""}`, `error: the root is a directory; file_list lists it`},
		{`{"path":"data"}`, `error: "data" is a directory; file_list lists it`},
		{`{"path":"dangling"}`, `error: "dangling" is a symbolic link to something that is not there`},
		{`{"path":"loop1"}`, `error: "loop1" is part of a cycle of symbolic links`},
		{`{"path":"b.txt"}`, `error: no such file: "b.txt"; the nearest there is: "a.txt"`},
		{`{"path":"data/sale.csv"}`, `error: no such file: "data/sale.csv"; the nearest there is: "data/sales.csv"`},
		{`{"path":"dta/sales.csv"}`, `error: no such directory: "dta"; the nearest there is: "data/sales.csv"`},
		{`{"path":"dta/x"}`, `error: no such directory: "dta"; the nearest there is: "data"`},
		{`{"path":"data/sales"}`, `error: no such file: "data/sales"; the nearest there is: "data/sales.csv"`},
		{`{"path":"data/turnover.json"}`, `error: no such file: "data/turnover.json"; "data" has: costs.csv, sales.csv`},
		{`{"path":"many/else.json"}`, `error: no such file: "many/else.json"; "many" has 20 entries, which file_list lists`},
		{`{"path":"a.txt/x"}`, `error: no such file: "a.txt/x", because "a.txt" is a file, not a directory`},
		{`{"path":"a\u0000b"}`, `error: the path "a\x00b" has a NUL character in it`},
		{`{"path":"` + strings.Repeat("n", 300) + `"}`, `error: the name is too long: 300 bytes, with parts of up to 300; file systems take about 255 a part`},
		{`{"path":"` + strings.Repeat("n/", 101) + `"}`, `error: the path has 101 parts; at most 100 can be used`},
		{`{"path":7}`, `error: invalid args: json: cannot unmarshal number into Go struct field readArgs.path of type string`},
	} {
		if diff := cmp.Diff(tt.want, tooltest.Call(t, set.Read, tt.args)); diff != "" {
			t.Errorf("file_read %s (-want +got):\n%s", tt.args, diff)
		}
	}
}

// A file that a system with decomposed accents has made is named with escapes, since both names
// look alike.
func TestNamesWithAccents(t *testing.T) {
	root := t.TempDir()
	tooltest.Must(t, os.WriteFile(filepath.Join(root, "cafe\u0301.txt"), []byte("x\n"), 0o644))
	set, err := file.New(root, nil)
	tooltest.Must(t, err)
	want := `error: no such file: "caf` + "\u00e9" + `.txt"; the name there has other code points for the same characters: "cafe\u0301.txt"`
	if got := tooltest.Call(t, set.Read, `{"path":"caf\u00e9.txt"}`); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := tooltest.Call(t, set.Read, `{"path":"cafe\u0301.txt"}`); !strings.HasPrefix(got, "x") {
		t.Errorf("by its name: %s", got)
	}
}

// Every tool refuses paths that lead outside with its own message, before it touches anything.
func TestOutside(t *testing.T) {
	dir, set := root(t, map[string]string{"in/x.txt": "x"})
	outside := filepath.Join(filepath.Dir(dir), "outside.txt")
	tooltest.Must(t, os.WriteFile(outside, []byte("secret"), 0o644))
	tooltest.Must(t, os.Symlink(outside, filepath.Join(dir, "abs")))
	tooltest.Must(t, os.Symlink("../outside.txt", filepath.Join(dir, "rel")))
	tooltest.Must(t, os.Symlink("../..", filepath.Join(dir, "in", "up")))
	tools, err := set.Tools(t.Context())
	tooltest.Must(t, err)
	for _, tool := range tools {
		for _, tt := range []struct{ path, want string }{
			{"/etc/passwd", `absolute paths not allowed: "/etc/passwd"; give a path relative to the root, such as "passwd", or "." for the root itself`},
			{"/", `absolute paths not allowed: "/"; give a path relative to the root, such as "notes.txt", or "." for the root itself`},
			{"~/notes.txt", `there is no home directory here: "~/notes.txt"; give a path relative to the root`},
			{"..", `path traversal not allowed: ".." leads out of the root by ".."; give a path below the root`},
			{"../outside.txt", `path traversal not allowed: "../outside.txt" leads out of the root by ".."; give a path below the root`},
			{"in/../../outside.txt", `path traversal not allowed: "in/../../outside.txt" leads out of the root by ".."; give a path below the root`},
			{"abs", `"abs" leads outside the root through a symbolic link; only files below the root can be used`},
			{"rel", `"rel" leads outside the root through a symbolic link; only files below the root can be used`},
			{"in/up/outside.txt", `"in/up/outside.txt" leads outside the root through a symbolic link; only files below the root can be used`},
		} {
			if tool == set.Delete && (tt.path == "abs" || tt.path == "rel") {
				continue // the link itself may be deleted
			}
			args := everyArgs(tt.path)
			if diff := cmp.Diff("error: "+tt.want, tooltest.Call(t, tool, args)); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", tool.Name, args, diff)
			}
		}
	}
	for _, link := range []string{"abs", "rel"} {
		if got, want := tooltest.Call(t, set.Delete, `{"path":`+quote(link)+`}`), "Deleted "+link; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "secret" {
		t.Errorf("the file outside: %q, %v", b, err)
	}
}

// Reading all pages of a file returns its bytes, for lines of any length. No page exceeds its
// limits or splits a rune.
func TestPages(t *testing.T) {
	// 10 bytes per repetition: a line of 400 kB, whose pages would end within a rune
	long := strings.Repeat("é€😀x", 40_000)
	for name, content := range map[string]string{
		"lines":          strings.Repeat("a line of text\n", 9000),
		"no last return": strings.Repeat("x\n", 2000) + "x",
		"2000 exactly":   strings.Repeat("x\n", 2000),
		"64 KiB exactly": strings.Repeat("x", 64<<10),
		"and a return":   strings.Repeat("x", 64<<10) + "\n",
		"one long line":  long,
		"long and short": "a\n" + long + "\nb\n\n\n" + long + long,
		"empty lines":    strings.Repeat("\n", 5000),
		"runes":          strings.Repeat("é\n", 70_000),
	} {
		for _, limit := range []int{0, 1500} {
			_, set := root(t, map[string]string{"f": content})
			var got strings.Builder
			next := json.RawMessage(fmt.Sprintf(`{"path":"f","limit":%d}`, limit))
			pages := 0
			for next != nil {
				if pages++; pages > 100 {
					t.Fatalf("%s: more than 100 pages", name)
				}
				res := tooltest.Run(t, set.Read, string(next))
				if res.IsError {
					t.Fatalf("%s: %s: %s", name, next, res.Text())
				}
				text := res.Parts[0].(llm.Text).Text
				if len(text) > 64<<10 || strings.Count(text, "\n") > 2000 || limit > 0 && strings.Count(text, "\n") > limit {
					t.Errorf("%s: a page of %d bytes and %d lines", name, len(text), strings.Count(text, "\n"))
				}
				if strings.ContainsRune(text, '\uFFFD') {
					t.Errorf("%s: a rune was split in the page of %s", name, next)
				}
				got.WriteString(text)
				var data struct{ Next json.RawMessage }
				tooltest.Must(t, json.Unmarshal(res.Data, &data))
				if next = data.Next; next != nil && !strings.HasSuffix(res.Text(), "; read on with "+string(next)+"]") {
					t.Errorf("%s: the text does not say how to read on with %s: %.100s", name, next, res.Text()[len(text):])
				}
			}
			if got.String() != content {
				t.Errorf("%s, limit %d: the pages are %d bytes together, the file is %d, or they differ", name, limit, got.Len(), len(content))
			}
		}
	}
}

// A column within a rune means the beginning of the rune.
func TestColumnWithinRune(t *testing.T) {
	_, set := root(t, map[string]string{"f": "aé€😀z", "g": strings.Repeat("x", 64<<10-1) + "😀z"})
	for _, tt := range []struct{ args, want string }{
		{`{"path":"f","column":3}`, "é€😀z"},
		{`{"path":"f","column":4}`, "€😀z"},
		{`{"path":"f","column":6}`, "€😀z"},
		{`{"path":"f","column":10}`, "😀z"},
		{`{"path":"f","column":11}`, "z"},
		{`{"path":"g","column":65538}`, "😀z"}, // a rune across the end of the reader's buffer
	} {
		if got := tooltest.Run(t, set.Read, tt.args).Parts[0].(llm.Text).Text; got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.args, got, tt.want)
		}
	}
}

func TestList(t *testing.T) {
	dir, set := root(t, map[string]string{"b.txt": "", "a/x": "", "c d.txt": "", "empty/": "", "line\nbreak": ""})
	tooltest.Must(t, os.Symlink("b.txt", filepath.Join(dir, "to-file")))
	tooltest.Must(t, os.Symlink("a", filepath.Join(dir, "to-dir")))
	tooltest.Must(t, os.Symlink("/etc/hostname", filepath.Join(dir, "to-outside")))
	tooltest.Must(t, os.Symlink("gone", filepath.Join(dir, "to-nothing")))
	all := "dir\ta\nfile\tb.txt\nfile\tc d.txt\ndir\tempty\nfile\t\"line\\nbreak\"\ndir\tto-dir\tlink\nfile\tto-file\tlink\n" +
		"link\tto-nothing\tbroken, or leads outside the root\nlink\tto-outside\tbroken, or leads outside the root"
	for _, tt := range []struct{ args, want string }{
		{`{}`, all},
		{`{"path":""}`, all},
		{`{"path":"."}`, all},
		{`{"path":"a"}`, "file\tx"},
		{`{"path":"to-dir/"}`, "file\tx"},
		{`{"path":"empty"}`, `["empty" is empty]`},
		{`{"path":".","after":"to-file"}`, "link\tto-nothing\tbroken, or leads outside the root\nlink\tto-outside\tbroken, or leads outside the root"},
		{`{"path":"a","after":"zz"}`, `[none of the 1 entries sorts after "zz"]`},
		{`{"path":"b.txt"}`, `error: "b.txt" is not a directory but a file; file_read reads it`},
		{`{"path":"emty"}`, `error: no such file: "emty"; the nearest there is: "empty"`},
	} {
		if diff := cmp.Diff(tt.want, tooltest.Call(t, set.List, tt.args)); diff != "" {
			t.Errorf("file_list %s (-want +got):\n%s", tt.args, diff)
		}
	}
	got := string(tooltest.Run(t, set.List, `{"path":"a"}`).Data)
	if want := `{"path":"a","total":1,"entries":[{"type":"file","name":"x"}]}`; got != want {
		t.Errorf("data: got %s, want %s", got, want)
	}
}

// A long directory is listed in parts that together are complete.
func TestListParts(t *testing.T) {
	dir, set := root(t, nil)
	var want []string
	for i := range 2345 {
		name := fmt.Sprintf("%05d-%s", i, strings.Repeat("n", i%60))
		want = append(want, name)
		tooltest.Must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	var got []string
	parts := 0
	for next := `{}`; next != ""; parts++ {
		res := tooltest.Run(t, set.List, next)
		if n := len(res.Text()); n > 32<<10 {
			t.Errorf("a part has %d bytes", n)
		}
		var data struct {
			Total   int
			Entries []struct{ Name string }
			Next    json.RawMessage
		}
		tooltest.Must(t, json.Unmarshal(res.Data, &data))
		for _, e := range data.Entries {
			got = append(got, e.Name)
		}
		if data.Total != len(want) || len(data.Entries) > 1000 {
			t.Errorf("a part has %d entries of %d; want at most 1000 of %d", len(data.Entries), data.Total, len(want))
		}
		next = string(data.Next)
		if marker := fmt.Sprintf("[%d of 2345 entries; list on with %s]", len(data.Entries), next); next != "" && !strings.HasSuffix(res.Text(), marker) {
			t.Errorf("no marker %s", marker)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || parts < 3 {
		t.Errorf("%d parts (-want +got):\n%s", parts, diff)
	}
}

func TestStat(t *testing.T) {
	dir, set := root(t, map[string]string{"d/a.txt": "abc", "big": strings.Repeat("x", 8<<20+1)})
	when := time.Date(2024, 3, 1, 12, 30, 15, 999, time.FixedZone("", 3600))
	tooltest.Must(t, os.Symlink("d/a.txt", filepath.Join(dir, "link")))
	for _, name := range []string{"d/a.txt", "big", "d"} {
		tooltest.Must(t, os.Chtimes(filepath.Join(dir, name), when, when))
	}
	for _, tt := range []struct{ path, want string }{
		{"d/a.txt", `{"name":"a.txt","size":3,"type":"file","modified":"2024-03-01T11:30:15Z","sha256":"` + sum("abc") + `"}`},
		{"link", `{"name":"link","size":3,"type":"file","modified":"2024-03-01T11:30:15Z","sha256":"` + sum("abc") + `","link":true}`},
		{"big", `{"name":"big","size":8388609,"type":"file","modified":"2024-03-01T11:30:15Z"}`},
		{"a.txt", `error: no such file: "a.txt"; the root has: big, d, link`},
	} {
		res := tooltest.Run(t, set.Stat, `{"path":`+quote(tt.path)+`}`)
		if got := strings.TrimPrefix(tt.want, "error: "); res.Text() != got || !res.IsError && string(res.Data) != res.Text() {
			t.Errorf("file_stat %q: got %s, data %s, want %s", tt.path, res.Text(), res.Data, tt.want)
		}
	}
	var got map[string]any
	tooltest.Must(t, json.Unmarshal(tooltest.Run(t, set.Stat, `{"path":"d"}`).Data, &got))
	if got["type"] != "directory" || got["sha256"] != nil || got["modified"] != "2024-03-01T11:30:15Z" {
		t.Errorf("a directory: %v", got)
	}
}

func TestCancelled(t *testing.T) {
	_, set := root(t, map[string]string{"f": "x"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tools, err := set.Tools(ctx)
	tooltest.Must(t, err)
	for _, tool := range tools {
		res, err := tool.Run(ctx, llm.ToolCall{Args: json.RawMessage(everyArgs("f"))})
		if tool == set.List {
			res, err = tool.Run(ctx, llm.ToolCall{Args: json.RawMessage(`{}`)})
		}
		if err != context.Canceled {
			t.Errorf("%s: %v, %v; want %v", tool.Name, res.Text(), err, context.Canceled)
		}
	}
	if got := tooltest.Call(t, set.List, `{}`); got != "file\tf" {
		t.Errorf("after cancelled calls: %s", got)
	}
}

func TestReadOnlyAndClosed(t *testing.T) {
	dir := t.TempDir()
	set, err := file.New(dir, &file.Options{ReadOnly: true})
	tooltest.Must(t, err)
	tools, err := set.Tools(t.Context())
	tooltest.Must(t, err)
	for _, tool := range tools {
		if tool.Effect != pawl.EffectRead {
			t.Errorf("a read-only set offers %s, effect %s", tool.Name, tool.Effect)
		}
	}
	tooltest.Must(t, set.Close())
	if got := tooltest.Call(t, set.List, `{}`); got != "error: the file tools are closed" {
		t.Errorf("after Close: %s", got)
	}
	if _, err := file.New(filepath.Join(dir, "none"), nil); !os.IsNotExist(err) && err == nil {
		t.Errorf("a directory that is not there: %v", err)
	}
}

// The golden file shows the definitions that the model gets, for review as prose.
func TestDefinitions(t *testing.T) {
	_, set := root(t, nil)
	tooltest.Definitions(t, set, filepath.Join("testdata", "definitions.json"), *update)
}

// The whole pipeline: arguments that the schemas reject, and calls as a model makes them.
func TestRegistry(t *testing.T) {
	_, set := root(t, map[string]string{"a.txt": "hello\n", "big.txt": strings.Repeat("0123456789\n", 5900)})
	var reg pawl.Registry
	tools, err := set.Tools(t.Context())
	tooltest.Must(t, err)
	tooltest.Must(t, reg.Add(tools...))
	for _, tt := range []struct {
		name, args string
		outcome    pawl.Outcome
		text       string // its beginning
	}{
		{"file_read", `{"path":"a.txt"}`, pawl.OutcomeOK, "hello\n"},
		{"file_write", `{"path":"b/c.txt","content":"x","expect":""}`, pawl.OutcomeOK, "Written 1 bytes to b/c.txt"},
		{"file_list", `{}`, pawl.OutcomeOK, "file\ta.txt\ndir\tb\nfile\tbig.txt"},
		{"file_stat", `{"path":"b"}`, pawl.OutcomeOK, `{"name":"b",`},
		{"file_edit", `{"path":"b/c.txt","edits":[{"old":"x","new":"y"}]}`, pawl.OutcomeOK, "Edited b/c.txt: 1 place, 1 bytes now\n@@ line 1 @@\n-x\n+y"},
		{"file_search", `{"pattern":"hel+o"}`, pawl.OutcomeOK, "a.txt\n1: hello\n[1 line matches in 3 files]"},
		{"file_delete", `{"path":"b/c.txt"}`, pawl.OutcomeOK, "Deleted b/c.txt"},
		{"file_read", `{"path":"a.txt","offset":1.0,"limit":1e30}`, pawl.OutcomeOK, "hello\n"},
		{"file_read", `{"path":"a.txt","offset":1.5}`, pawl.OutcomeInvalid, ""},
		{"file_read", `{"path":"c.txt"}`, pawl.OutcomeError, `no such file: "c.txt"; the nearest there is: "a.txt"`},
		{"file_read", `{"file":"a.txt"}`, pawl.OutcomeInvalid, ""},
		{"file_read", `{"path":"a.txt","offset":"x"}`, pawl.OutcomeInvalid, ""},
		{"file_write", `{"path":"a.txt","content":"x","expect":"abc"}`, pawl.OutcomeInvalid, ""},
		{"file_list", `{"dir":"x"}`, pawl.OutcomeInvalid, ""},
		{"file_edit", `{"path":"a.txt","edits":[]}`, pawl.OutcomeInvalid, ""},
		{"file_edit", `{"path":"a.txt","edits":[{"old":"","new":"x"}]}`, pawl.OutcomeInvalid, ""},
		{"file_edit", `{"path":"a.txt","old":"a","new":"x"}`, pawl.OutcomeInvalid, ""},
		{"file_search", `{"pattern":"x","limit":-1}`, pawl.OutcomeInvalid, ""},
		{"file_search", `{"query":"x"}`, pawl.OutcomeInvalid, ""},
	} {
		e := reg.Execute(t.Context(), tt.name, json.RawMessage(tt.args))
		if e.Outcome != tt.outcome || !strings.HasPrefix(e.Result.Text(), tt.text) {
			t.Errorf("%s %s: %s %q; want %s %q", tt.name, tt.args, e.Outcome, e.Result.Text(), tt.outcome, tt.text)
		}
	}
	e := reg.Execute(t.Context(), "file_read", json.RawMessage(`{"path":"big.txt"}`))
	if got := e.Result.Text(); !strings.HasPrefix(got, strings.Repeat("0123456789\n", 2000)+"[lines 1-2000,") {
		t.Errorf("a page of %d bytes did not come whole through the pipeline", len(got))
	}
	e = reg.Execute(t.Context(), "file_read", json.RawMessage(`{"path":"big.txt","offset":3901}`))
	if got := e.Result.Text(); !strings.HasPrefix(got, strings.Repeat("0123456789\n", 2000)+"[lines 3901-5900,") {
		t.Errorf("the last page is %d bytes", len(got))
	}
}
