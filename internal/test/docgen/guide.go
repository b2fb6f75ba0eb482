package docgen

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	chapterLine = regexp.MustCompile(`(?m)^\d+\. \[[^\]]+\]\(((?:guide/)?[\w-]+\.md)\)`)
	titleLine   = regexp.MustCompile(`(?m)^# (.+)$`)
	nextLine    = regexp.MustCompile(`\n*(?:\nNext: \[[^\]]*\]\([\w./-]+\.md\))?\n*$`)
)

// Chapters returns the pages of the guide in the order of the numbered list of its index.
func Chapters(index string) []string {
	var all []string
	for _, m := range chapterLine.FindAllStringSubmatch(index, -1) {
		all = append(all, m[1])
	}
	return all
}

// Lead returns page with a last line that links to the next page, whose text is next. The path name
// is relative to the page. An empty name means no such line.
func Lead(page, name, next string) (string, error) {
	page = nextLine.ReplaceAllString(page, "\n")
	if name == "" {
		return page, nil
	}
	title := titleLine.FindStringSubmatch(next)
	if title == nil {
		return "", fmt.Errorf("%s has no title", name)
	}
	return page + fmt.Sprintf("\nNext: [%s](%s)\n", strings.TrimSpace(title[1]), name), nil
}
