package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/parts"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store/sqlite"
)

var updateScreens = flag.Bool("update-screens", false, "write the screens that are seen into testdata/screens")

// session is pawl in tmux, with simulated keys, a screen, and a provider on loopback that plays a
// script.
type session struct {
	t       *testing.T
	dir     string
	socket  string
	columns int
	sim     *pawltest.Simulator
	env     []string
}

// sit prepares a session with the given number of columns.
func sit(t *testing.T, columns int, turns ...script.Turn) *session {
	t.Helper()
	parts.Program(t, "tmux", "tmux")
	sim, err := pawltest.NewSimulator(script.New(turns...), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sim.Close() })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &session{t: t, dir: t.TempDir(), columns: columns, sim: sim}
	bin := t.TempDir()
	if err := os.Symlink(self, filepath.Join(bin, "pawl")); err != nil {
		t.Fatal(err)
	}
	s.socket = filepath.Join(bin, "tmux")
	home := t.TempDir()
	s.env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + home, "XDG_DATA_HOME=" + home,
		"OPENAI_API_KEY=test-key", "OPENAI_BASE_URL=" + sim.URL, "GORACE=atexit_sleep_ms=0",
		"LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TZ=UTC", "CI="}
	t.Cleanup(func() { s.tmux("kill-server") })
	return s
}

// tmux runs a tmux command for the session.
func (s *session) tmux(args ...string) string {
	cmd := exec.Command("tmux", append([]string{"-S", s.socket, "-f", "/dev/null"}, args...)...)
	cmd.Env = append(os.Environ(), "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TMUX=")
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	if err != nil && args[0] != "kill-server" {
		s.t.Fatalf("tmux %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// start starts pawl. After its end the screen stays and shows its exit status.
func (s *session) start(args ...string) {
	s.t.Helper()
	var words []string
	for _, a := range append([]string{"env"}, append(s.env, append([]string{"pawl"}, args...)...)...) {
		words = append(words, "'"+strings.ReplaceAll(a, "'", `'\''`)+"'")
	}
	s.tmux("new-session", "-d", "-x", fmt.Sprint(s.columns), "-y", "30", "-c", s.dir, strings.Join(words, " ")+`; echo "[status $?]"; exec cat >/dev/null`)
	s.tmux("set-option", "-g", "history-limit", "5000")
}

// screen returns the visible text and the text that has scrolled away, without parts that differ
// from run to run.
func (s *session) screen() string {
	return masked(s.tmux("capture-pane", "-p", "-S", "-"))
}

var masks = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]`), "⠿"},
	{regexp.MustCompile(`\b(\d+m\d+s|\d+(\.\d+)? m?s)\b`), "T ms"},
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\d-[a-z0-9]{6}\b`), "DATE-xxxxxx"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:PORT"},
}

func masked(text string) string {
	for _, m := range masks {
		text = m.pattern.ReplaceAllString(text, m.with)
	}
	var lines []string
	for _, l := range strings.Split(text, "\n") {
		lines = append(lines, strings.TrimRight(l, " "))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

// see waits until the screen shows each of texts, for any line breaks.
func (s *session) see(texts ...string) {
	s.t.Helper()
	s.until(fmt.Sprintf("%q", texts), func(screen string) bool {
		screen = strings.Join(strings.Fields(screen), " ")
		for _, text := range texts {
			if !strings.Contains(screen, strings.Join(strings.Fields(text), " ")) {
				return false
			}
		}
		return true
	})
}

func (s *session) until(what string, so func(screen string) bool) {
	s.t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		screen := s.screen()
		if so(screen) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			s.t.Fatalf("%s never came:\n%s", what, screen)
		}
	}
}

// press presses keys, named as in tmux. Other text is typed.
func (s *session) press(keys ...string) { s.tmux(append([]string{"send-keys"}, keys...)...) }

func (s *session) text(text string) { s.tmux("send-keys", "-l", text) }

// enter types a line.
func (s *session) enter(text string) {
	s.text(text)
	s.press("Enter")
}

// golden waits until the screen no longer changes, and compares it with the golden screen, which a
// person has reviewed.
func (s *session) golden(name string) {
	s.t.Helper()
	path := filepath.Join("testdata", "screens", fmt.Sprintf("%s.%d.txt", name, s.columns))
	if *updateScreens {
		last := ""
		s.until("a screen that stays", func(screen string) bool {
			same := screen == last
			last = screen
			return same
		})
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(last), 0o644); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	deadline := time.After(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		got := s.screen()
		if got == string(want) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			s.t.Fatalf("%s, want -, got +\n%s", path, cmp.Diff(string(want), got))
		}
	}
}

// resize changes the size of the window, and waits until the terminal has it: tmux can delay that.
func (s *session) resize(columns, rows int) {
	s.t.Helper()
	s.tmux("resize-window", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(rows))
	tty := strings.TrimSpace(s.tmux("display-message", "-p", "#{pane_tty}"))
	s.until("a terminal of the new size", func(string) bool {
		size, err := exec.Command("stty", "-F", tty, "size").Output()
		return err == nil && strings.TrimSpace(string(size)) == fmt.Sprint(rows, columns)
	})
}

// file writes a file into the folder of the session.
func (s *session) file(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o755); err != nil {
		s.t.Fatal(err)
	}
}

// widths are the widths of the golden screens.
var widths = []int{80, 40}

func screens(t *testing.T, play func(t *testing.T, columns int)) {
	for _, w := range widths {
		t.Run(fmt.Sprint(w), func(t *testing.T) { play(t, w) })
	}
}

const threeLines = "one\ntwo\nthree\n"

// The agent reads a folder, a call asks before it writes, a message goes to the run in progress,
// and the answer is streamed.
func TestScreenChat(t *testing.T) {
	screens(t, func(t *testing.T, columns int) {
		answer := script.Say("# Two files\n\nI **read** them both:\n\n| file | lines |\n|---|--:|\n| `a.csv` | 12 |\n| `数据.csv` | 3 |\n\n- `b.csv` is rather long, so that this item wraps in a narrow terminal 👩‍👩‍👧\n\n```go\nx := 1 // one\n```\n")
		hold := make(chan struct{})
		answer.Hold = hold
		s := sit(t, columns,
			script.Together(script.Say("I look."), script.Call("file_list", nil),
				script.Call("file_read", map[string]any{"path": "missing.txt"})),
			script.Call("file_write", map[string]any{"path": "note.txt", "content": "one\nTWO\nthree\n"}),
			answer, script.Say("That, too."))
		s.file("note.txt", threeLines)
		s.start("chat", "--model", "openai:sim", "--tools", "file", "--save", "talk.json")
		s.see("/help")
		s.golden("chat-begin")
		s.enter("What is in here?")
		s.see("deny")
		s.golden("chat-asks")
		s.press("y")
		s.see("writing")
		s.enter("and also this")
		s.see("queued")
		close(hold)
		s.see("That, too.", "tokens in")
		s.golden("chat-end")
		s.enter("/quit")
		s.see("[status 0]")
		if b, err := os.ReadFile(filepath.Join(s.dir, "note.txt")); err != nil || string(b) != "one\nTWO\nthree\n" {
			t.Errorf("got %q, %v", b, err)
		}
	})
}

// The person denies with a reason, changes the arguments in an editor, and approves all later
// calls.
func TestScreenAnswers(t *testing.T) {
	screens(t, func(t *testing.T, columns int) {
		write := func(path string) script.Turn {
			return script.Call("file_write", map[string]any{"path": path, "content": strings.Repeat("a line\n", 30)})
		}
		s := sit(t, columns, write("a.txt"), write("b.txt"), write("d.txt"), write("e.txt"), script.Say("Done."))
		s.file("editor", "#!/bin/sh\nsed -i s/b.txt/c.txt/ $1\n")
		s.env = append(s.env, "EDITOR="+filepath.Join(s.dir, "editor"))
		s.start("chat", "--model", "openai:sim", "--tools", "file")
		s.see("/help")
		s.enter("Write.")
		s.see("a new file")
		s.golden("answers-long")
		s.press("n")
		s.see("why not?")
		s.text("not on a Sunday")
		s.see("Sunday")
		s.golden("answers-why")
		s.press("Enter")
		s.see("b.txt", "e edit")
		s.press("e")
		s.see("d.txt", "deny")
		s.press("a")
		s.see("more lines") // the end of the question was not shown
		s.press("NPage")
		s.press("NPage")
		s.see("31 of 31")
		s.press("a")
		s.see("Done.", "tokens in")
		s.golden("answers-end")
		for name, want := range map[string]bool{"a.txt": false, "b.txt": false, "c.txt": true, "d.txt": true,
			"e.txt": true} {
			if _, err := os.Stat(filepath.Join(s.dir, name)); (err == nil) != want {
				t.Errorf("%s is there: %t, want %t", name, err == nil, want)
			}
		}
	})
}

// Ctrl-C ends the turn and leaves a complete conversation, which a later session resumes.
func TestScreenInterrupt(t *testing.T) {
	screens(t, func(t *testing.T, columns int) {
		answer := script.Say("I begin, and never end.")
		answer.Hold = make(chan struct{})
		s := sit(t, columns, script.Loop(script.First(script.Expect(script.Say("Hello, *Ada*."),
			script.Asked("I am")), script.Expect(answer, script.Asked("Tell me")),
			script.Expect(script.Say("You are Ada."), script.Asked("Who am I")))))
		s.start("chat", "--model", "openai:sim", "--save", "talk.json")
		s.see("/help")
		s.enter("I am Ada.")
		s.see("Hello, Ada.", "tokens in")
		s.enter("Tell me all.")
		s.see("writing")
		s.press("C-c")
		s.see("the run was cancelled", "to resume")
		s.golden("interrupt")
		s.press("C-c")
		s.see("[status 130]")
		if _, err := assemble.LoadTranscript(filepath.Join(s.dir, "talk.json")); err != nil {
			t.Errorf("what was saved: %v", err)
		}
		s.tmux("kill-server")
		s.socket += "-tomorrow"
		s.start("chat", "--model", "openai:sim", "--resume")
		s.see("/help", "Tell me all.")
		s.press("Up")
		s.until("the last message", func(screen string) bool { return strings.Count(screen, "> Tell me all.") == 2 })
		s.press("C-c")
		s.enter("Who am I?")
		s.see("You are Ada.", "tokens in")
		s.golden("resume")
		s.press("C-d")
		s.see("[status 0]")
	})
}

// Parallel calls have a line each. The result of a tool can be expanded.
func TestScreenParallel(t *testing.T) {
	screens(t, func(t *testing.T, columns int) {
		var arrived atomic.Int32
		hold := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			arrived.Add(1)
			if r.URL.Path == "/slow" {
				select {
				case <-hold:
				case <-r.Context().Done():
				}
			}
			for i := range 40 {
				fmt.Fprintf(w, "%s line %d\n", r.URL.Path, i+1)
			}
		}))
		defer server.Close()
		get := func(path string) script.Turn {
			return script.Call("http_fetch", map[string]any{"url": server.URL + path})
		}
		s := sit(t, columns, script.Together(get("/slow"), get("/quick"),
			script.Call("fly", map[string]any{"to": "Oslo"})), script.Say("Read."))
		s.start("chat", "--model", "openai:sim", "--tools", "http", "--http-allow", strings.TrimPrefix(server.URL,
			"http://"))
		s.see("/help")
		s.enter("Get both.")
		s.until("both requests", func(string) bool { return arrived.Load() == 2 })
		s.see("unknown tool", "running calls", "HTTP 200")
		s.golden("parallel-running")
		close(hold)
		s.see("Read.", "tokens in")
		s.golden("parallel-end")
		s.enter("/show 2")
		s.see("/quick line 40")
		s.enter("/show 9")
		s.see("there is no result")
		s.enter("/tools")
		s.see("http_fetch")
		s.press("C-d")
		s.see("[status 0]")
	})
}

// Errors are shown with their remedy, and the chat continues.
func TestScreenErrors(t *testing.T) {
	screens(t, func(t *testing.T, columns int) {
		s := sit(t, columns, script.Loop(script.First(script.Expect(script.Fail(&llm.ProviderError{Status: 401,
			Code: llm.CodeAuthentication, Message: "no such key\x1b[2J\u202e"}), script.Asked("Hello?")),
			script.Expect(script.Say("Now \x1b[31mit\x07 works\u202e."), script.Asked("And now")))))
		s.start("chat", "--model", "openai:sim")
		s.see("/help")
		s.enter("Hello?")
		s.see("pawl: hint:")
		s.enter("And now?")
		s.see("works", "tokens in")
		s.enter("/fly")
		s.see("there is no /fly")
		s.golden("errors")
	})
}

// Input: completion, several lines, pasted text, history, a narrower window.
func TestScreenTyping(t *testing.T) {
	screens(t, func(t *testing.T, columns int) {
		s := sit(t, columns, script.Say("Yes."), script.Say("No."))
		s.start("chat", "--model", "openai:sim")
		s.see("/help")
		s.text("/t")
		s.press("Tab")
		s.see("/tools  /thread")
		s.golden("typing-choices")
		s.press("C-u")
		s.text("first 日本語")
		s.press("M-Enter")
		s.text("second")
		s.see("  second")
		s.tmux("set-buffer", "pasted\nin three\nlines\n")
		s.tmux("paste-buffer", "-p")
		s.see("  lines")
		s.golden("typing-lines")
		s.press("Enter")
		s.see("Yes.", "tokens in")
		s.resize(columns-10, 30)
		s.press("Up")
		s.see("  lines")
		s.press("C-c")
		s.text("After the window became narrower this line has to be broken in two or three")
		s.press("Enter")
		s.see("No.")
		s.until("both totals", func(screen string) bool { return strings.Count(screen, "1 request") == 2 })
		// each terminal wraps its lines in its own way, also at empty lines
		s.see("> After the window became narrower", "Enter sends")
		for _, once := range []string{"> first", "Yes.", "No.", "Enter sends"} {
			if screen := s.screen(); strings.Count(screen, once) != 1 {
				t.Errorf("%q stands there %d times:\n%s", once, strings.Count(screen, once), screen)
			}
		}
	})
}

// One task: updated in place at a terminal, and in plain lines at a terminal without capabilities.
func TestScreenRun(t *testing.T) {
	screens(t, func(t *testing.T, columns int) {
		turns := func() []script.Turn {
			return []script.Turn{script.Together(script.Say("I look."), script.Call("file_list", nil)),
				script.Say("There is **one** file.")}
		}
		for _, tt := range []struct {
			name string
			env  []string
		}{{"run", nil}, {"run-dumb", []string{"TERM=dumb"}}, {"run-ci", []string{"CI=true"}}} {
			s := sit(t, columns, turns()...)
			s.file("note.txt", threeLines)
			s.env = append(s.env, tt.env...)
			s.start("run", "--model", "openai:sim", "--tools", "file", "What is in here?")
			s.see("[status 0]")
			s.golden(tt.name)
		}
	})
}

// The second Ctrl-C ends the program at once, and the terminal is restored.
func TestScreenTwice(t *testing.T) {
	answer := script.Call("http_fetch", map[string]any{"url": "http://127.0.0.1:1/"})
	answer.Hold = make(chan struct{})
	s := sit(t, 80, answer)
	s.start("run", "--model", "openai:sim", "--tools", "http", "Go.")
	s.see("Ctrl-C stops")
	s.press("C-c", "C-c")
	s.see("[status 130]")
	if got := s.tmux("display-message", "-p", "#{cursor_flag}"); strings.TrimSpace(got) != "1" {
		t.Errorf("the cursor is hidden: %q", got)
	}
}

// A person at a terminal who approves a call by its key sees the whole call first, and is asked.
func TestScreenApproveByKey(t *testing.T) {
	s := sit(t, 80)
	path := filepath.Join(s.dir, "runs.db")
	db, err := sqlite.Open(path, &sqlite.Options{NoSync: true})
	ok(t, err)
	text := strings.Repeat("word ", 100) + "the end"
	post := pawl.Func("post", "posts", func(context.Context, map[string]any) (string, error) { panic("it ran") })
	a := &pawl.Agent{Model: script.New(script.Call("post", map[string]any{"text": text})), Tools: []pawl.Toolset{post},
		Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)}}
	res, err := (&durable.Engine{Journal: db}).Runner("letter", a).Run(t.Context(), llm.User("Post."))
	if len(res.Pending) != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	ok(t, db.Close())
	for _, answer := range []struct{ key, want, status string }{{"n", "nothing was approved", "[status 1]"}, {"y", "approved", "[status 0]"}} {
		s.start("runs", "approve", "letter", "run/1/0", "--db", path)
		s.see("run/1/0 post", "the end", "approve run/1/0? y: yes >")
		s.text(answer.key)
		s.press("Enter")
		s.see(answer.want, answer.status)
		s.tmux("kill-server")
		s.socket += "-next" // the server ends a little later
	}
}
