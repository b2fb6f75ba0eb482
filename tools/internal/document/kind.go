package document

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/pawl-go/pawl/tools/internal/webpage"
)

// The supported formats, as media types.
const (
	kindText     = "text/plain"
	kindMarkdown = "text/markdown"
	kindHTML     = "text/html"
	kindCSV      = "text/csv"
	kindTSV      = "text/tab-separated-values"
	kindJSON     = "application/json"
	kindJSONL    = "application/x-ndjson"
	kindPDF      = "application/pdf"
	kindDOCX     = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
)

// encryptedPackage is the name of a stream in UTF-16, by which an encrypted file is recognized.
var encryptedPackage = []byte("E\x00n\x00c\x00r\x00y\x00p\x00t\x00e\x00d\x00P\x00a\x00c\x00k\x00a\x00g\x00e\x00")

// kindOf determines the format of a file. For text formats it also returns the content as UTF-8.
func (d *Document) kindOf(name string, data []byte) (kind, text string, err error) {
	head := data[:min(len(data), 1024)]
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return "", "", errors.New("it is empty")
	// Readers of PDF accept other bytes before the mark.
	case bytes.Contains(head, []byte("%PDF-")):
		return kindPDF, "", nil
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return kindDOCX, "", nil
	case bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return "", "", errors.New("it is an empty archive")
	case bytes.HasPrefix(head, []byte("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1")):
		if bytes.Contains(data, encryptedPackage) {
			return "", "", errors.New("it is an encrypted Office file; take the password off")
		}
		return "", "", errors.New("it is an Office file of the old form; save it as DOCX")
	case binary(head):
		found := strings.TrimSuffix(http.DetectContentType(data), "; charset=utf-8")
		return "", "", fmt.Errorf("it is %s, and no document that can be read; there are text, Markdown, HTML, CSV, JSON, "+
			"PDF and DOCX", found)
	}
	text = webpage.Decode(data, "")
	return textKind(ending(name), text), text, nil
}

// named maps file name extensions to formats.
var named = map[string]string{
	".json":   kindJSON,
	".jsonl":  kindJSONL,
	".ndjson": kindJSONL,
	".csv":    kindCSV,
	".tsv":    kindTSV,
	".html":   kindHTML,
	".htm":    kindHTML,
	".pdf":    kindPDF,
	".docx":   kindDOCX,
}

// misnamed records a note if the name indicates another format than the content.
func (d *Document) misnamed(name string) {
	want := named[ending(name)]
	if want == "" || want == d.Kind || siblings[want] == d.Kind {
		return
	}
	d.note("its name ends in %s, but it is read as %s", ending(name), d.Kind)
}

// siblings are formats whose names are used for each other.
var siblings = map[string]string{
	kindJSON:  kindJSONL,
	kindJSONL: kindJSON,
	kindCSV:   kindTSV,
	kindTSV:   kindCSV,
}

// ending returns the extension of a name, or of the path of an address.
func ending(name string) string {
	if strings.Contains(name, "://") {
		name, _, _ = strings.Cut(name, "?")
	}
	return strings.ToLower(path.Ext(name))
}

// binary reports whether head is not text in any charset that is detected. UTF-16 is text if it is
// marked.
func binary(head []byte) bool {
	if bytes.HasPrefix(head, []byte("\xFE\xFF")) || bytes.HasPrefix(head, []byte("\xFF\xFE")) {
		return false
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return true
	}
	kind := http.DetectContentType(head)
	return !strings.HasPrefix(kind, "text/") && kind != "application/postscript"
}

// textKind chooses between the text formats.
func textKind(ending, text string) string {
	trimmed := strings.TrimSpace(text)
	switch {
	case isPage(ending, trimmed):
		return kindHTML
	// The content decides before the name: a .txt file may be JSON.
	case (trimmed[0] == '{' || trimmed[0] == '[') && json.Valid([]byte(trimmed)):
		return kindJSON
	case trimmed[0] == '{' && jsonLines(trimmed):
		return kindJSONL
	case ending == ".md" || ending == ".markdown":
		return kindMarkdown
	}

	if kind := tableKind(ending, trimmed); kind != "" {
		return kind
	}
	if mayBeMarkdown(ending) && hasHeading(trimmed) {
		return kindMarkdown
	}
	return kindText
}

// isPage reports whether text is an HTML page. Markdown and plain text may begin with elements of
// HTML, so their names need the beginning of a whole page.
func isPage(ending, text string) bool {
	lower := strings.ToLower(text[:min(len(text), 512)])
	for _, begin := range []string{"<!doctype html", "<html", "<head"} {
		if strings.HasPrefix(lower, begin) {
			return true
		}
	}
	switch ending {
	case ".md", ".markdown", ".txt":
		return false
	}
	return strings.HasPrefix(http.DetectContentType([]byte(lower)), "text/html")
}

// tableKind returns the format of text that is a table. "" means that it is none, or that its name
// says otherwise.
func tableKind(ending, text string) string {
	switch ending {
	case "", ".csv", ".tsv":
	default:
		return ""
	}
	comma, ok := delimiter(text, ending)
	switch {
	case !ok:
		return ""
	case comma == '\t':
		return kindTSV
	}
	return kindCSV
}

// mayBeMarkdown reports whether a name allows Markdown. A name that promises another text format is
// taken to be wrong, because the text is not of that format.
func mayBeMarkdown(ending string) bool {
	switch ending {
	case "", ".csv", ".tsv", ".json", ".html":
		return true
	}
	return false
}

// hasHeading reports whether the beginning of text has a heading of Markdown.
func hasHeading(text string) bool {
	for line := range strings.Lines(text[:min(len(text), 64<<10)]) {
		if level, _ := atx(line); level > 0 {
			return true
		}
	}
	return false
}

// jsonLines reports whether there are at least two lines and each of the first lines is a JSON
// object.
func jsonLines(text string) bool {
	n := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if line[0] != '{' || !json.Valid([]byte(line)) {
			return false
		}
		n++
		if n == 100 {
			break
		}
	}
	return n >= 2
}

// delimiter finds the separator of a table's cells: it gives the first records the same number of
// cells, and the most cells. A file with the name of a table may have one column.
func delimiter(text, ending string) (rune, bool) {
	best := ','
	most := 1
	for _, comma := range []rune{'\t', ',', ';', '|'} {
		shape := shapeOf(text, comma)
		isTable := shape.records >= 2
		if ending == "" {
			// Without a name, only the content says that it is a table. Prose has commas as well.
			isTable = shape.even && shape.short && shape.records >= 3
		}
		if isTable && shape.cells > most {
			best = comma
			most = shape.cells
		}
	}
	if most > 1 {
		return best, true
	}

	oneColumn := strings.Count(text, "\n") > 0 && !strings.Contains(text, "\n\n")
	return best, ending != "" && oneColumn
}

// tableShape describes the first records of a text that is read as a table.
type tableShape struct {
	records int
	cells   int  // of the first record
	even    bool // all records have so many cells
	short   bool // no cell begins with a space or is as long as a paragraph
}

func shapeOf(text string, comma rune) tableShape {
	r := csv.NewReader(strings.NewReader(text))
	r.Comma = comma
	r.LazyQuotes = true
	r.FieldsPerRecord = -1
	r.ReuseRecord = true

	shape := tableShape{even: true, short: true}
	// The beginning shows the shape. Prose with commas has lines of unequal length, or long ones.
	for shape.records < 20 {
		record, err := r.Read()
		if err != nil {
			break
		}
		shape.records++
		if shape.records == 1 {
			shape.cells = len(record)
		}
		if len(record) != shape.cells {
			shape.even = false
		}
		for _, cell := range record {
			if len(cell) >= 200 || strings.HasPrefix(cell, " ") {
				shape.short = false
			}
		}
	}
	return shape
}
