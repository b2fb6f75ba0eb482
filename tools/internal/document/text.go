package document

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/internal/text"
)

// readText reads paragraphs separated by empty lines.
func readText(o *outline, text string) {
	var b strings.Builder
	for line := range strings.Lines(clean(text)) {
		if strings.TrimSpace(line) == "" {
			o.prose(b.String())
			b.Reset()
			continue
		}
		b.WriteString(strings.TrimRight(line, " \t\n"))
		b.WriteByte('\n')
	}
	o.prose(b.String())
}

// readCSV reads a table whose first record names the columns. Rows are written again, so that a
// cell with a line break stays within its row.
func readCSV(o *outline, text string) {
	ending := ".csv"
	comma, _ := delimiter(strings.TrimSpace(text), ending)
	r := csv.NewReader(strings.NewReader(text))
	r.Comma = comma
	r.LazyQuotes = true
	r.FieldsPerRecord = -1
	r.ReuseRecord = true
	var rows []string
	for {
		record, err := r.Read()
		if err != nil {
			break // the end: with LazyQuotes there is no other error
		}
		if row := csvLine(record); row != "" {
			rows = append(rows, row)
		}
	}
	if len(rows) > 1 {
		o.add(Block{Form: Rows, Head: rows[0], Rows: rows[1:]})
	} else {
		o.add(Block{Form: Rows, Rows: rows})
	}
}

func csvLine(record []string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Write(record) // a Builder returns no errors
	w.Flush()
	line := strings.TrimSuffix(b.String(), "\n")
	if strings.Trim(line, `,"`) == "" {
		return ""
	}
	return line
}

// Objects deeper than maxDepth are not split.
const (
	maxDepth = 32
	maxItem  = 1500 // a value of at most this many bytes stays whole
)

// readJSON reads one value, or one value per line. An array is read as its elements, an object as
// its members. Large values are split, with their names as headings.
func readJSON(o *outline, text string) {
	text = strings.TrimSpace(text)
	if json.Valid([]byte(text)) {
		w := &jsonWalk{o: o}
		w.value(json.RawMessage(text), 0)
		w.flush()
		return
	}
	w := &jsonWalk{o: o}
	// A line that is no JSON, such as the last one of a log that was cut, is text.
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case json.Valid([]byte(line)):
			w.item(compact([]byte(line)))
		default:
			w.item(line)
		}
	}
	w.flush()
}

type jsonWalk struct {
	o    *outline
	rows []string
}

func (w *jsonWalk) item(s string) { w.rows = append(w.rows, s) }

func (w *jsonWalk) flush() {
	if len(w.rows) > 0 {
		w.o.add(Block{Form: Rows, Rows: w.rows})
	}
	w.rows = nil
}

func (w *jsonWalk) value(raw []byte, depth int) {
	c := jsonscan.New(raw)
	switch {
	case depth >= maxDepth:
		w.item(compact(raw))

	case c.Kind() == jsonscan.Array:
		for c.Array(); c.More(); {
			w.part("", c.Raw(), depth)
		}

	case c.Kind() == jsonscan.Object:
		for c.Object(); ; {
			k, ok := c.Key()
			if !ok {
				break
			}
			w.part(string(k), c.Raw(), depth)
		}

	case c.Kind() == jsonscan.String && len(raw) > maxItem:
		w.flush()
		readText(w.o, c.String())
	default:
		w.item(compact(raw))
	}
}

// part reads an element (name is empty) or a member.
func (w *jsonWalk) part(name string, raw []byte, depth int) {
	small := len(raw) <= maxItem
	body := ""
	if small {
		body = compact(raw)
	}
	switch {
	case small && name == "":
		w.item(body)
	case small:
		key, _ := json.Marshal(name) // a string always marshals
		w.item(string(key) + ": " + body)
	case name == "":
		w.value(raw, depth+1)
	default:
		w.flush()
		above := len(w.o.path)
		w.o.path = append(w.o.path, text.Clip(name, maxHeading))
		w.o.levels = append(w.o.levels, above+1)
		w.o.lone = false
		w.value(raw, depth+1)
		w.flush()
		w.o.path = w.o.path[:above]
		w.o.levels = w.o.levels[:above]
	}
}

// compact returns a value without insignificant white space.
func compact(raw []byte) string {
	var b bytes.Buffer
	_ = json.Compact(&b, raw) // it is valid
	return b.String()
}
