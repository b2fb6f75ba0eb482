package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/tooltest"
	"github.com/pawl-go/pawl/tools/file"
)

var places = []string{".git/config", ".git/hooks/post-checkout", "sub/.git/config", ".mcp.json", "tools.lock", ".vscode/tasks.json",
	".idea/workspace.xml", ".envrc", ".bashrc", ".profile", ".zshrc", ".github/workflows/ci.yml", ".gitlab-ci.yml", ".circleci/config.yml",
	"conf/agent.yaml"}

// aliases are other paths of a place: through links, folders and names.
var aliases = []struct {
	name string
	of   func(dir, place string) string
}{
	{"itself", func(_, p string) string { return p }},
	{"dots", func(_, p string) string { return "open/../" + filepath.Dir(p) + "/./" + filepath.Base(p) }},
	{"link to the folder", func(dir, p string) string {
		os.Symlink(filepath.Dir(p), filepath.Join(dir, "d"))
		return "d/" + filepath.Base(p)
	}},
	{"link to a link", func(dir, p string) string {
		os.Symlink("../"+filepath.Dir(p), filepath.Join(dir, "open/d"))
		os.Symlink("open/d", filepath.Join(dir, "e"))
		return "e/" + filepath.Base(p)
	}},
	{"link to the file", func(dir, p string) string {
		os.Symlink(p, filepath.Join(dir, "f"))
		return "f"
	}},
}

// The tools change no protected place under any of its names, also if it does not exist yet.
// Without the protection each call changes it.
func TestProtected(t *testing.T) {
	tried := 0
	for _, place := range places {
		for _, alias := range aliases {
			for _, exists := range []bool{true, false} {
				for _, control := range []bool{false, true} {
					for _, do := range []string{"write", "edit", "delete"} {
						if !exists && do != "write" || do == "delete" && alias.name == "link to the file" {
							continue // the link itself is deleted
						}
						if control && alias.name != "itself" && place != places[0] {
							continue // a write takes its time
						}
						dir := t.TempDir()
						at := filepath.Join(dir, place)
						tooltest.Must(t, os.MkdirAll(filepath.Dir(at), 0o755))
						tooltest.Must(t, os.Mkdir(filepath.Join(dir, "open"), 0o755))
						if exists {
							tooltest.Must(t, os.WriteFile(at, []byte("good"), 0o644))
						}
						opts := &file.Options{Protect: []string{filepath.Join(dir, "conf/agent.yaml")}}
						if control {
							opts.Protect = []string{"-*"}
						}
						set, err := file.New(dir, opts)
						tooltest.Must(t, err)
						tool := map[string]*pawl.Tool{"write": set.Write, "edit": set.Edit, "delete": set.Delete}[do]
						args := fmt.Sprintf(`{"path":%q,"content":"evil"}`, alias.of(dir, place))
						switch do {
						case "edit":
							args = strings.Replace(args, `"content":"evil"`, `"edits":[{"old":"good","new":"evil"}]`, 1)
						case "delete":
							args = strings.Replace(args, `,"content":"evil"`, "", 1)
						}
						said := tooltest.Call(t, tool, args)
						set.Close()
						b, _ := os.ReadFile(at)
						want := map[bool]string{true: "good"}[exists]
						changed := string(b) != want
						if changed != control || !control && !strings.Contains(said, "protected") {
							t.Errorf("%s %s by %s, existing %t, unprotected %t: changed %t: %s", do, place, alias.name, exists, control, changed, said)
						}
						tried++
					}
				}
			}
		}
	}
	t.Logf("%d calls", tried)
}

// Names that some file systems take for a protected one are refused on all of them, and similar
// names are not.
func TestProtectedNames(t *testing.T) {
	set, err := file.New(t.TempDir(), &file.Options{Protect: []string{"Keys/private", "-.github/actions"}})
	tooltest.Must(t, err)
	defer set.Close()
	for name, protected := range map[string]bool{
		".GIT/config": true, ".Git/x": true, ".git /x": true, ".git./x": true, "git~1/x": true, ".GITHUB/Workflows/x.yml": true,
		".vs\u200ccode/x": true, ".ba\u017fhrc": true, ".envrc::$DATA": true, "a/b/.git/c": true, "a/keys/PRIVATE": true, "keys/private/x": true,
		".gitignore": false, "git/x": false, "x.git": false, ".github/x.md": false, ".github/actions/x": false, "private": false, "environment": false,
	} {
		said := tooltest.Call(t, set.Write, `{"path":`+quote(name)+`,"content":"x"}`)
		if refused := strings.HasPrefix(said, "error: "); refused != protected {
			t.Errorf("%s: %s", name, said)
		}
	}
	for _, name := range []string{"a\x1b[8mb", "note\u202etxt.exe", "a\nb", "a\u2028b", "a\u009bb"} {
		said := tooltest.Call(t, set.Write, `{"path":`+quote(name)+`,"content":"x"}`)
		if !strings.Contains(said, "characters in it that are not shown") {
			t.Errorf("%q: %s", name, said)
		}
	}
	for _, bad := range []string{"", ".", "../x", "-.gti"} {
		_, err := file.New(t.TempDir(), &file.Options{Protect: []string{bad}})
		if err == nil || !strings.Contains(err.Error(), "protect: ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// What a .git names is protected like a .git, and so are bare repositories at any depth. The
// worktrees of a bare repository are not.
func TestProtectedRepositories(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{".git": "gitdir: ./store\n", "store/commondir": "../common\n", "common/x": "",
		"a/b/c/d/e/f/g/bare/HEAD": "", "a/b/c/d/e/f/g/bare/objects/x": "", "a/b/c/d/e/f/g/bare/refs/x": "", "a/b/c/d/e/f/g/bare/tree/.git": "",
		"half/HEAD": ""} {
		tooltest.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		tooltest.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	linked := t.TempDir()
	tooltest.Must(t, os.Symlink("real", filepath.Join(linked, ".git")))
	for _, control := range []string{"", "-.git"} {
		for name, protected := range map[string]bool{"store/config": true, "common/config": true, "a/b/c/d/e/f/g/bare/hooks/x": true,
			"a/b/c/d/e/f/g/bare/tree/x": false, "half/config": false, "real/config": true} {
			at := dir
			if name == "real/config" {
				at = linked
			}
			set, err := file.New(at, &file.Options{Protect: strings.Fields(control)})
			tooltest.Must(t, err)
			said := tooltest.Call(t, set.Write, `{"path":`+quote(name)+`,"content":"x"}`)
			set.Close()
			if refused := strings.Contains(said, "is protected"); refused != (protected && control == "") {
				t.Errorf("%s with %q: %s", name, control, said)
			}
			os.Remove(filepath.Join(at, name))
		}
	}
}
