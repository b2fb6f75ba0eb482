package docgen

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The editing rules of the documents. A page of the guide is short and has a program; sentences are
// short; one idea has one term.
const (
	maxGuideWords   = 900
	meanSentence    = 13.0 // words
	maxLongSentence = 0.01 // the share of sentences with more than 35 words
)

// synonyms are words for which the glossary has a term. Pages of docs/from may use the words of the
// system that they compare.
var synonyms = []struct{ pattern, term string }{
	{`tool use\b`, "call"}, {`sub-agents?`, "subagent"},
	{`system messages?`, "system prompt"}, {`toolkits?`, "toolset"}, {`human-in-the-loop`, "human in the loop"},
	{`time-outs?`, "timeout"}, {`checkpointers?`, "engine"}, {`tool invocations?`, "call"},
	{`rate-limits?`, "rate limit"}, {`data base`, "database"},
}

var (
	listItem    = regexp.MustCompile(`\n(?:- |\d+\. )`)
	codePart    = regexp.MustCompile("`[^`]*`|<!--.*?-->|\\]\\([^)]*\\)")
	sentenceEnd = regexp.MustCompile(`[.:;!?](\s|$)`)
	references  = regexp.MustCompile(`^(CHANGELOG|docs/(yaml|packages|migration|\w+-(wire|quirks)))\.md$`)
	generated   = regexp.MustCompile(`^<!-- Made (from|by) `)
)

// plain returns the prose of a page in paragraphs. Tables, code and generated parts have none.
func plain(text string) []string {
	if generated.MatchString(text) {
		return nil
	}
	var all []string
	for _, p := range strings.Split(strings.Join(prose(text), "\n"), "\n\n") {
		for _, item := range listItem.Split("\n"+p, -1) {
			if item = strings.TrimSpace(item); item != "" && !strings.HasPrefix(item, "|") && !strings.HasPrefix(item, "#") &&
				!strings.HasPrefix(item, "<!--") {
				all = append(all, item)
			}
		}
	}
	return all
}

// check returns the faults of a page.
func check(name, text string) []string {
	var wrong []string
	if strings.HasPrefix(name, "docs/guide/") {
		if n := len(strings.Fields(strings.Join(prose(text), " "))); n > maxGuideWords {
			wrong = append(wrong, fmt.Sprintf("%s has %d words of prose, at most %d: move details to a page in depth", name, n, maxGuideWords))
		}
		if !strings.Contains(text, "<!-- program: ") {
			wrong = append(wrong, name+" has no program: show one from examples/guide")
		}
		for _, part := range []string{"## In Go", "## More"} {
			if !strings.Contains(text, "\n"+part+"\n") {
				wrong = append(wrong, fmt.Sprintf("%s has no heading %q", name, part))
			}
		}
	}
	if strings.HasPrefix(name, "docs/from/") && (!strings.Contains(text, "<!-- code: ") || !strings.Contains(text, "## What pawl does not have")) {
		wrong = append(wrong, name+" has no code that compiles, or does not say what pawl does not have")
	}
	if !strings.HasPrefix(name, "docs/from/") && !slices.Contains([]string{"docs/glossary.md", "docs/migration.md", "CHANGELOG.md"}, name) {
		all := codePart.ReplaceAllString(strings.Join(plain(text), "\n"), "_")
		for _, s := range synonyms {
			if m := regexp.MustCompile(`(?i)\b` + s.pattern).FindString(all); m != "" {
				wrong = append(wrong, fmt.Sprintf("%s: %q: the glossary's term is %q", name, m, s.term))
			}
		}
	}
	return wrong
}

// lengths returns the words of each sentence.
func lengths(paragraphs []string) []int {
	var all []int
	for _, p := range paragraphs {
		for _, s := range sentenceEnd.Split(codePart.ReplaceAllString(p, "_"), -1) {
			if n := len(strings.Fields(s)); n > 1 {
				all = append(all, n)
			}
		}
	}
	return all
}

// TestEditing applies the rules, and prints the figures of the documents.
func TestEditing(t *testing.T) {
	words, total, long, sentences := 0, 0, 0, 0
	for _, name := range pages(t) {
		text, err := read(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range check(name, text) {
			t.Error(w)
		}
		paragraphs := plain(text)
		if !generated.MatchString(text) && !references.MatchString(name) {
			words += len(strings.Fields(strings.Join(prose(text), " ")))
		}
		for _, n := range lengths(paragraphs) {
			total, sentences = total+n, sentences+1
			if n > 35 {
				long++
			}
		}
	}
	mean, share := float64(total)/float64(sentences), float64(long)/float64(sentences)
	t.Logf("%d words without code, %d sentences, %.1f words each, %.1f %% longer than 35", words, sentences, mean, 100*share)
	if mean > meanSentence || share > maxLongSentence {
		t.Errorf("want at most %.1f words a sentence, and %.0f %% long sentences", meanSentence, 100*maxLongSentence)
	}
}

// The negative control: each of these pages breaks a rule.
func TestEditingRefuses(t *testing.T) {
	const good = "# A\n\n## In Go\n\n<!-- program: a.go -->\n```go\n```\n\n## More\n\nText.\n"
	for _, tt := range []struct{ name, text, want string }{
		{"docs/guide/a.md", good, ""},
		{"docs/guide/a.md", good + strings.Repeat("word ", maxGuideWords), "words of prose"},
		{"docs/guide/a.md", strings.Replace(good, "program", "code", 1), "no program"},
		{"docs/guide/a.md", strings.Replace(good, "## More", "## Mor", 1), `no heading "## More"`},
		{"docs/from/a.md", "# A\n", "no code"},
		{"docs/a.md", "# A\n\nA sub-agent works.\n", "subagent"},
		{"docs/a.md", "# A\n\n`sub-agent`\n", ""},
		{"docs/from/a.md", "# A\n\n<!-- code: a.go -->\nA sub-agent.\n\n## What pawl does not have\n", ""},
	} {
		got := strings.Join(check(tt.name, tt.text), "\n")
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q in\n%s", tt.name, got, tt.want, tt.text)
		}
	}
	if n := lengths([]string{"One two three. Four `five` six, seven: eight nine"}); !slices.Equal(n, []int{3, 4, 2}) {
		t.Errorf("got sentences of %v words", n)
	}
}
