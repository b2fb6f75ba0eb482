package document

import (
	"slices"
	"strings"
)

// readMarkdown reads headings, fenced listings, tables, and paragraphs.
func readMarkdown(o *outline, text string) {
	lines := strings.Split(clean(text), "\n")
	m := &markdown{o: o}
	for i := frontMatter(o, lines); i < len(lines); {
		i += m.read(lines[i:])
	}
	m.flush()
}

type markdown struct {
	o     *outline
	lines []string // lines of the current paragraph
}

// read reads the block or the line of a paragraph with which lines begin, and returns its number of
// lines.
func (m *markdown) read(lines []string) int {
	line := lines[0]
	if mark := fence(line); mark != "" {
		return m.listing(mark, lines)
	}
	if level, title := atx(line); level > 0 {
		m.flush()
		m.o.heading(level, title)
		return 1
	}
	// Below several lines, or none, such a line is a rule or the end of a list.
	if level := setext(line); level > 0 && len(m.lines) == 1 {
		title := m.lines[0]
		m.lines = nil
		m.o.heading(level, title)
		return 1
	}
	if len(lines) > 1 && isRow(line) && isRule(lines[1]) {
		return m.table(lines)
	}

	if strings.TrimSpace(line) == "" {
		m.flush()
	} else {
		m.lines = append(m.lines, strings.TrimRight(line, " \t"))
	}
	return 1
}

// listing adds the listing that begins with the first line. Without a closing mark it has all
// lines.
func (m *markdown) listing(mark string, lines []string) int {
	m.flush()
	end := 1
	for end < len(lines) && !closes(lines[end], mark) {
		end++
	}
	end = min(end+1, len(lines))
	m.o.add(Block{Form: Code, Text: strings.Join(lines[:end], "\n")})
	return end
}

// closes reports whether a line ends the listing that began with mark.
func closes(line, mark string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, mark) && strings.Trim(line, mark[:1]) == ""
}

// table adds the table whose head is the first two lines.
func (m *markdown) table(lines []string) int {
	m.flush()
	end := 2
	for end < len(lines) && isRow(lines[end]) {
		end++
	}
	b := Block{Form: Rows, Head: lines[0] + "\n" + lines[1], Rows: slices.Clone(lines[2:end])}
	if len(b.Rows) == 0 {
		b = Block{Form: Code, Text: b.Head}
	}
	m.o.add(b)
	return end
}

func (m *markdown) flush() {
	if len(m.lines) > 0 {
		m.o.prose(strings.Join(m.lines, "\n"))
	}
	m.lines = nil
}

// frontMatter reads the text between two lines of --- at the beginning and returns the line at
// which the content begins.
func frontMatter(o *outline, lines []string) int {
	if len(lines) == 0 || strings.TrimRight(lines[0], " ") != "---" {
		return 0
	}
	for i := 1; i < min(len(lines), 100); i++ {
		if strings.TrimRight(lines[i], " ") != "---" {
			continue
		}
		for _, line := range lines[1:i] {
			if title, ok := strings.CutPrefix(line, "title:"); ok && o.doc.Title == "" {
				o.doc.Title = strings.Trim(strings.TrimSpace(title), `"'`)
			}
		}
		o.add(Block{Form: Code, Text: strings.Join(lines[1:i], "\n")})
		return i + 1
	}
	return 0
}

// fence returns the marks that begin a listing: three or more ` or ~, indented by at most three
// spaces.
func fence(line string) string {
	trimmed := strings.TrimLeft(line, " ")
	if len(line)-len(trimmed) > 3 || len(trimmed) < 3 {
		return ""
	}
	if trimmed[0] != '`' && trimmed[0] != '~' {
		return ""
	}

	n := 0
	for n < len(trimmed) && trimmed[n] == trimmed[0] {
		n++
	}
	if n < 3 || trimmed[0] == '`' && strings.Contains(trimmed[n:], "`") {
		return ""
	}
	return trimmed[:n]
}

// atx parses "## Title". Level 0 means that the line is not a heading.
func atx(line string) (level int, title string) {
	line = strings.TrimRight(line, " \t\r\n")
	for level < len(line) && line[level] == '#' {
		level++
	}
	if level == 0 || level > 6 || level == len(line) {
		return 0, ""
	}
	if line[level] != ' ' && line[level] != '\t' {
		return 0, ""
	}

	title = strings.TrimSpace(line[level:])
	if cut := strings.TrimRight(title, "#"); cut != title && strings.HasSuffix(cut, " ") {
		title = strings.TrimSpace(cut)
	}
	if title == "" {
		return 0, ""
	}
	return level, title
}

// setext parses the line below a heading.
func setext(line string) int {
	line = strings.TrimSpace(line)
	switch {
	case len(line) >= 2 && strings.Trim(line, "=") == "":
		return 1
	case len(line) >= 2 && strings.Trim(line, "-") == "":
		return 2
	}
	return 0
}

func isRow(line string) bool { return strings.Contains(line, "|") && strings.TrimSpace(line) != "" }

// isRule reports whether line is the line below the head of a table.
func isRule(line string) bool {
	line = strings.TrimSpace(line)
	return strings.Contains(line, "|") && strings.Contains(line, "-") && strings.Trim(line, "|-: \t") == ""
}
