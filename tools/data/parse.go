package data

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

const (
	parseLimit = 1000
	jsonBytes  = 64 << 20 // limit for a file that is one JSON text, which is read whole
	lineBytes  = 16 << 20 // limit for a line of JSONL
)

func (s *Set) parseTool() *pawl.Tool {
	tool := toolrun.Define(definitions, "parse", &pawl.Tool{
		Name:      "data_parse",
		Effect:    pawl.EffectRead,
		MaxResult: -1, // answers have a size limit
		Run:       run(s.parse),
	})
	if s.open != nil {
		tool.Description += "\n\n" + pathText
		in := strings.Replace(string(tool.Input), `"format":`, `"path":`+pathSchema+`,"format":`, 1)
		tool.Input = json.RawMessage(strings.Replace(in, `"required":["content"],`, "", 1))
	}
	return tool
}

// pathText and pathSchema are part of the description and of the schema if files are available.
const (
	pathText = "With path in place of content a file is read where it is, of any number of rows: " +
		"give save_as with it, so that the records need not pass through you."
	pathSchema = `{"type":"string","description":"Instead of content: a file, relative to the root. ` +
		`Its ending may say the format."}`
)

type parseArgs struct {
	Content string        `json:"content"`
	Path    string        `json:"path"`
	Format  string        `json:"format"`
	Limit   toolrun.Whole `json:"limit"`
	Offset  toolrun.Whole `json:"offset"`
	SaveAs  string        `json:"save_as"`
}

func (s *Set) parse(ctx context.Context, a parseArgs) ([]byte, error) {
	if err := checkName("save_as", a.SaveAs); err != nil {
		return nil, err
	}
	t, err := s.source(ctx, a)
	if err != nil {
		return nil, err
	}
	if err := t.checkOffset(int(a.Offset)); err != nil {
		return nil, err
	}

	limit := int(a.Limit)
	switch {
	case limit > 0:
	case a.SaveAs != "":
		limit = preview
	default:
		limit = parseLimit
	}
	if err := s.save(ctx, a.SaveAs, t); err != nil {
		return nil, err
	}

	shown := t.with(t.rows) // a copy, because notes may be added
	columns := append([]string{}, shown.shownColumns()...)
	ans := shown.answer(a.SaveAs)
	ans.Columns = columns
	ans.from = int(a.Offset)
	ans.most = limit
	ans.next = true
	return ans.json()
}

// source reads the input of data_parse.
func (s *Set) source(ctx context.Context, a parseArgs) (*table, error) {
	switch {
	case s.open != nil && a.Content != "" && a.Path != "":
		return nil, toolrun.Refuse("give content or path, not both")
	case s.open != nil && a.Path != "":
		f, err := s.open(ctx, a.Path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		a.Format = cmp.Or(a.Format, formats[strings.ToLower(path.Ext(a.Path))])
		return s.read(ctx, f, a.Format, s.tables.limit)
	case s.open != nil && a.Content == "":
		return nil, toolrun.Refuse("give content, the text of the file, or path, where the file is")
	}
	return s.read(ctx, strings.NewReader(a.Content), a.Format, s.tables.limit)
}

// formats maps file name extensions to formats.
var formats = map[string]string{".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl"}

// shownColumns returns the columns, sorted for JSON. It returns as many as fit next to the records,
// and notes if some are left out.
func (t *table) shownColumns() []string {
	columns := t.columns()
	if !t.headed && t.picked == nil {
		columns = slices.Sorted(slices.Values(columns))
	}
	room := maxAnswer / 4
	for i, c := range columns {
		room -= len(c) + 3
		if room < 0 {
			t.note("there are %d columns; the first %d are listed", len(columns), i)
			return columns[:i]
		}
	}
	return columns
}

// read reads a table of at most most bytes. Without a format it examines the text: an array or an
// object is JSON, one object per line is JSONL, anything else is CSV.
func (s *Set) read(ctx context.Context, r io.Reader, format string, most int) (*table, error) {
	in := newInput(r)
	if in.err != nil {
		return nil, in.err
	}

	head := in.ahead()
	// Only the whole text can be empty: a large file may begin with blanks.
	if _, err := in.Peek(in.Buffered() + 1); err == io.EOF && strings.TrimSpace(head) == "" {
		return nil, toolrun.Refuse("content is required: it is empty")
	}
	if format == "" {
		format = guess(head)
	}

	t := newTable(most)
	defer func() {
		t.last = nil
		t.packed = nil
	}()
	switch format {
	case "csv":
		return t, parseCSV(ctx, in, t)
	case "json":
		return t, parseJSON(ctx, in, t)
	case "jsonl":
		return t, parseJSONL(ctx, in, t)
	}
	return nil, toolrun.Refuse("unknown format: %s (use csv, json, or jsonl)", clip(format))
}

func guess(content string) string {
	content = strings.TrimSpace(content)
	switch content[0] {
	case '[':
		return "json"
	case '{':
		first, rest, _ := strings.Cut(content, "\n")
		rest = strings.TrimSpace(rest)
		if strings.HasPrefix(rest, "{") || rest != "" && json.Valid([]byte(first)) {
			return "jsonl"
		}
		return "json"
	}
	return "csv"
}

// parseJSON reads an array of objects, or one object.
func parseJSON(ctx context.Context, in *input, t *table) error {
	// One value of JSON must be in memory as a whole, unlike the rows of the other forms.
	b, err := io.ReadAll(io.LimitReader(in, jsonBytes+1))
	if err != nil {
		return err
	}
	if len(b) > jsonBytes {
		return toolrun.Refuse("json parse error: the text is larger than %d MiB; as JSONL, an object a line, "+
			"or as CSV it can be",
			jsonBytes>>20)
	}

	var raw json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return syntax(string(b), err)
	}
	if !utf8.Valid(raw) {
		t.note("the text is not UTF-8 throughout: such bytes stand here as \uFFFD")
	}

	raw = bytes.TrimSpace(raw)
	switch raw[0] {
	case '[':
		return t.addAll(ctx, raw, "json parse error: element")
	case '{':
		if err := t.add(raw); err != nil {
			return toolrun.Refuse("json parse error: %s", err)
		}
		t.noteNested()
		return nil
	}
	return toolrun.Refuse("json parse error: expected an array of objects, or one object; got %s", valueOf(raw).kind)
}

// noteNested notes the arrays of objects in the only record. An API's answer is often one object
// that holds the records in a field.
func (t *table) noteNested() {
	for r := t.rows[0]; len(r) > 0; {
		var c cell
		c, r = r.next()
		if c.value.kind == list && strings.HasPrefix(c.value.s, "[{") {
			t.note("the content is one object, so it is one record; its %s is an array of objects: give that "+
				"array to work with them",
				clip(t.names[c.column]))
		}
	}
}

// syntax rewrites an error of encoding/json with its line and column.
func syntax(content string, err error) error {
	var s *json.SyntaxError
	if !errors.As(err, &s) {
		return toolrun.Refuse("json parse error: %s", err)
	}
	before := content[:min(max(int(s.Offset)-1, 0), len(content))]
	line := strings.Count(before, "\n") + 1
	column := len(before) - strings.LastIndexByte(before, '\n')
	return toolrun.Refuse("json parse error: line %d, column %d: %s", line, column, s)
}

// parseJSONL reads one object per line. Empty lines are skipped. Any other line that is not an
// object is an error.
func parseJSONL(ctx context.Context, in *input, t *table) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, lineBytes)
	var odd faulty
	for n := 1; lines.Scan(); n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		raw := []byte(strings.TrimSpace(lines.Text()))
		if len(raw) == 0 {
			continue
		}
		if !utf8.Valid(raw) {
			odd.count(n)
		}

		var v json.RawMessage
		err := json.Unmarshal(raw, &v)
		if err == nil {
			err = t.add(v)
		}
		if err != nil {
			return toolrun.Refuse("jsonl parse error: line %d: %s", n, err)
		}
	}

	t.noteOdd(odd)
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return toolrun.Refuse("jsonl parse error: a line is longer than %d MiB; is it JSONL?", lineBytes>>20)
	}
	return lines.Err()
}
