package skill

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

type loadArgs struct{ Name, File string }

func (s *Set) load(ctx context.Context, a loadArgs) (llm.ToolResult, error) {
	if f := s.folders.find(a.Name); f != nil {
		return f.load(a.File), nil
	}
	if s.db == nil {
		return missing(a.Name), nil
	}

	// Skills of folders belong to every user, so a run without a user can have those.
	scope, err := s.whose(ctx)
	if errors.Is(err, errNoScope) && len(s.folders.list) > 0 {
		return missing(a.Name), nil
	}
	if err != nil {
		return llm.ToolResult{}, err
	}
	k, err := s.db.Skill(ctx, scope, a.Name, 0)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return missing(a.Name), nil
	case err != nil:
		return llm.ToolResult{}, err
	case a.File != "":
		return llm.ErrorResult(fmt.Sprintf("The skill %s has no files; leave file out.", a.Name)), nil
	}

	text := fmt.Sprintf("%s, version %d\n\n%s", k.Name, k.Version, k.Text)
	if len(k.Tools) > 0 {
		text += "\n\nIt needs the tools: " + strings.Join(k.Tools, ", ")
	}
	if len(k.References) > 0 {
		text += "\n\nSee also the skills: " + strings.Join(k.References, ", ")
	}
	return llm.TextResult(text), nil
}

// load returns the text of a skill, or one of its files.
func (f *folder) load(file string) llm.ToolResult {
	if file == "" {
		text := f.Name + "\n\n" + f.Text
		if len(f.files) > 0 {
			text += "\n\nFiles: " + strings.Join(f.files[:min(len(f.files), 100)], ", ")
		}
		return llm.TextResult(text)
	}
	// Only files that were listed at the start: the model's name for a file never reaches the file
	// system.
	if !slices.Contains(f.files, file) {
		return llm.ErrorResult(fmt.Sprintf("The skill %s has no file %q. It has: %s",
			f.Name, file, strings.Join(f.files[:min(len(f.files), 100)], ", ")))
	}
	text, err := readFile(f.root, path.Join(f.dir, file))
	if err != nil {
		return llm.ErrorResult(fmt.Sprintf("The file %s cannot be read: it is larger than %d bytes, or gone.",
			file, maxFile))
	}
	if strings.ContainsRune(text, 0) {
		return llm.ErrorResult(fmt.Sprintf("The file %s is not text.", file))
	}
	return llm.TextResult(text)
}

func missing(name string) llm.ToolResult {
	return llm.ErrorResult(fmt.Sprintf("There is no skill %q. skill_search finds what there is.", name))
}

type searchArgs struct {
	Query string
	Limit float64
}

// searchStored finds skills in the store. A run without a user has no stored skills.
func (s *Set) searchStored(ctx context.Context, query string, limit int) ([]store.SkillHit, error) {
	if s.db == nil {
		return nil, nil
	}
	scope, err := s.whose(ctx)
	switch {
	case errors.Is(err, errNoScope) && len(s.folders.list) > 0:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return s.db.SearchSkills(ctx, scope, store.Query{Text: query, Limit: limit})
}

func (s *Set) search(ctx context.Context, a searchArgs) (llm.ToolResult, error) {
	limit := 5
	if a.Limit >= 1 {
		limit = int(min(a.Limit, 50))
	}

	hits, err := s.searchStored(ctx, a.Query, limit)
	if err != nil {
		return llm.ToolResult{}, err
	}
	found := map[string]store.Skill{}
	var stored []string
	for _, h := range hits {
		found[h.Name] = h.Skill
		stored = append(stored, h.Name)
	}
	inFolders := s.folders.search(a.Query)
	for _, name := range inFolders {
		found[name] = s.folders.find(name).Skill // the name of a folder takes precedence
	}
	ranked := store.Fuse(stored, inFolders)
	if len(ranked) == 0 {
		return llm.TextResult(fmt.Sprintf("No skill has words of %q.", a.Query)), nil
	}

	var b strings.Builder
	for _, r := range ranked[:min(limit, len(ranked))] {
		k := found[r.ID]
		fmt.Fprintf(&b, "%s: %s", k.Name, strings.Join(strings.Fields(k.Description), " "))
		if len(k.Tags) > 0 {
			fmt.Fprintf(&b, " [%s]", strings.Join(k.Tags, ", "))
		}
		if k.By != "" {
			fmt.Fprintf(&b, " (by %s)", k.By)
		}
		b.WriteByte('\n')
	}
	return llm.TextResult(strings.TrimSuffix(b.String(), "\n")), nil
}
