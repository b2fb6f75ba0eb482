package document

import (
	"strings"
)

// readMarkdown reads headings, fenced listings, tables, and paragraphs.
func readMarkdown(o *outline, text string) {
	lines := strings.Split(clean(text), "\n")
	m := &markdown{o: o}
	i := frontMatter(o, lines)
	for ; i < len(lines); i++ {
		line := lines[i]
		if mark := fence(line); mark != "" {
			m.flush()
			end := i + 1
			for end < len(lines) && !(strings.HasPrefix(strings.TrimSpace(lines[end]), mark) &&
				strings.Trim(strings.TrimSpace(lines[end]), mark[:1]) == "") {
				end++
			}
			end = min(end, len(lines)-1)
			o.add(Block{Form: Code, Text: strings.Join(lines[i:end+1], "\n")})
			i = end
			continue
		}
		if level, title := atx(line); level > 0 {
			m.flush()
			o.heading(level, title)
			continue
		}
		if level := setext(line); level > 0 && len(m.lines) == 1 {
			title := m.lines[0]
			m.lines = nil
			o.heading(level, title)
			continue
		}
		if isRow(line) && i+1 < len(lines) && isRule(lines[i+1]) {
			m.flush()
			end := i + 2
			for end < len(lines) && isRow(lines[end]) {
				end++
			}
			b := Block{Form: Rows, Head: lines[i] + "\n" + lines[i+1], Rows: append([]string(nil), lines[i+2:end]...)}
			if len(b.Rows) == 0 {
				b = Block{Form: Code, Text: b.Head}
			}
			o.add(b)
			i = end - 1
			continue
		}
		if strings.TrimSpace(line) == "" {
			m.flush()
			continue
		}
		m.lines = append(m.lines, strings.TrimRight(line, " \t"))
	}
	m.flush()
}

type markdown struct {
	o     *outline
	lines []string // lines of the current paragraph
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
			if title, ok := strings.CutPrefix(line, "title:"); ok && o.d.Title == "" {
				o.d.Title = strings.Trim(strings.TrimSpace(title), `"'`)
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
	if len(line)-len(trimmed) > 3 || len(trimmed) < 3 || trimmed[0] != '`' && trimmed[0] != '~' {
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
	if level == 0 || level > 6 || level == len(line) || line[level] != ' ' && line[level] != '\t' {
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
