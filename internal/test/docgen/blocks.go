package docgen

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Block is a block of code in a page.
type Block struct {
	Line int // of its fence, from 1
	// Class is the first word after the fence, which selects the syntax colours. Empty means none.
	Class  string
	Name   string // the second word; empty means none
	Marked bool   // a line <!-- code: … --> is above it, so that Fill writes it
	Text   string // the text between the fences
}

var (
	fenceLine = regexp.MustCompile("^( {0,3})(`{3,}|~{3,})\\s*([^`]*)$")
	listLine  = regexp.MustCompile(`^\s*([-*+]|\d+[.)])\s`)
)

// Blocks returns the blocks of code of a page. Code that is only indented is a block without a
// class.
func Blocks(page string) ([]Block, error) {
	var (
		all    []Block
		open   string // the open fence; "" means none
		begun  int
		margin string
		list   bool // the paragraph belongs to a list, where more indentation is no code
		before = "" // the previous line
		lines  = strings.Split(page, "\n")
		last   *Block // the indented block of the previous line
	)
	for i, l := range lines {
		if m := fenceLine.FindStringSubmatch(l); open == "" && m != nil {
			words := strings.Fields(m[3])
			b := Block{Line: i + 1, Marked: markerLine.MatchString(before)}
			if len(words) > 0 {
				b.Class = words[0]
			}
			if len(words) > 1 {
				b.Name = words[1]
			}
			all = append(all, b)
			open, begun, margin, last = m[2], i+1, m[1], nil
		} else if open != "" && m != nil && m[3] == "" && strings.HasPrefix(m[2], open) {
			open = ""
		} else if open != "" {
			all[len(all)-1].Text += strings.TrimPrefix(l, margin) + "\n"
		} else if code := strings.HasPrefix(l, "    ") && strings.TrimSpace(l) != ""; code && last != nil {
			last.Text += l[4:] + "\n"
		} else if code && !list && strings.TrimSpace(before) == "" {
			all = append(all, Block{Line: i + 1, Text: l[4:] + "\n"})
			last = &all[len(all)-1]
		} else if strings.TrimSpace(l) != "" {
			list = listLine.MatchString(l) || list && strings.HasPrefix(l, " ")
			last = nil
		}
		before = l
	}
	if open != "" {
		return nil, fmt.Errorf("line %d: the block of code is not closed", begun)
	}
	return all, nil
}

// Link is a link from a page to another place in the project.
type Link struct {
	Line   int
	Path   string // empty means the page itself
	Anchor string // empty means none
}

var (
	linkText = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	codeSpan = regexp.MustCompile("`[^`]*`")
	heading  = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
	idText   = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
	notKept  = regexp.MustCompile(`[^\p{L}\p{N}\p{M}_\- ]`)
)

// Links returns the links of a page that do not lead out of the project. Code has no links.
func Links(page string) []Link {
	var all []Link
	for i, l := range prose(page) {
		for _, m := range linkText.FindAllStringSubmatch(codeSpan.ReplaceAllStringFunc(l, blank), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			all = append(all, Link{Line: i + 1, Path: path, Anchor: anchor})
		}
	}
	return all
}

// blank is as long as s, without what could be a link.
func blank(s string) string { return strings.Repeat("x", len(s)) }

// Anchors returns the names that links may have after the #: the headings of a page, as GitHub
// writes them, and the ids in the page.
func Anchors(page string) []string {
	var all []string
	for _, l := range prose(page) {
		for _, m := range idText.FindAllStringSubmatch(l, -1) {
			all = append(all, m[1])
		}
		m := heading.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		text := linkOf.ReplaceAllString(m[1], "$1")
		name := strings.ReplaceAll(notKept.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
		for n, once := 1, name; slices.Contains(all, name); n++ {
			name = fmt.Sprintf("%s-%d", once, n)
		}
		all = append(all, name)
	}
	return all
}

var linkOf = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// prose returns the lines of a page. The lines of fenced code are empty.
func prose(page string) []string {
	lines := strings.Split(page, "\n")
	open := ""
	for i, l := range lines {
		m := fenceLine.FindStringSubmatch(l)
		inside := open != ""
		switch {
		case !inside && m != nil:
			open, inside = m[2], true
		case inside && m != nil && m[3] == "" && strings.HasPrefix(m[2], open):
			open = ""
		}
		if inside {
			lines[i] = ""
		}
	}
	return lines
}
