package file_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/internal/test/tooltest"
)

func TestEdit(t *testing.T) {
	code := "package a\n\nfunc one() int {\n\treturn 1\n}\n\nfunc two() int {\n\treturn 2\n}\n"
	for _, tt := range []struct{ name, before, edits, want, after string }{
		{"one line", "a\nb\nc\n", `[{"old":"b","new":"B"}]`, "Edited f: 1 place, 6 bytes now\n@@ line 2 @@\n-b\n+B", "a\nB\nc\n"},
		{"part of a line", "say hello now\n", `[{"old":"hello","new":"goodbye"}]`, "Edited f: 1 place, 16 bytes now\n@@ line 1 @@\n-say hello now\n+say goodbye now", "say goodbye now\n"},
		{"insertion", "a\nc\n", `[{"old":"a\n","new":"a\nb\n"}]`, "Edited f: 1 place, 6 bytes now\n@@ line 1 @@\n-a\n+a\n+b", "a\nb\nc\n"},
		{"deletion", "a\nb\nc\n", `[{"old":"b\n","new":""}]`, "Edited f: 1 place, 4 bytes now\n@@ line 2 @@\n-b", "a\nc\n"},
		{"a line's end", "a\nb\n", `[{"old":"a\n","new":"a"}]`, "Edited f: 1 place, 3 bytes now\n@@ line 1 @@\n-a\n-b\n+ab", "ab\n"},
		{"no last return", "a\nb", `[{"old":"b","new":"c"}]`, "Edited f: 1 place, 3 bytes now\n@@ line 2 @@\n-b\n+c", "a\nc"},
		{"several lines", code, `[{"old":"two() int {\n\treturn 2","new":"three() int {\n\treturn 3"}]`,
			"Edited f: 1 place, 72 bytes now\n@@ line 7 @@\n-func two() int {\n-\treturn 2\n+func three() int {\n+\treturn 3", strings.NewReplacer("two", "three", "2", "3").Replace(code)},
		{"all", "x y\nx\n", `[{"old":"x","new":"zz","all":true}]`, "Edited f: 2 places, 8 bytes now\n@@ line 1 @@\n-x y\n+zz y\n@@ line 2 @@\n-x\n+zz", "zz y\nzz\n"},
		{"in order", "a\n", `[{"old":"a","new":"b"},{"old":"b","new":"c\nd"},{"old":"d","new":"e"}]`,
			"Edited f: 3 places, 4 bytes now\n@@ line 1 @@\n-a\n+b\n@@ line 1 @@\n-b\n+c\n+d\n@@ line 2 @@\n-d\n+e", "c\ne\n"},
		{"what an edit makes is not edited again by itself", "aa\n", `[{"old":"a","new":"aa","all":true}]`, "Edited f: 2 places, 5 bytes now\n@@ line 1 @@\n-aa\n+aaa\n@@ line 1 @@\n-aa\n+aaa", "aaaa\n"},

		{"CRLF stays", "a\r\nb\r\nc\r\n", `[{"old":"a\nb","new":"a\nx\nb"}]`, "Edited f: 1 place, 12 bytes now\n@@ line 1 @@\n-a\n-b\n+a\n+x\n+b", "a\r\nx\r\nb\r\nc\r\n"},
		{"CRLF in a new line", "a\r\nb\r\n", `[{"old":"b","new":"b\nc"}]`, "Edited f: 1 place, 9 bytes now\n@@ line 2 @@\n-b\n+b\n+c", "a\r\nb\r\nc\r\n"},
		{"CRLF given", "a\r\nb\r\n", `[{"old":"a\r\nb","new":"c\r\nd"}]`, "Edited f: 1 place, 6 bytes now\n@@ line 1 @@\n-a\n-b\n+c\n+d", "c\r\nd\r\n"},
		{"both kinds", "a\nb\r\nc\r\nd\n", `[{"old":"b\nc","new":"b\nx\nc"},{"old":"a\n","new":"a\ny\n"}]`,
			"Edited f: 2 places, 15 bytes now\n@@ line 2 @@\n-b\n-c\n+b\n+x\n+c\n@@ line 1 @@\n-a\n+a\n+y", "a\ny\nb\r\nx\r\nc\r\nd\n"},
		{"a mark stays", "\ufeffa\nb\n", `[{"old":"a\n","new":"x\n"}]`, "Edited f: 1 place, 7 bytes now\n@@ line 1 @@\n-\ufeffa\n+\ufeffx", "\ufeffx\nb\n"},
		{"bytes that are no text stay", "caf\xe9 a\nna\xefve\n", `[{"old":" a","new":" b"}]`, "Edited f: 1 place, 13 bytes now\n@@ line 1 @@\n-caf\uFFFD a\n+caf\uFFFD b", "caf\xe9 b\nna\xefve\n"},

		{"not there", "alpha\nbeta\n", `[{"old":"gamma","new":"x"}]`, `error: edits[0]: "f" has no text like old; nothing was changed. Nothing there is like it; read the file first`, ""},
		{"nearly there", code, `[{"old":"func two() {\n\treturn 2","new":"x"}]`,
			`error: edits[0]: "f" has no text like old; nothing was changed. The nearest is in line 7: "func two() int {\n\treturn 2"`, ""},
		{"other white space", code, `[{"old":"func two() int {\n    return 2","new":"x"}]`,
			`error: edits[0]: "f" has no text like old; nothing was changed. Line 7 and the lines after it differ only in white space; there it is: "func two() int {\n\treturn 2"`, ""},
		{"not unique", "a\nb\na\n", `[{"old":"a","new":"x"}]`,
			`error: edits[0]: old stands in "f" 2 times (lines 1, 3); nothing was changed. Take in lines around it until it is the only one, or set all to change every place`, ""},
		{"all or nothing", "a\nb\n", `[{"old":"a","new":"x"},{"old":"a","new":"y"}]`,
			`error: edits[1]: "f" has no text like old; nothing was changed. Nothing there is like it, after the edits before it; read the file first`, ""},
		{"the same", "a\n", `[{"old":"a","new":"a"}]`, `error: edits[0]: old and new are the same, so nothing would change; nothing was changed`, ""},
		{"undone", "a\n", `[{"old":"a","new":"b"},{"old":"b","new":"a"}]`, `error: not edited: the edits undo each other, so "f" would not change`, ""},
		{"empty", "a\n", `[{"old":"","new":"a"}]`, `error: edits[0]: old is empty; give the text to replace`, ""},
		{"none", "a\n", `[]`, `error: edits has 0 edits; give 1 to 100`, ""},
		{"what stands for a byte", "caf\xe9\n", `[{"old":"caf\ufffd","new":"x"}]`,
			"error: edits[0]: \"f\" has no text like old; nothing was changed. It has \uFFFD, by which file_read shows bytes that are not UTF-8; use a part of the text without it", ""},
		{"binary", "\x89PNG\r\n\x1a\n\x00", `[{"old":"P","new":"x"}]`, `error: "f" is not text: it is a PNG image, 9 bytes`, ""},
		{"a zero byte, late", strings.Repeat("text\n", 4000) + "\x00", `[{"old":"P","new":"x"}]`, `error: "f" is not text: line 4001 has NUL bytes; 20001 bytes in all`, ""},
		{"too large", strings.Repeat("0123456\n", 1<<20) + "x", `[{"old":"x","new":"y"}]`,
			`error: "f" is too large to be edited: it has 8388609 bytes, and 8388608 is the most; file_search and file_read show parts of it`, ""},
		{"becoming too large", strings.Repeat("x", 4<<20), `[{"old":"x","new":"yyy","all":true}]`,
			`error: edits[0]: "f" would have 12582912 bytes, and 8388608 is the most that can be edited; nothing was changed`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, set := root(t, map[string]string{"f": tt.before})
			got := tooltest.Call(t, set.Edit, `{"path":"f","edits":`+tt.edits+`}`)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.edits, diff)
			}
			if strings.HasPrefix(tt.want, "error:") {
				tt.after = tt.before
			}
			b, err := os.ReadFile(filepath.Join(dir, "f"))
			if err != nil || string(b) != tt.after {
				t.Errorf("the file has %.200q, %v; want %.200q", b, err, tt.after)
			}
		})
	}
}

// An edit preserves the rest of the file, checks its preconditions, and returns data for programs.
func TestEditKeeps(t *testing.T) {
	dir, set := root(t, map[string]string{"run.sh": "#!/bin/sh\necho a\n", "fixed": "a\n", "old": "a\n", "dir/": ""})
	tooltest.Must(t, os.Chmod(filepath.Join(dir, "run.sh"), 0o750))
	tooltest.Must(t, os.Chmod(filepath.Join(dir, "fixed"), 0o444))
	tooltest.Must(t, os.Symlink("../run.sh", filepath.Join(dir, "dir", "link")))
	res := tooltest.Run(t, set.Edit, `{"path":"dir/link","edits":[{"old":"echo a","new":"echo b"}],"expect":"`+sum("#!/bin/sh\necho a\n")+`"}`)
	want := `{"path":"dir/link","replaced":1,"bytes":17,"sha256":"` + sum("#!/bin/sh\necho b\n") + `","changes":[{"line":2,"old":"echo a","new":"echo b"}]}`
	if string(res.Data) != want {
		t.Errorf("data %s, want %s", res.Data, want)
	}
	if info, err := os.Stat(filepath.Join(dir, "run.sh")); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if link, err := os.Readlink(filepath.Join(dir, "dir", "link")); link != "../run.sh" {
		t.Errorf("the link is %q, %v", link, err)
	}
	for args, want := range map[string]string{
		`{"path":"old","edits":[{"old":"a","new":"b"}],"expect":"` + sum("b") + `"}`: `error: not edited: "old" has changed; its SHA-256 is ` + sum("a\n") + `, expect says ` + sum("b") + `. Read it again before you edit`,
		`{"path":"fixed","edits":[{"old":"a","new":"b"}]}`:                           `error: permission denied: "fixed" is read-only`,
		`{"path":"dir","edits":[{"old":"a","new":"b"}]}`:                             `error: "dir" is a directory; file_list lists it`,
		`{"path":"olds","edits":[{"old":"a","new":"b"}]}`:                            `error: no such file: "olds"; the nearest there is: "old"`,
	} {
		if got := tooltest.Call(t, set.Edit, args); got != want {
			t.Errorf("%s: got %s, want %s", args, got, want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*", ".pawl-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// After many concurrent edits, each edit is either in the file or was refused. None is lost.
func TestEditsDoNotOverwriteEachOther(t *testing.T) {
	dir, set := root(t, map[string]string{"f": "end\n"})
	made := make(chan string)
	for i := range 8 {
		go func() {
			mine := fmt.Sprintf("line %d\n", i)
			if strings.HasPrefix(tooltest.Call(t, set.Edit, `{"path":"f","edits":[{"old":"end\n","new":`+quote(mine+"end\n")+`}]}`), "error: not written:") {
				mine = ""
			}
			made <- mine
		}()
	}
	var want []string
	for range 8 {
		if l := <-made; l != "" {
			want = append(want, l)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "f"))
	tooltest.Must(t, err)
	for _, l := range want {
		if !strings.Contains(string(b), l) {
			t.Errorf("%q was reported as written, and the file has %q", l, b)
		}
	}
	if len(want) == 0 || strings.Count(string(b), "\n") != len(want)+1 {
		t.Errorf("%d edits were made, and the file has %q", len(want), b)
	}
}

// An edit gives the same result as strings.Replace for any surrounding bytes. If the edit is
// refused, the file is unchanged.
func TestEditIsReplace(t *testing.T) {
	dir, set := root(t, nil)
	path := filepath.Join(dir, "f")
	some := rapid.StringOfN(rapid.SampledFrom([]rune("ab\né€")), 1, 4, -1)
	rapid.Check(t, func(rt *rapid.T) {
		before := rapid.StringOfN(rapid.SampledFrom([]rune("ab\né€")), 0, 40, -1).Draw(rt, "before") +
			rapid.SampledFrom([]string{"", "\xff", "a\xe9\n"}).Draw(rt, "bytes")
		old, fresh, all := some.Draw(rt, "old"), some.Draw(rt, "new"), rapid.Bool().Draw(rt, "all")
		tooltest.Must(t, os.WriteFile(path, []byte(before), 0o644))
		args, _ := json.Marshal(map[string]any{"path": "f", "edits": []any{map[string]any{"old": old, "new": fresh, "all": all}}})
		got := tooltest.Call(t, set.Edit, string(args))
		want, n := before, strings.Count(before, old)
		if may := n == 1 || n > 1 && all; may && old != fresh {
			want = strings.ReplaceAll(before, old, fresh)
		}
		after, err := os.ReadFile(path)
		tooltest.Must(t, err)
		if string(after) != want || strings.HasPrefix(got, "error:") != (want == before) {
			rt.Fatalf("%q, %q to %q, all %t: %q, want %q; the tool returned %s", before, old, fresh, all, after, want, got)
		}
	})
}
