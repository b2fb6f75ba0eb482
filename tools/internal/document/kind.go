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

// kindOf determines the format of a file. For text formats it also returns the content as UTF-8.
func (d *Document) kindOf(name string, data []byte) (kind, text string, err error) {
	head := data[:min(len(data), 1024)]
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return "", "", errors.New("it is empty")
	case bytes.Contains(head, []byte("%PDF-")):
		return kindPDF, "", nil
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return kindDOCX, "", nil
	case bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return "", "", errors.New("it is an empty archive")
	case bytes.HasPrefix(head, []byte("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1")):
		if bytes.Contains(data, []byte("E\x00n\x00c\x00r\x00y\x00p\x00t\x00e\x00d\x00P\x00a\x00c\x00k\x00a\x00g\x00e\x00")) {
			return "", "", errors.New("it is an encrypted Office file; take the password off")
		}
		return "", "", errors.New("it is an Office file of the old form; save it as DOCX")
	case binary(head):
		return "", "", fmt.Errorf("it is %s, and no document that can be read; there are text, Markdown, HTML, CSV, JSON, PDF and DOCX", strings.TrimSuffix(http.DetectContentType(data), "; charset=utf-8"))
	}
	text = webpage.Decode(data, "")
	return textKind(ending(name), text), text, nil
}

// named maps file name extensions to formats.
var named = map[string]string{".json": kindJSON, ".jsonl": kindJSONL, ".ndjson": kindJSONL, ".csv": kindCSV,
	".tsv": kindTSV, ".html": kindHTML, ".htm": kindHTML, ".pdf": kindPDF, ".docx": kindDOCX}

// misnamed records a note if the name indicates another format than the content.
func (d *Document) misnamed(name string) {
	want := named[ending(name)]
	alike := func(a, b string) bool { return want == a && d.Kind == b || want == b && d.Kind == a }
	if want != "" && want != d.Kind && !alike(kindJSON, kindJSONL) && !alike(kindCSV, kindTSV) {
		d.note("its name ends in %s, but it is read as %s", ending(name), d.Kind)
	}
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
	lower := strings.ToLower(trimmed[:min(len(trimmed), 512)])
	page := strings.HasPrefix(lower, "<!doctype html") || strings.HasPrefix(lower, "<html") || strings.HasPrefix(lower, "<head")
	sniffed := strings.HasPrefix(http.DetectContentType([]byte(lower)), "text/html")
	switch {
	case page, sniffed && ending != ".md" && ending != ".markdown" && ending != ".txt":
		return kindHTML
	case (trimmed[0] == '{' || trimmed[0] == '[') && json.Valid([]byte(trimmed)):
		return kindJSON
	case trimmed[0] == '{' && jsonLines(trimmed):
		return kindJSONL
	case ending == ".md" || ending == ".markdown":
		return kindMarkdown
	}
	if ending == ".csv" || ending == ".tsv" || ending == "" {
		if comma, ok := delimiter(trimmed, ending); ok {
			if comma == '\t' {
				return kindTSV
			}
			return kindCSV
		}
	}
	if ending == "" || ending == ".csv" || ending == ".tsv" || ending == ".json" || ending == ".html" {
		for line := range strings.Lines(trimmed[:min(len(trimmed), 64<<10)]) {
			if level, _ := atx(line); level > 0 {
				return kindMarkdown
			}
		}
	}
	return kindText
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
		r := csv.NewReader(strings.NewReader(text))
		r.Comma = comma
		r.LazyQuotes = true
		r.FieldsPerRecord = -1
		r.ReuseRecord = true
		cells := 0
		records := 0
		even := true
		for records < 20 {
			record, err := r.Read()
			if err != nil {
				break
			}
			records++
			if records == 1 {
				cells = len(record)
			}
			even = even && len(record) == cells
			if ending == "" { // prose has commas as well, followed by spaces
				for _, cell := range record {
					even = even && len(cell) < 200 && !strings.HasPrefix(cell, " ")
				}
			}
		}
		if cells > most && records >= 2 && (even || ending != "") && (ending != "" || records >= 3) {
			best = comma
			most = cells
		}
	}
	if most > 1 {
		return best, true
	}
	return best, ending != "" && strings.Count(text, "\n") > 0 && !strings.Contains(text, "\n\n")
}
