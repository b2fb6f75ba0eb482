package provider

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/provider/catalog"
)

// modelName matches names of models: with a provider before the colon, and alone for the vendors
// whose names have a form of their own.
var modelName = regexp.MustCompile(`\b(openai|openai-chat|anthropic|gemini|groq|mistral|deepseek|xai|openrouter):([a-z0-9][a-z0-9./-]*[a-z0-9])|` +
	`\b(gpt-[0-9][a-z0-9.-]*[a-z0-9]|claude-(?:opus|sonnet|haiku|fable|[0-9])[a-z0-9.-]*[0-9]|gemini-[0-9][a-z0-9.-]*[a-z0-9]|grok-[0-9][0-9.]*|o[134]-(?:mini|pro))\b`)

// factPages state facts about certain models, or about the names of models, in which those names
// are the subject and not examples.
var factPages = []string{
	"CHANGELOG.md",
	"docs/internals/", // the history of the project
	"docs/openai-quirks.md", "docs/anthropic-quirks.md", "docs/gemini-quirks.md",
	"docs/openai-wire.md", "docs/anthropic-wire.md", "docs/gemini-wire.md",
	"docs/performance.md", // what was measured
}

// otherNames are names in examples that are no models of a provider: models of the reader's own,
// made-up names of tests, and names that show a mistake.
var otherNames = regexp.MustCompile(`^(openai|openai-chat|anthropic|gemini|groq|mistral|deepseek|xai|openrouter):` +
	`(my-.*|your-.*|sim|m|x|n|a|b|big|small|mine|own|other|none|judge|qwen3|text-embedding-.*|omni-moderation-.*|gemini-embedding-.*|script)$`)

// named returns the models that the texts for users name, with the files.
func named(t *testing.T) map[string][]string {
	t.Helper()
	const root = ".."
	all := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		if d.IsDir() {
			if base := d.Name(); base == "node_modules" || strings.HasPrefix(base, ".") && base != ".." || base == "site" {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || !forUsers(name) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range modelName.FindAllStringSubmatch(visible(name, string(text)), -1) {
			model := m[0]
			if m[1] == "" {
				model = Suggest(m[3])
			}
			if !otherNames.MatchString(model) && !slices.Contains(all[model], name) {
				all[model] = append(all[model], name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// forUsers reports whether users read the file: documents, examples, templates, help texts, and Go
// files of the packages, whose comments and messages they see.
func forUsers(name string) bool {
	for _, page := range factPages {
		if strings.HasPrefix(name, page) {
			return false
		}
	}
	switch ext := filepath.Ext(name); {
	case strings.Contains(name, "/testdata/"), strings.HasPrefix(name, "internal/test/"), strings.HasPrefix(name, "provider/catalog/"):
		return false
	case ext == ".md", ext == ".yaml", ext == ".svg", strings.HasSuffix(name, "help.txt"), strings.HasSuffix(name, "flags.txt"), strings.HasSuffix(name, "keys.txt"):
		return true
	case ext == ".go":
		return !strings.HasSuffix(name, "_test.go") || strings.Contains(name, "example") || strings.HasPrefix(name, "examples/")
	}
	return false
}

// visible returns the part of a file that users see. The code of adapters and of their simulators
// names models as facts; of their files the package comments count.
func visible(name, text string) string {
	ofWires := strings.HasPrefix(name, "provider/") || strings.HasPrefix(name, "pawltest/")
	if !ofWires || filepath.Ext(name) != ".go" || strings.Contains(name, "example") {
		return text
	}
	head, _, _ := strings.Cut("\n"+text, "\npackage ")
	return head
}

// Each model that a text for users names is the example of its provider, or is listed here with its
// reason, and none of them ends within 60 days. The page of providers has the table.
func TestExampleModels(t *testing.T) {
	soak.Sequential(t)
	examples := map[string]bool{}
	for _, p := range All() {
		examples[p.Name+":"+p.Example] = true
	}
	reasons := map[string]string{
		"anthropic:claude-opus-5-5":    "the strongest model, where a text compares it with the usual one",
		"openai:gpt-6-luna":            "a small model, where a text compares it with the usual one",
		"openai-chat:gpt-6-luna":       "the same, over Chat Completions",
		"openai:gpt-6.1-sol":           "a large model, whose replies take long",
		"gemini:gemini-3.5-flash-lite": "a small model, where a document names none",
	}

	const soon = 60 * 24 * time.Hour
	var table strings.Builder
	table.WriteString("| model in an example | announced end |\n|---|---|\n")
	all := named(t)
	for _, model := range slices.Sorted(maps.Keys(all)) {
		if !examples[model] && reasons[model] == "" {
			t.Errorf("%s in %q is not an example model: name the one of its provider in examples.go, or add it with a reason", model, all[model])
		}
		m, _ := catalog.Default().Lookup(model)
		fmt.Fprintf(&table, "| `%s` | %s |\n", model, cmp.Or(m.Ends, "none"))
		if end, err := time.Parse(time.DateOnly, m.Ends); err == nil && time.Until(end) < soon {
			t.Errorf("%s ends on %s: choose another in examples.go, and replace it in %q", model, m.Ends, all[model])
		}
	}
	for model := range reasons {
		if all[model] == nil {
			t.Errorf("%s has a reason, and no text names it", model)
		}
	}
	wiretest.Part(t, "providers.md", "examples", table.String())
}
