// Package running runs the trials of a suite, each in a world of its own.
//
//	case, variant ─▶ World (folder, database, fakes) ─▶ agent ─▶ durable run ─▶ trial.Record
//
// Nothing leaks: Leaks names the tools of an agent that could change something outside of a world.
package running

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"unicode/utf8"

	"github.com/pawl-go/pawl/eval/internal/suite"
	"github.com/pawl-go/pawl/eval/internal/trial"
	"github.com/pawl-go/pawl/llm"
)

// World is the surroundings of one trial. Close it.
type World struct {
	// Root is the folder that the agent works on.
	Root string

	// DB is the database of the agent.
	DB string

	dir   string
	where *suite.Where

	mu     sync.Mutex
	used   map[*suite.FakeLine]int
	misses []string
}

// NewWorld makes the world of a case.
func NewWorld(where *suite.Where) (*World, error) {
	dir, err := os.MkdirTemp("", "pawl-eval-")
	if err != nil {
		return nil, err
	}
	// Tools compare real paths, and the temporary folder may be behind a link.
	dir, err = filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	w := &World{
		Root:  filepath.Join(dir, "root"),
		DB:    filepath.Join(dir, "state", "pawl.db"),
		dir:   dir,
		where: where,
		used:  map[*suite.FakeLine]int{},
	}
	if err := w.fill(); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// fill copies the files and the database.
func (w *World) fill() error {
	for _, dir := range []string{w.Root, filepath.Dir(w.DB)} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	if from := w.where.Files; from != "" {
		if err := os.CopyFS(w.Root, os.DirFS(from)); err != nil {
			return fmt.Errorf("the files of the world: %w", err)
		}
	}
	if w.where.DB == "" {
		return nil
	}
	content, err := os.ReadFile(w.where.DB)
	if err == nil {
		err = os.WriteFile(w.DB, content, 0o600)
	}
	if err != nil {
		return fmt.Errorf("the database of the world: %w", err)
	}
	return nil
}

// Close removes the world.
func (w *World) Close() { os.RemoveAll(w.dir) }

// mostKept is the longest text that a record keeps.
const mostKept = 64 << 10

// Files returns the files of the root.
func (w *World) Files() (map[string]trial.File, error) {
	all := map[string]trial.File{}
	root := os.DirFS(w.Root)
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		f, err := fileOf(root, name)
		all[name] = f
		return err
	})
	return all, err
}

// fileOf reads a file into what a record keeps of it.
func fileOf(root fs.FS, name string) (f trial.File, err error) {
	content, err := root.Open(name)
	if err != nil {
		return f, err
	}
	defer content.Close()

	sum := sha256.New()
	head, err := io.ReadAll(io.LimitReader(content, mostKept+1))
	sum.Write(head)
	if err == nil {
		_, err = io.Copy(sum, content)
	}
	f.SHA256 = hex.EncodeToString(sum.Sum(nil))
	if len(head) <= mostKept && utf8.Valid(head) {
		text := string(head)
		f.Text = &text
	}
	return f, err
}

// Misses returns the calls of faked tools that no line answers.
func (w *World) Misses() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.misses
}

// answer returns the result of a call of a faked tool: of the first line that fits, and is not used
// up. What fits no line gets an error result, which is recorded.
func (w *World) answer(call llm.ToolCall) llm.ToolResult {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.where.Fakes[call.Name] {
		isUsedUp := line.Times > 0 && w.used[line] >= line.Times
		if isUsedUp || line.Fits != nil && !line.Fits.Fits(call.Args) {
			continue
		}
		w.used[line]++
		if line.Error != "" {
			return llm.ErrorResult(line.Error)
		}
		return llm.TextResult(textOf(line.Result))
	}
	w.misses = append(w.misses, call.Name+string(call.Args))
	return llm.ErrorResult(fmt.Sprintf("fake_miss: no line of the world answers this call of %s", call.Name))
}

// textOf returns a JSON text as its text, and other JSON unchanged.
func textOf(value []byte) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// errWorld marks an error of making or reading a world.
var errWorld = errors.New("the world of the trial")
