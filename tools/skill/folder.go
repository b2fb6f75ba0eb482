package skill

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-go/pawl/store"
)

const (
	maxFile   = 64 << 10
	maxFolder = 1000 // limit for the skills of a folder, and for the other files of a skill
)

// folder is a skill stored in a folder.
type folder struct {
	store.Skill
	root  *os.Root // the parent folder of all skills
	dir   string   // name within root
	files []string
	words map[string]int // number of occurrences of each word that a search can match
}

type folders struct {
	list  []folder
	roots []*os.Root
}

func (f *folders) close() error {
	var errs []error
	for _, r := range f.roots {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

func (f *folders) find(name string) *folder {
	if i := slices.IndexFunc(f.list, func(k folder) bool { return k.Name == name }); i >= 0 {
		return &f.list[i]
	}
	return nil
}

// Read returns the skills of folders.
func Read(dirs []string) ([]store.Skill, error) {
	f, err := openFolders(dirs)
	list := make([]store.Skill, len(f.list))
	for i, k := range f.list {
		list[i] = k.Skill
	}
	return list, errors.Join(err, f.close())
}

func openFolders(dirs []string) (folders, error) {
	var f folders
	for _, dir := range dirs {
		if err := f.open(dir); err != nil {
			return folders{}, errors.Join(err, f.close())
		}
	}
	return f, nil
}

func (f *folders) open(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	f.roots = append(f.roots, root)
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	if len(entries) > maxFolder {
		return fmt.Errorf("%s has %d entries; %d skills are the most", dir, len(entries), maxFolder)
	}
	for _, e := range entries {
		text, err := readFile(root, path.Join(e.Name(), "SKILL.md"))
		if errors.Is(err, fs.ErrNotExist) || err != nil && !e.IsDir() {
			continue // not a skill
		}
		if err != nil {
			return fmt.Errorf("%s/%s/SKILL.md: %w", dir, e.Name(), err)
		}
		k, err := parse(text)
		if err != nil {
			return fmt.Errorf("%s/%s/SKILL.md: %w", dir, e.Name(), err)
		}
		k.Name = cmp.Or(k.Name, e.Name())
		// The first folder wins, so that a program can replace a skill by an earlier folder.
		if f.find(k.Name) == nil {
			f.list = append(f.list, folder{Skill: k, root: root, dir: e.Name(), files: beside(root, e.Name()),
				words: count(k)})
		}
	}
	slices.SortFunc(f.list, func(a, b folder) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// parse parses a SKILL.md: YAML front matter between lines of three dashes, and the text.
func parse(text string) (store.Skill, error) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\uFEFF"), "\r\n", "\n")
	rest, ok := strings.CutPrefix(text, "---\n")
	head, body, closed := strings.Cut(rest, "\n---\n")
	if !ok || !closed {
		return store.Skill{}, errors.New("front matter is missing: want a line ---, then name: " +
			"and description:, then a line ---")
	}
	var h struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
		Tags        []string
	}
	if err := yaml.Unmarshal([]byte(head), &h); err != nil {
		return store.Skill{}, fmt.Errorf("the front matter is not YAML: %w", err)
	}
	if strings.TrimSpace(h.Description) == "" {
		return store.Skill{}, errors.New("the front matter has no description, by which a model chooses the skill")
	}
	return store.Skill{Name: strings.TrimSpace(h.Name), Description: strings.TrimSpace(h.Description), Tags: h.Tags,
		Text: strings.TrimSpace(body), Version: 1}, nil
}

// beside lists the other files of a skill.
func beside(root *os.Root, dir string) []string {
	var files []string
	fs.WalkDir(root.FS(), dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || len(files) == maxFolder {
			return fs.SkipAll
		}
		if d.Type().IsRegular() && name != path.Join(dir, "SKILL.md") {
			files = append(files, strings.TrimPrefix(name, dir+"/"))
		}
		return nil
	})
	return files
}

func readFile(root *os.Root, name string) (string, error) {
	info, err := root.Stat(name)
	if err != nil {
		return "", err
	}
	// Opening a pipe would block until another program writes to it.
	if !info.Mode().IsRegular() {
		return "", errors.New("it is no file")
	}
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return "", err
	}
	if len(b) > maxFile {
		return "", fmt.Errorf("it has more than %d bytes", maxFile)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), nil
}

// split returns the words of text in lower case, without a final s.
func split(text string) []string {
	list := strings.FieldsFunc(strings.ToLower(text),
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for i, w := range list {
		if len(w) > 3 {
			list[i] = strings.TrimSuffix(w, "s")
		}
	}
	return list
}

func count(k store.Skill) map[string]int {
	words := map[string]int{}
	for _, w := range split(k.Text) {
		words[w] = 1
	}
	for _, w := range split(k.Description + " " + strings.Join(k.Tags, " ")) {
		words[w] = 3
	}
	for _, w := range split(k.Name) {
		words[w] = 5
	}
	return words
}

// search ranks the folders by the words of the query that they contain.
func (f *folders) search(query string) []string {
	scores := map[string]int{}
	var names []string
	for _, k := range f.list {
		for _, w := range split(query) {
			scores[k.Name] += k.words[w]
		}
		if scores[k.Name] > 0 {
			names = append(names, k.Name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return scores[b] - scores[a] })
	return names
}
