package protect_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/protect"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/internal/test/tooltest"
	"github.com/pawl-go/pawl/sandbox"
	"github.com/pawl-go/pawl/tools/file"
	"github.com/pawl-go/pawl/tools/outside"
	"github.com/pawl-go/pawl/tools/shell"
)

// row is a path that no tool may change. With own, no tool may read it either.
type row struct {
	path string
	own  bool
}

// state lists the runtime's own state in the folder of the test; the last one is in a folder.
var state = []string{"pawl.db", "pawl.db-wal", "pawl.db-shm", "pawl.db-journal", "tokens.json", "keys/sign.pem",
	"undo/20260101-000000"}

// hide lists the entries of Hide for state.
var hide = []string{"pawl.db", "pawl.db-wal", "pawl.db-shm", "pawl.db-journal", "tokens.json", "keys/sign.pem", "undo"}

// rows returns the rows of the table: the own state, hidden names, and each row of places.txt;
// outside of make soak each eighth.
func rows() (all []row) {
	for _, name := range state {
		all = append(all, row{name, true})
	}
	all = append(all, row{"sub/.env", true})
	every := soak.N(8, 1)
	for n, d := range protect.Defaults() {
		if !d.Hidden && n%every != 0 {
			continue
		}
		all = append(all, row{strings.ReplaceAll(d.Place, "*", "x"), d.Hidden})
	}
	return all
}

// canary is the content of a row. good begins the content of every row.
func canary(n int) string { return fmt.Sprintf("good CANARY-%d-END\n", n) }

// world is a folder with all rows.
type world struct {
	dir  string
	rows []row
	hide []string
	off  bool // nothing is protected: the control
}

func newWorld(t *testing.T, off bool, owner int) *world {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "pawl-walls-")
	tooltest.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &world{dir: dir, rows: rows(), off: off}
	for n, r := range w.rows {
		at := filepath.Join(dir, r.path)
		tooltest.Must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		tooltest.Must(t, os.WriteFile(at, []byte(canary(n)), 0o644))
	}
	tooltest.Must(t, os.Mkdir(filepath.Join(dir, "open"), 0o755))
	for _, name := range hide {
		w.hide = append(w.hide, filepath.Join(dir, name))
	}
	if owner > 0 {
		give := func(p string, _ fs.DirEntry, _ error) error { return os.Lchown(p, owner, owner) }
		tooltest.Must(t, filepath.WalkDir(dir, give))
	}
	return w
}

// protection returns the options Protect and Hide.
func (w *world) protection() (entries, hidden []string) {
	if w.off {
		return []string{"-*"}, nil
	}
	return nil, w.hide
}

// through returns the rows that are not as they were, and the own rows whose content is in seen.
func (w *world) through(seen []byte) (list []int) {
	for n, r := range w.rows {
		b, err := os.ReadFile(filepath.Join(w.dir, r.path))
		changed := err != nil || string(b) != canary(n)
		leaked := r.own && bytes.Contains(seen, []byte(fmt.Sprintf("CANARY-%d-", n)))
		if changed || leaked {
			list = append(list, n)
		}
	}
	return list
}

// A tally counts the attempts of a column of the table.
type tally struct{ tried, through int }

func toFile(dir, row string) error { return os.Symlink("../"+row, filepath.Join(dir, "open/link")) }

func toFolder(dir, row string) error {
	return os.Symlink("../"+filepath.Dir(row), filepath.Join(dir, "open/folder"))
}

func hardLink(dir, row string) error {
	return os.Link(filepath.Join(dir, row), filepath.Join(dir, "open/hard"))
}

// toolAttacks are calls of the file tools on a row. D is its folder, B its name.
var toolAttacks = []struct {
	column  string
	prepare func(dir, row string) error // makes a link, as a program may; nil means none
	tool    func(*file.Set) *pawl.Tool
	args    string
	reads   bool // it applies to own rows alone
}{
	{"read", nil, func(s *file.Set) *pawl.Tool { return s.Read }, `{"path":"D/B"}`, true},
	{"read", nil, func(s *file.Set) *pawl.Tool { return s.Read }, `{"path":"open/../D/./B"}`, true},
	{"read", nil, func(s *file.Set) *pawl.Tool { return s.Stat }, `{"path":"D/B"}`, true},
	{"write", nil, func(s *file.Set) *pawl.Tool { return s.Write }, `{"path":"D/B","content":"evil"}`, false},
	{"write", nil, func(s *file.Set) *pawl.Tool { return s.Edit }, `{"path":"D/B","edits":[{"old":"good","new":"evil"}]}`, false},
	{"write", nil, func(s *file.Set) *pawl.Tool { return s.Delete }, `{"path":"D/B"}`, false},
	{"link", toFile, func(s *file.Set) *pawl.Tool { return s.Read }, `{"path":"open/link"}`, true},
	{"link", hardLink, func(s *file.Set) *pawl.Tool { return s.Read }, `{"path":"open/hard"}`, true},
	{"link", toFolder, func(s *file.Set) *pawl.Tool { return s.Read }, `{"path":"open/folder/B"}`, true},
	{"link", toFile, func(s *file.Set) *pawl.Tool { return s.Write }, `{"path":"open/link","content":"evil"}`, false},
	{"link", toFolder, func(s *file.Set) *pawl.Tool { return s.Delete }, `{"path":"open/folder/B"}`, false},
	{"glob", nil, func(s *file.Set) *pawl.Tool { return s.Search }, `{"pattern":"CANARY","include":["B"],"limit":1000}`, true},
	{"glob", nil, func(s *file.Set) *pawl.Tool { return s.Search }, `{"pattern":"CANARY","path":"D/B"}`, true},
	{"glob", hardLink, func(s *file.Set) *pawl.Tool { return s.Search }, `{"pattern":"CANARY","path":"open"}`, true},
}

// The table: each row, each way of the file tools, of commands and of programs, at each level of
// the sandbox. Nothing gets through, and without the protection each way gets through.
func TestWalls(t *testing.T) {
	count := map[string]*tally{}
	at := func(column string) *tally {
		if count[column] == nil {
			count[column] = new(tally)
		}
		return count[column]
	}
	for _, off := range []bool{false, true} {
		fileTools(t, off, func(column string, tried, through int) {
			c := at(fmt.Sprintf("file tools %s, unprotected %t", column, off))
			c.tried += tried
			c.through += through
		})
	}
	for _, level := range []sandbox.Level{sandbox.Strict, sandbox.Standard} {
		if err := sandbox.Check(level); err != nil {
			t.Logf("%s: not tried: %v", level, err)
			continue
		}
		for _, off := range []bool{false, true} {
			for _, a := range scripts {
				tried, through := a.run(t, level, off)
				c := at(fmt.Sprintf("%s %s, unprotected %t", level, a.column, off))
				c.tried += tried
				c.through += through
			}
		}
	}
	for column, c := range count {
		t.Logf("%s: %d of %d got through", column, c.through, c.tried)
	}
}

// fileTools makes the attacks of the file tools on each row.
func fileTools(t *testing.T, off bool, report func(column string, tried, through int)) {
	t.Helper()
	for _, a := range toolAttacks {
		w := newWorld(t, off, 0)
		entries, hidden := w.protection()
		set, err := file.New(w.dir, &file.Options{Protect: entries, Hide: hidden})
		tooltest.Must(t, err)
		for n, r := range w.rows {
			hard := strings.Contains(a.args, "open/hard") || a.args == `{"pattern":"CANARY","path":"open"}`
			if a.reads && !r.own || hard && strings.HasSuffix(r.path, ".env") {
				continue // what is hidden by its name has other names
			}
			fill := strings.NewReplacer("D", filepath.Dir(r.path), "B", filepath.Base(r.path)).Replace
			args := strings.ReplaceAll(fill(a.args), "CANARY", fmt.Sprintf("CANARY-%d-", n))
			tooltest.Must(t, os.RemoveAll(filepath.Join(w.dir, "open")))
			tooltest.Must(t, os.Mkdir(filepath.Join(w.dir, "open"), 0o755))
			if a.prepare != nil {
				tooltest.Must(t, a.prepare(w.dir, r.path))
			}
			said := tooltest.Call(t, a.tool(set), args)
			if strings.Contains(args, `"pattern"`) {
				said = strings.ReplaceAll(said, args, "") // a refusal repeats what was asked
			}

			b, err := os.ReadFile(filepath.Join(w.dir, r.path))
			changed := err != nil || string(b) != canary(n)
			got := changed
			if a.reads {
				got = !strings.HasPrefix(said, "error: ") && !strings.Contains(said, "no line matches")
			}
			through := 0
			if got {
				through = 1
			}
			report(a.column, 1, through)
			if got != off {
				t.Errorf("%s of %s by %s, unprotected %t: %s", a.column, r.path, args, off, said)
			}
			tooltest.Must(t, os.WriteFile(filepath.Join(w.dir, r.path), []byte(canary(n)), 0o644))
		}
		set.Close()
	}
}

// script is an attack on all rows by one command or program. P is the path of a row, D its folder,
// N its number; what it reads goes into open/out.
type script struct {
	column  string
	each    string // for each row
	once    string // after them
	program string // tool by which it runs: "" means shell_exec
	own     bool   // it applies to own rows alone
}

var scripts = []script{
	{column: "read", own: true, each: `cat $P; cp $P open/copy$N && cat open/copy$N; dd if=$P 2>/dev/null; cat /proc/self/root$PWD/$P; cat open/../$P; (cd $D && cat ./${P##*/})`},
	{column: "write", each: `echo evil >> $P; echo evil > $P; truncate -s 0 $P; sed -i s/good/evil/ $P; cp /bin/true $P; rm -rf $P`},
	{column: "link", each: `ln -s ../$P open/s$N; cat open/s$N; echo evil >> open/s$N; ln $P open/h$N; cat open/h$N; echo evil >> open/h$N; ln -s ../$D open/d$N; echo evil >> open/d$N/${P##*/}; ln -sf /etc/passwd $P`},
	{column: "rename", each: `mv $P open/m$N; cat open/m$N; [ $D = . ] || mv $D open/f$N; cat open/f$N/${P##*/}; mkdir -p $D; echo evil > open/new$N; mv open/new$N $P`},
	{column: "shell", each: `exec 9<>$P && { cat <&9; echo evil >&9; exec 9>&-; }; chmod 777 $P; touch -d @7 $P; install -D /bin/true $P; : >| $P`},
	{column: "glob", own: true, once: `cat * .* */* */.*; grep -rh CANARY .; find . -type f -exec cat {} +; tar c . 2>/dev/null`},
	{column: "program", once: `python3 -c '
import os, mmap
for d, ds, fs in os.walk("."):
    for f in fs:
        p = os.path.join(d, f)
        if p.startswith("./open/"): continue
        for do in (lambda: print(open(p).read()), lambda: print(os.read(os.open(p, os.O_RDWR), 100)),
            lambda: os.link(p, "open/l" + str(abs(hash(p)))), lambda: os.truncate(p, 0), lambda: os.rename(p, p + "x"),
            lambda: mmap.mmap(os.open(p, os.O_RDWR), 0).write(b"evil"), lambda: os.unlink(p)):
            try: do()
            except Exception: pass
'`},
	{column: "program", program: "command", own: true, each: `cat $P; echo evil >> $P; mv $P open/c$N; cat open/c$N; rm -f $P`, once: `cat * .* */* */.*`},
}

// run makes the attack at a level, and returns the number of rows and of the rows that were read or
// changed. In the control, off, each row must be.
func (a script) run(t *testing.T, level sandbox.Level, off bool) (tried, through int) {
	t.Helper()
	owner := 0
	if level == sandbox.Standard && os.Geteuid() == 0 {
		owner = 65534
	}
	w := newWorld(t, off, owner)
	var paths []string
	for _, r := range w.rows {
		if !a.own || r.own {
			paths = append(paths, r.path)
		}
	}
	line := "{\n"
	if a.each != "" {
		line += "N=0; for P in " + strings.Join(paths, " ") + "\ndo N=$((N+1)); D=$(dirname $P)\n(" + a.each + ")\ndone\n"
	}
	line += a.once + "\n} > open/out 2>/dev/null\necho done > open/done"
	said := w.execute(t, level, a.program, line)
	if b, _ := os.ReadFile(filepath.Join(w.dir, "open/done")); string(b) != "done\n" {
		t.Fatalf("%s at %s, unprotected %t: it did not run: %s", a.column, level, off, said)
	}

	seen, _ := os.ReadFile(filepath.Join(w.dir, "open/out"))
	got := map[int]bool{}
	for _, n := range w.through(seen) {
		got[n] = true
	}
	for n, r := range w.rows {
		if a.own && !r.own {
			continue
		}
		tried++
		if got[n] {
			through++
		}
		if got[n] != off {
			t.Errorf("%s of %s at %s, unprotected %t: got through %t", a.column, r.path, level, off, got[n])
		}
	}
	return tried, through
}

// execute runs a command line by shell_exec, or as the program of a command tool that may write the
// whole folder.
func (w *world) execute(t *testing.T, level sandbox.Level, program, line string) string {
	t.Helper()
	if program == "" {
		entries, hidden := w.protection()
		tool, err := shell.New(w.dir, &shell.Options{Level: level, Protect: entries, Hide: hidden})
		tooltest.Must(t, err)
		args, _ := json.Marshal(map[string]string{"command": line})
		return tooltest.Call(t, tool, string(args))
	}
	base := sandbox.Spec{Level: level}
	if !w.off {
		base.Hide = append(w.hide, filepath.Join(w.dir, ".env"), filepath.Join(w.dir, "sub/.env"))
	}
	p := outside.Process{Args: []string{"/bin/sh", "-c", line}, Dir: w.dir, Write: []string{w.dir}}
	run, err := outside.Sandboxed(base)(context.Background(), p)
	tooltest.Must(t, err)
	x, err := run(context.Background())
	tooltest.Must(t, err)
	return string(x.Stderr)
}

// Each row of places.txt is complete, and protected under its name and in folders. No two rows are
// the same.
func TestDefaults(t *testing.T) {
	dir := t.TempDir()
	places, err := protect.New(dir, nil, protect.Own{})
	tooltest.Must(t, err)
	unprotected, err := protect.New(dir, []string{"-*"}, protect.Own{})
	tooltest.Must(t, err)
	seen := map[string]bool{}
	for _, d := range protect.Defaults() {
		isAddress := strings.HasPrefix(d.Source, "https://") || strings.HasPrefix(d.Source, "docs/")
		if d.Starts == "" || d.Group == "" || !isAddress || seen[d.Place] {
			t.Errorf("%+v: incomplete, or there twice", d)
		}
		seen[d.Place] = true

		name := strings.ReplaceAll(d.Place, "*", "x")
		for _, rel := range []string{name, "a/b/" + name, strings.ToUpper(name), name + "/x"} {
			found := places.Find(rel) + places.Sight().Named(rel)
			if found == "" || !strings.HasSuffix(d.Place, found) {
				t.Errorf("%s is protected by %q, want %q", rel, found, d.Place)
			}
			if off := unprotected.Find(rel) + unprotected.Sight().Named(rel); off != "" {
				t.Errorf("with -*, %s is protected by %q", rel, off)
			}
		}
		if near := "x" + name + "x"; places.Find(near) != "" && !strings.Contains(d.Place, "*") {
			t.Errorf("%s is protected", near)
		}
	}
	if len(seen) < 180 {
		t.Errorf("places.txt has %d places", len(seen))
	}
}
