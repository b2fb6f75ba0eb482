package term_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
)

func ExampleLine() {
	// control characters in text have no effect
	l := term.Text(term.Bold, "file_read").Add(0, "  héllo 日本 a\x1b[2Jb")
	for _, part := range l.Wrap(12) {
		fmt.Println(part)
	}
	// Output:
	// file_read
	// héllo 日本
	// a\x1b[2Jb
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"":                   "",
		"plain äöü 日本\n\tok": "plain äöü 日本\n\tok",
		"a\x1b[31mb":         `a\x1b[31mb`,
		"a\r\nb\rc":          "a\nb\\x0dc",
		"\u009b":             `\x9b`,
		"\x9b":               `\x9b`,
		"\u202e\ufeff":       `\u202e\ufeff`,
		"\ufffd":             "\ufffd",
		"\xff\ufffd":         "\\xff\ufffd",
	} {
		if got := term.Visible(in); got != want {
			t.Errorf("Visible(%q) = %q, want %q", in, got, want)
		}
	}
}

// What a person would not see is an escape.
func TestExact(t *testing.T) {
	for in, want := range map[string]string{
		"": "",
		"plain äöü e\u0301 日本\n\tok \ufffd": "plain äöü e\u0301 日本\n\tok \ufffd",
		"hi\U000e0168\U000e0169":            `hi\u{e0168}\u{e0169}`,
		"ou\u2060t.txt":                     `ou\u{2060}t.txt`,
		"a\u00adb\u200bc\u200cd\u200de":     `a\u{ad}b\u{200b}c\u{200c}d\u{200d}e`,
		"\u115f\u1160\u3164\uffa0\u2800":    `\u{115f}\u{1160}\u{3164}\u{ffa0}\u{2800}`,
		"\u034f\u180b\u2065\ufff0\ufff9":    `\u{34f}\u{180b}\u{2065}\u{fff0}\u{fff9}`,
		"\u202e\ufeff\u2028\U000e0041":      `\u{202e}\u{feff}\u{2028}\u{e0041}`,
		"\u0301a \u0301\n\u0301":            "\\u{301}a \\u{301}\n\\u{301}",
		"a\ufe0f\ufe01":                     `a\u{fe0f}\u{fe01}`,
		"❤\ufe0f 👩\u200d👩 👩🏽\u200d💻 ❤\ufe0f\u200d🔥": "❤\ufe0f 👩\u200d👩 👩🏽\u200d💻 ❤\ufe0f\u200d🔥",
		"❤\ufe0f\ufe0f👩\u200d\u200dx":               "❤\ufe0f\\u{fe0f}👩\\u{200d}\\u{200d}x",
		"\u2800\ufe0f":                              `\u{2800}\u{fe0f}`,
		"\xff\x1b\xffx":                             `\xff\x1b\xffx`,
	} {
		if got := term.Exact(in); got != want {
			t.Errorf("Exact(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("a\x1b[31mb\r\n\xff\u202e")
	f.Add("\xa9\ufe0f👩\u200d\xf0")
	f.Add("❤\u200d\u2800 \u0301👩\u200d👩\ufe0f")
	f.Fuzz(func(t *testing.T, s string) {
		got := term.Visible(s)
		if strings.ContainsFunc(got, term.Hidden) {
			t.Errorf("Visible(%q) = %q", s, got)
		}
		if again := term.Visible(got); again != got {
			t.Errorf("Visible(%q) = %q, and again %q", s, got, again)
		}
		exact := term.Exact(s)
		if again := term.Exact(exact); again != exact || term.Visible(exact) != exact {
			t.Errorf("Exact(%q) = %q, and again %q", s, exact, again)
		}
	})
}

func TestWidthAndCut(t *testing.T) {
	for _, tt := range []struct {
		text  string
		width int
		cut   string // to 4 columns
	}{
		{"abc", 3, "abc"}, {"abcd", 4, "abcd"}, {"abcde", 5, "abc…"}, {"日本語", 6, "日…"}, {"é́é́", 2,
			"é́é́"}, {"👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧", 6, "👩‍👩‍👧…"}, {"", 0, ""}, {"🇳🇴", 2, "🇳🇴"},
	} {
		if got := term.Width(tt.text); got != tt.width {
			t.Errorf("Width(%q) = %d, want %d", tt.text, got, tt.width)
		}
		if got := term.Cut(tt.text, 4); got != tt.cut {
			t.Errorf("Cut(%q, 4) = %q, want %q", tt.text, got, tt.cut)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, tt := range []struct {
		in    string
		width int
		want  []string
	}{
		{"one two three", 7, []string{"one two", "three"}},
		{"one two three", 8, []string{"one two", "three"}},
		{"abcdefghij kl", 4, []string{"abcd", "efgh", "ij", "kl"}},
		{"日本語日本語", 5, []string{"日本", "語日", "本語"}},
		{"go 日本語 go", 6, []string{"go 日", "本語", "go"}},
		{"x", 0, []string{"x"}},
		{"", 5, []string{""}},
	} {
		var got []string
		for _, l := range term.Text(0, tt.in).Wrap(tt.width) {
			got = append(got, l.String())
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q in %d: want -, got +\n%s", tt.in, tt.width, diff)
		}
	}
}

// Wrapped lines fit the width, only spaces are lost, and each character has its style.
func TestWrapKeepsAll(t *testing.T) {
	letters := rapid.StringOf(rapid.RuneFrom([]rune("ab  cde日本é\u0301👩")))
	rapid.Check(t, func(t *rapid.T) {
		var l term.Line
		for i, text := range rapid.SliceOfN(letters, 0, 5).Draw(t, "spans") {
			l = l.Add([]term.Style{0, term.Bold, term.Red}[i%3], text)
		}
		width := rapid.IntRange(2, 30).Draw(t, "width")
		all := ""
		for _, w := range l.Wrap(width) {
			if w.Width() > width {
				t.Fatalf("%q is wider than %d", w, width)
			}
			all += w.String()
		}
		if got, want := strings.ReplaceAll(all, " ", ""), strings.ReplaceAll(l.String(), " ", ""); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
		if c := l.Cut(width); c.Width() > width {
			t.Fatalf("%q is wider than %d", c, width)
		}
	})
}

func TestKeys(t *testing.T) {
	decode := func(in string) (out []string) {
		for in != "" {
			k, n := term.DecodeKey(in, false)
			if n == 0 {
				if k, n = term.DecodeKey(in, true); n == 0 {
					return append(out, "rest "+strconv.Quote(in))
				}
			}
			out, in = append(out, k.String()), in[n:]
		}
		return out
	}
	for in, want := range map[string][]string{
		"hé日\r":                            {`text "hé日"`, "enter"},
		"\x1b[A\x1bOB\x1b[1;5C":            {"up", "down", "word-right"},
		"\x1b\r\n":                         {"newline", "newline"},
		"\x03\x04\x1a":                     {"ctrl-c", "ctrl-d", "ctrl-z"},
		"\x1b":                             {"esc"},
		"\x1bx":                            {"alt-x"},
		"\x1b[200~a\r\nb\x1b[Ac\x1b[201~d": {`paste "a\nb\\x1b[Ac"`, `text "d"`},
		"\x1b[99;99q.":                     {"", `text "."`},
		"\x1b[3~\x7f\t":                    {"delete", "backspace", "tab"},
		"\x1b[200~never ended":             {`rest "\x1b[200~never ended"`},
		"a\u202e":                          {`text "a\\u202e"`},
	} {
		if diff := cmp.Diff(want, decode(in)); diff != "" {
			t.Errorf("%q, want -, got +\n%s", in, diff)
		}
	}
}

func FuzzKeys(f *testing.F) {
	f.Add("\x1b[200~a\x1b[201~\x1b[A\xff\x00é")
	f.Fuzz(func(t *testing.T, in string) {
		for in != "" {
			k, n := term.DecodeKey(in, true)
			if n == 0 && !strings.HasPrefix(in, "\x1b[200~") || n > len(in) {
				t.Fatalf("%q takes %d bytes", in, n)
			}
			if strings.ContainsFunc(k.Text, term.Hidden) {
				t.Fatalf("%q is typed", k.Text)
			}
			if n == 0 {
				return
			}
			in = in[n:]
		}
	})
}

func TestEditor(t *testing.T) {
	for _, tt := range []struct{ keys, want string }{
		{"hello|left|left|X", "helXlo"},
		{"one two three|delete-word|home|>", ">one two "},
		{"日本|left|backspace", "本"},
		{"👩‍👩‍👧x|left|backspace", "x"},
		{"a|newline|b|up|home|0", "0a\nb"},
		{"abc|newline|d|up|end|!|down|?", "abc!\nd?"},
		{"abc|home|right|ctrl-k|ctrl-u", ""},
		{"a|newline|b|up|ctrl-k", "ab"},
		{"x|word-left|word-right|y", "xy"},
		{"one two|word-left|delete-word-right", "one "},
		{"/he|tab", "/help"},
		{"/s|tab", "/s"},
		{"up", "second"},
		{"up|up|up", "first"},
		{"draft|up|down", "draft"},
		{"up|X|down", ""},
	} {
		e := &term.Editor{Complete: func(before string) (out []string) {
			for _, c := range []string{"/help", "/save ", "/show "} {
				if strings.HasPrefix(c, before) {
					out = append(out, c)
				}
			}
			return out
		}}
		e.Remember("first")
		e.Remember("second")
		for _, k := range strings.Split(tt.keys, "|") {
			key := term.Key{Name: k}
			if !e.Key(key) {
				e.Key(term.Key{Name: "text", Text: k})
			}
		}
		if got := e.Text(); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.keys, got, tt.want)
		}
	}
}

// After any keys the cursor is between characters and within the visible lines.
func TestEditorView(t *testing.T) {
	keys := []string{"text a", "text 日", "text 👩‍👩‍👧", "paste x\ny z", "newline", "left", "right", "up", "down",
		"home", "end", "backspace", "delete", "word-left", "word-right", "delete-word", "delete-word-right", "ctrl-u", "ctrl-k", "tab"}
	rapid.Check(t, func(t *rapid.T) {
		e := new(term.Editor)
		width, rows := rapid.IntRange(8, 40).Draw(t, "width"), rapid.IntRange(1, 5).Draw(t, "rows")
		for _, k := range rapid.SliceOf(rapid.SampledFrom(keys)).Draw(t, "keys") {
			name, text, _ := strings.Cut(k, " ")
			e.Key(term.Key{Name: name, Text: text})
			lines, at := e.View(term.Text(0, "> "), width, rows)
			if !utf8.ValidString(e.Text()) {
				t.Fatalf("%q is cut", e.Text())
			}
			if len(lines) > rows || at.Row < 0 || at.Row >= len(lines) || at.Column < 2 || at.Column > width {
				t.Fatalf("%q: the cursor is at %v of %d lines", e.Text(), at, len(lines))
			}
			for _, l := range lines {
				if l.Width() > width+1 {
					t.Fatalf("%q is wider than %d", l, width)
				}
			}
		}
	})
}

// emulator implements the terminal functions that Screen uses.
type emulator struct {
	width, height int
	rows          [][]rune // with the rows that have scrolled away
	top, y, x     int
	hidden        bool
	saved         [2]int
}

func newEmulator(width, height int) *emulator {
	return &emulator{width: width, height: height, rows: make([][]rune, height)}
}

func (e *emulator) Write(b []byte) (int, error) {
	for in := []rune(string(b)); len(in) > 0; {
		n := 1
		switch r := in[0]; r {
		case '\r':
			e.x = 0
		case '\n':
			if e.y++; e.y == e.height {
				e.y, e.top = e.height-1, e.top+1
				e.rows = append(e.rows, nil)
			}
		case 0x1b:
			if in[1] == '7' || in[1] == '8' {
				if n = 2; in[1] == '7' {
					e.saved = [2]int{e.y, e.x}
				} else {
					e.y, e.x = e.saved[0], e.saved[1]
				}
				break
			}
			for n = 2; in[n] < 0x40 || in[n] > 0x7e; n++ {
			}
			arg, _ := strconv.Atoi(string(in[2:n]))
			row := e.top + e.y
			switch in[n] {
			case 'A':
				e.y = max(0, e.y-max(arg, 1))
			case 'B':
				e.y = min(e.height-1, e.y+1)
			case 'C':
				e.x = min(e.width-1, e.x+max(arg, 1))
			case 'K':
				e.rows[row] = e.rows[row][:min(e.x, len(e.rows[row]))]
			case 'J':
				if e.y == 0 && e.x == 0 {
					panic("the whole screen is cleared, which tmux scrolls away")
				}
				e.rows[row] = e.rows[row][:min(e.x, len(e.rows[row]))]
				for i := row + 1; i < len(e.rows); i++ {
					e.rows[i] = nil
				}
			case 'h', 'l':
				if string(in[2:n]) == "?25" {
					e.hidden = in[n] == 'l'
				}
			default:
				panic("unknown sequence " + string(in[:n+1]))
			}
			n++
		default:
			row := e.rows[e.top+e.y]
			for len(row) <= e.x {
				row = append(row, ' ')
			}
			row[e.x] = r
			e.rows[e.top+e.y] = row
			if e.x < e.width-1 {
				e.x++
			}
		}
		in = in[n:]
	}
	return len(b), nil
}

func (e *emulator) text() string {
	var lines []string
	for _, r := range e.rows {
		lines = append(lines, strings.TrimRight(string(r), " "))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// After any sequence of frames the terminal holds each printed line once, then the last live lines,
// with the cursor at its place.
func TestScreen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const width, height = 20, 6
		e := newEmulator(width, height)
		s := term.NewScreen(e, width, height, false)
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "bb", "a line that is too long for it", "ccc"}),
			0, 8)
		var want []string
		for range rapid.IntRange(1, 8).Draw(t, "frames") {
			var print, live []term.Line
			for _, l := range lines.Draw(t, "print") {
				if len(l) > width-1 {
					l = l[:5]
				}
				print = append(print, term.Text(0, l))
				want = append(want, l)
			}
			var shown []string
			for _, l := range lines.Draw(t, "live") {
				live = append(live, term.Text(0, l))
				shown = append(shown, term.Cut(l, width-1))
			}
			if over := len(shown) - (height - 1); over > 0 {
				shown = shown[over:]
			}
			var at *term.Cursor
			if len(live) > 0 && rapid.Bool().Draw(t, "cursor") {
				at = &term.Cursor{Row: rapid.IntRange(max(0, len(live)-3), len(live)-1).Draw(t, "row"),
					Column: rapid.IntRange(0, 5).Draw(t, "column")}
			}
			if err := s.Paint(print, live, at); err != nil {
				t.Fatal(err)
			}
			all := strings.TrimRight(strings.Join(append(want[:len(want):len(want)], shown...), "\n"), "\n")
			if diff := cmp.Diff(all, e.text()); diff != "" {
				t.Fatalf("want -, got +\n%s", diff)
			}
			if e.hidden != (at == nil) || at != nil && (e.x != at.Column || e.top+e.y != len(want)+
				len(shown)-(len(live)-at.Row)) {
				t.Fatalf("the cursor is at %d, %d, hidden %t; want %v", e.top+e.y, e.x, e.hidden, at)
			}
		}
	})
}

// A live line that did not change is not written again.
func TestScreenWritesWhatChanged(t *testing.T) {
	var b strings.Builder
	s := term.NewScreen(&b, 80, 24, true)
	live := []term.Line{term.Text(term.Red, "stays"), term.Text(0, "one")}
	s.Paint(nil, live, nil)
	b.Reset()
	live[1] = term.Text(0, "two")
	s.Paint(nil, live, nil)
	if got := b.String(); strings.Contains(got, "stays") || !strings.Contains(got, "two") {
		t.Errorf("got %q", got)
	}
}
