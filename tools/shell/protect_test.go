package shell_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-go/pawl/sandbox"
	"github.com/pawl-go/pawl/tools/shell"
)

// places are protected files. The last one is the file of the agent, which an option names.
var places = []string{".git/config", ".git/hooks/post-checkout", "sub/.git/config", ".mcp.json", "tools.lock", ".vscode/tasks.json",
	".idea/workspace.xml", ".envrc", ".bashrc", ".profile", ".zshrc", ".github/workflows/ci.yml", ".gitlab-ci.yml", ".circleci/config.yml",
	"conf/agent.yaml"}

// attacks change each place P; D is its folder. The ones of missing apply where nothing is there.
var attacks = []struct {
	name, script string
	missing      bool
}{
	{"write", `mkdir -p $D; echo evil > $P`, true},
	{"edit", `sed -i s/good/evil/ $P; echo evil >> $P; truncate -s 0 $P`, false},
	{"delete", `rm -rf $P; rm -rf ${P%%/*}`, false},
	{"rename", `mv $P away$N; mv $D gone$N; mkdir -p $D; echo evil > new$N; mv new$N $P`, true},
	{"link", `echo evil > new$N; ln -f $P alias$N; echo evil > alias$N; mkdir -p $D; ln -sf $PWD/new$N $P; ln -f new$N $P; ln -s $D d$N; echo evil > d$N/${P##*/}`, true},
	{"mode", `chmod 000 $P; [ $D = . ] || chmod 755 $D; cp /bin/true $P; install -D /bin/true $P; mkdir -p $P; mkfifo $P; touch -d @7 $P`, true},
}

// filled returns a folder with the places, and one without. Their owner is who can run commands at
// the level.
func filled(t *testing.T, level sandbox.Level, with bool) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "pawl-places-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, p := range places {
		if !with {
			break
		}
		p = filepath.Join(dir, p)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte("good\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	os.Mkdir(filepath.Join(dir, "open"), 0o755)
	if level == sandbox.Standard && os.Geteuid() == 0 {
		filepath.WalkDir(dir, func(p string, _ fs.DirEntry, _ error) error { return os.Lchown(p, 65534, 65534) })
	}
	return dir
}

// state returns each place and what it is. Times do not count: at Standard, the owner of a file can
// change them.
func state(dir string) map[string]string {
	all := map[string]string{}
	for _, p := range places {
		info, err := os.Lstat(filepath.Join(dir, p))
		if err != nil {
			all[p] = "missing"
			continue
		}
		b, _ := os.ReadFile(filepath.Join(dir, p))
		all[p] = fmt.Sprintf("%s %q", info.Mode(), b)
	}
	return all
}

// No command changes a protected place, and without the protection each attack changes each place.
func TestProtected(t *testing.T) {
	for _, level := range []sandbox.Level{sandbox.Strict, sandbox.Standard} {
		if err := sandbox.Check(level); err != nil {
			t.Logf("%s: not tried: %v", level, err)
			continue
		}
		tried := 0
		for _, attack := range attacks {
			for _, with := range []bool{true, false} {
				if !with && !attack.missing {
					continue
				}
				for _, control := range []bool{false, true} {
					tried += attempt(t, level, attack.name, attack.script, with, control)
				}
			}
		}
		t.Logf("%s: %d attempts changed nothing; the same attempts without the protection changed each place", level, tried)
	}
}

// attempt makes an attack on each place. control says that nothing is protected, so that each place
// must change. It returns the number of places that did not.
func attempt(t *testing.T, level sandbox.Level, name, script string, with, control bool) int {
	t.Helper()
	dir := filled(t, level, with)
	opts := &shell.Options{Level: level, Protect: []string{filepath.Join(dir, "conf/agent.yaml")}}
	if control {
		opts.Protect = []string{"-*"}
	}
	tool, err := shell.New(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	before := state(dir)
	x := call(tool, map[string]any{"command": "N=0; for P in " + strings.Join(places, " ") + "\ndo N=$((N+1)); D=$(dirname $P)\n" + script +
		"\ndone\necho done > open/done"})
	if b, _ := os.ReadFile(filepath.Join(dir, "open/done")); string(b) != "done\n" {
		t.Fatalf("%s at %s: the command did not run: %s", name, level, x.Result.Text())
	}
	after, same := state(dir), 0
	for _, place := range places {
		if strings.HasPrefix(place, "sub/") && !with {
			continue // of repositories in folders, only existing ones are protected
		}
		if changed := after[place] != before[place]; changed != control {
			t.Errorf("%s %s at %s, existing %t, unprotected %t: changed %t: %s\n%s", name, place, level, with, control, changed,
				after[place], x.Result.Text())
		} else if !changed {
			same++
		}
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !control && !with && e.Name() != "sub" && !strings.ContainsAny(e.Name(), "0123456789") && e.Name() != "open" {
			t.Errorf("%s at %s: %s is left", name, level, e.Name())
		}
	}
	return same
}

// Programs that run at the same time share the placeholders of missing files, and the last program
// removes them.
func TestProtectedTogether(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range 6 {
		tool, err := shell.New(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := sandbox.Check(sandbox.Strict); err != nil {
			t.Skip(err)
		}
		all.Go(func() {
			for range 3 {
				x := call(tool, map[string]any{"command": fmt.Sprintf("i=0; while [ $i -lt 20 ]; do echo evil > .envrc; i=$((i+1)); done 2>/dev/null; echo ok > out%d", i)})
				if x.Result.IsError {
					t.Error(x.Result.Text())
				}
			}
		})
	}
	all.Wait()
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "out") {
			t.Errorf("%s is left", e.Name())
		}
	}
	if len(entries) != 6 {
		t.Errorf("the commands wrote %d files", len(entries))
	}
}

// A place that cannot be protected keeps the command from running.
func TestUnprotectable(t *testing.T) {
	if err := sandbox.Check(sandbox.Strict); err != nil {
		t.Skip(err)
	}
	for name, prepare := range map[string]func(dir string) error{
		"symbolic link": func(dir string) error { return os.Symlink("other", filepath.Join(dir, ".git")) },
		"hard link": func(dir string) error {
			if err := os.WriteFile(filepath.Join(dir, ".envrc"), []byte("good"), 0o644); err != nil {
				return err
			}
			return os.Link(filepath.Join(dir, ".envrc"), filepath.Join(dir, "other"))
		},
	} {
		dir := t.TempDir()
		if err := prepare(dir); err != nil {
			t.Fatal(err)
		}
		tool, err := shell.New(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		x := call(tool, map[string]any{"command": "echo ran > ran"})
		if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil || !strings.Contains(x.Result.Text(), name) {
			t.Errorf("%s: %s", name, x.Result.Text())
		}
	}
}

// Commands change no repository that a .git names, and none in deep folders or node_modules.
func TestProtectedRepositories(t *testing.T) {
	files := []string{".bare/config", "a/b/c/d/e/f/g/.git/config", "node_modules/m/.git/config", "d/bare/config"}
	for _, level := range []sandbox.Level{sandbox.Strict, sandbox.Standard} {
		if err := sandbox.Check(level); err != nil {
			t.Logf("%s: not tried: %v", level, err)
			continue
		}
		for _, control := range []bool{false, true} {
			dir := filled(t, level, false)
			for name, text := range map[string]string{".git": "gitdir: ./.bare\n", "d/bare/HEAD": "x", "d/bare/objects/x": "", "d/bare/refs/x": ""} {
				at := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
					t.Fatal(err)
				}
				os.WriteFile(at, []byte(text), 0o644)
				for _, f := range files {
					os.MkdirAll(filepath.Dir(filepath.Join(dir, f)), 0o755)
					os.WriteFile(filepath.Join(dir, f), []byte("good"), 0o644)
				}
			}
			filepath.WalkDir(dir, func(p string, _ fs.DirEntry, _ error) error {
				if level == sandbox.Standard && os.Geteuid() == 0 {
					os.Lchown(p, 65534, 65534)
				}
				return nil
			})
			opts := &shell.Options{Level: level}
			if control {
				opts.Protect = []string{"-*"}
			}
			tool, err := shell.New(dir, opts)
			if err != nil {
				t.Fatal(err)
			}
			x := call(tool, map[string]any{"command": "for f in " + strings.Join(files, " ") + "; do echo evil > $f; done; echo done > open/done"})
			if _, err := os.Stat(filepath.Join(dir, "open/done")); err != nil {
				t.Fatalf("%s: the command did not run: %s", level, x.Result.Text())
			}
			for _, f := range files {
				if b, _ := os.ReadFile(filepath.Join(dir, f)); (string(b) == "good") == control {
					t.Errorf("%s: %s, unprotected %t, has %q", level, f, control, b)
				}
			}
		}
	}
}
