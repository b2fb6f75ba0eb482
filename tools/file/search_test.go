package file_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/internal/test/tooltest"
)

func TestSearch(t *testing.T) {
	dir, set := root(t, map[string]string{
		"a.go":            "package a\n\nfunc One() {}\nfunc Two() {}\n",
		"b/c.go":          "package b\n// one of many\nfunc three() {}\n",
		"b/c_test.go":     "package b\n",
		"b/deep/notes.md": "one\r\ntwo\r\n",
		".git/config":     "one\n",
		".hidden":         "one\n",
		"logo.png":        "\x89PNG\r\n\x1a\n\x00one",
		"late.bin":        strings.Repeat("text\n", 3000) + "one\x00\n",
		"latin.txt":       "na\xefve one\n",
		"context.txt":     "1\n2\n3 x\n4\n5\n6\n7\n8 x\n9 x\n10\n",
		"empty":           "",
		"wide.txt":        strings.Repeat("é", 400) + " needle " + strings.Repeat("ü", 400) + "\n",
		"vendor/x/y.go":   "func one() {}\n",
		"line one":        "",
	})
	tooltest.Must(t, os.Symlink("b", filepath.Join(dir, "link")))
	tooltest.Must(t, os.Symlink("a.go", filepath.Join(dir, "link.go")))
	tooltest.Must(t, os.Symlink("..", filepath.Join(dir, "up")))
	for _, tt := range []struct{ args, want string }{
		{`{"pattern":"func (\\w+)\\(","include":["*.go"],"exclude":["vendor"]}`, "a.go\n3: func One() {}\n4: func Two() {}\nb/c.go\n3: func three() {}\n[3 lines match in 3 files]"},
		{`{"pattern":"ONE","ignore_case":true,"exclude":["*.txt"]}`, ".hidden\n1: one\na.go\n3: func One() {}\nb/c.go\n2: // one of many\nb/deep/notes.md\n1: one\n" +
			"vendor/x/y.go\n1: func one() {}\n[5 lines match in 8 files; 2 binary files were passed over (late.bin, logo.png)]"},
		{`{"pattern":"one","path":".git"}`, ".git/config\n1: one\n[1 line matches in 1 file]"},
		{`{"pattern":"()","literal":true,"path":"b/c.go"}`, "b/c.go\n3: func three() {}\n[1 line matches in 1 file]"},
		{`{"pattern":"one$","path":"b"}`, "b/deep/notes.md\n1: one\n[1 line matches in 3 files]"},
		{`{"pattern":"one","path":"link.go","ignore_case":true}`, "link.go\n3: func One() {}\n[1 line matches in 1 file]"},
		{`{"pattern":"three","path":"link"}`, "link/c.go\n3: func three() {}\n[1 line matches in 3 files]"},
		{`{"pattern":"one","path":"latin.txt"}`, "latin.txt\n1: na\uFFFDve one\n[1 line matches in 1 file; some bytes are not UTF-8 and stand here as \uFFFD]"},
		{`{"pattern":"x","path":"context.txt","context":1}`, "context.txt\n2- 2\n3: 3 x\n4- 4\n--\n7- 7\n8: 8 x\n9: 9 x\n10- 10\n[3 lines match in 1 file]"},
		{`{"pattern":"needle","path":"wide.txt"}`, "wide.txt\n1: …" + strings.Repeat("é", 37) + " needle " + strings.Repeat("ü", 109) + "…\n[1 line matches in 1 file]"},
		{`{"pattern":"x","path":"context.txt","limit":2}`, "context.txt\n3: 3 x\n8: 8 x\n[2 lines match in 1 file; there are more, continue with {\"pattern\":\"x\",\"path\":\"context.txt\",\"limit\":2,\"after\":\"context.txt\",\"line\":8}]"},
		{`{"pattern":"x","path":"context.txt","limit":2,"after":"context.txt","line":8}`, "context.txt\n9: 9 x\n[1 line matches in 1 file]"},
		{`{"pattern":"nothing"}`, "[no line matches, in 11 files; 2 binary files were passed over (late.bin, logo.png)]"},

		{`{"include":["*.go"]}`, "a.go\nb/c.go\nb/c_test.go\nvendor/x/y.go\n[4 files]"},
		{`{"include":["**/*_test.go","*.{md,txt}"]}`, "b/c_test.go\nb/deep/notes.md\ncontext.txt\nlatin.txt\nwide.txt\n[5 files]"},
		{`{"include":["b/*.go","vendor/"],"exclude":["*_test.go"]}`, "b/c.go\nvendor/x/y.go\n[2 files]"},
		{`{"include":["deep/*"],"path":"b"}`, "b/deep/notes.md\n[1 file]"},
		{`{"include":["b/**.md"]}`, "b/deep/notes.md\n[1 file]"},
		{`{"include":["[a-c]*.go"],"limit":2}`, "a.go\nb/c.go\n[2 files; there are more, continue with {\"include\":[\"[a-c]*.go\"],\"limit\":2,\"after\":\"b/c.go\"}]"},
		{`{"include":["[a-c]*.go"],"limit":2,"after":"b/c.go"}`, "b/c_test.go\n[1 file]"},
		{`{"include":["*.java"]}`, "[no file has such a name]"},

		{`{}`, `error: give pattern, what to look for in the files, or include, the names of files to find, such as ["*.go"]`},
		{`{"pattern":"a(b"}`, "error: pattern: missing closing ) in \"a(b\"; it is a regular expression of RE2, without look-around and back-references. Write \\ before a literal character, as in \\( or \\., or set literal"},
		{`{"pattern":"(?=x)"}`, "error: pattern: invalid or unsupported Perl syntax in \"(?=\"; it is a regular expression of RE2, without look-around and back-references. Write \\ before a literal character, as in \\( or \\., or set literal"},
		{`{"pattern":"a\nb","literal":true}`, `error: pattern: it has more than one line, and is looked for within one line; look for its most telling line, with context`},
		{`{"pattern":"x","include":["a[b"]}`, `error: include[0]: "a[b" is no glob: a [ or a { is never closed; such are "*.go", "src/**/*_test.go", "*.{yml,yaml}"`},
		{`{"pattern":"x","exclude":["*.go","{a"]}`, `error: exclude[1]: "{a" is no glob: a [ or a { is never closed; such are "*.go", "src/**/*_test.go", "*.{yml,yaml}"`},
		{`{"pattern":"x","include":["../*"]}`, `error: include[0]: "../*" is no glob: it is to be relative to path; such are "*.go", "src/**/*_test.go", "*.{yml,yaml}"`},
		{`{"pattern":"x","path":"logo.png"}`, `error: "logo.png" is not text: it is a PNG image`},
		{`{"pattern":"one","path":"late.bin"}`, `error: "late.bin" is not text: it is binary data`},
		{`{"pattern":"x","path":"gone"}`, `error: no such file: "gone"; the root has 15 entries, which file_list lists`},
		{`{"pattern":"x","path":"b","after":"a.go"}`, `error: after: "a.go" is not below path "b"; give the path that the last answer ended with`},
		{`{"pattern":"x","path":"up"}`, `error: "up" leads outside the root through a symbolic link; only files below the root can be used`},
	} {
		if diff := cmp.Diff(tt.want, tooltest.Call(t, set.Search, tt.args)); diff != "" {
			t.Errorf("file_search %s (-want +got):\n%s", tt.args, diff)
		}
	}
}

// Continuing where each answer says finds every line that a plain search finds, once and in the
// same order.
func TestSearchPages(t *testing.T) {
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{"x", "needle", "a needle", "", "xx"}), 0, 12)
	rapid.Check(t, func(rt *rapid.T) {
		files := map[string]string{}
		var want []string
		// in the order of a walk
		for _, name := range []string{"a", "b/a", "b/c/d", "b/e", "b.d/x", "b0", "z"} {
			all := lines.Draw(rt, name)
			files[name] = strings.Join(all, "\n")
			for i, l := range all {
				if strings.Contains(l, "needle") {
					want = append(want, fmt.Sprintf("%s:%d:%s", name, i+1, l))
				}
			}
		}
		_, set := root(t, files)
		q := map[string]any{"pattern": "needle", "limit": rapid.IntRange(1, 5).Draw(rt, "limit"), "context": rapid.IntRange(0, 2).Draw(rt, "context")}
		var got []string
		for calls := 0; ; calls++ {
			args, _ := json.Marshal(q)
			var data struct {
				Matches []struct {
					Path string
					Line int
					Text string
				}
				Next map[string]any
			}
			tooltest.Must(t, json.Unmarshal(tooltest.Run(t, set.Search, string(args)).Data, &data))
			for _, m := range data.Matches {
				got = append(got, fmt.Sprintf("%s:%d:%s", m.Path, m.Line, m.Text))
			}
			if q = data.Next; q == nil {
				break
			}
			if len(data.Matches) == 0 || calls > 100 {
				rt.Fatalf("an answer without a match says to go on: %s", args)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// The size of an answer is bounded, for any number of matches.
func TestSearchIsBounded(t *testing.T) {
	_, set := root(t, map[string]string{"f": strings.Repeat(strings.Repeat("x", 1000)+"\n", 5000)})
	for _, context := range []int{0, 20} {
		text := tooltest.Call(t, set.Search, fmt.Sprintf(`{"pattern":"x","limit":1000,"context":%d}`, context))
		if len(text) > 32<<10 || !strings.Contains(text, "there are more, continue with") || len(text) < 10_000 {
			t.Errorf("context %d: %d bytes, ending %q", context, len(text), text[max(0, len(text)-200):])
		}
	}
}

// A line longer than the buffer matches exactly if regexp matches the whole line.
func TestSearchLongLines(t *testing.T) {
	soak.Sequential(t)
	dir, set := root(t, nil)
	path := filepath.Join(dir, "f")
	for _, at := range []int{0, 65530, 65533, 65536, 99_994, 100_000} {
		line := strings.Repeat("x", at) + "needle" + strings.Repeat("x", 100_000-at)
		for _, text := range []string{line, line + " needle y\r\nshort", strings.ReplaceAll(line, "x", "é") + "\r"} {
			tooltest.Must(t, os.WriteFile(path, []byte(text), 0o644))
			whole, _, _ := strings.Cut(text, "\n")
			whole = strings.TrimSuffix(whole, "\r")
			for _, pattern := range []string{"needle", "^needle", "needle$", "nee.{3}", "^x+$", "x+", "^x+needle", "y$", "x$", `\bneedle\b`, "(?i)NEEDLE", "^é*needleé*$"} {
				want := regexp.MustCompile(pattern).MatchString(whole)
				got := tooltest.Call(t, set.Search, `{"path":"f","pattern":`+quote(pattern)+`}`)
				if strings.Contains(got, "[1 line matches") != want || len(got) > 1000 {
					t.Errorf("%s, needle at %d: matches %t; got %.300s", pattern, at, want, got)
				}
			}
			for _, literal := range []string{"needle", "xx", "y", "needle y", "é", "\r"} {
				want := strings.Contains(whole, literal)
				got := tooltest.Call(t, set.Search, `{"path":"f","literal":true,"pattern":`+quote(literal)+`}`)
				if strings.Contains(got, "[1 line matches") != want || want && !strings.Contains(got, literal) {
					t.Errorf("%q, needle at %d: matches %t; got %.300s", literal, at, want, got)
				}
			}
		}
	}
}
