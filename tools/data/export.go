package data

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

func (s *Set) exportTool() *pawl.Tool {
	return toolrun.Define(definitions, "export", &pawl.Tool{
		Name:   "data_export",
		Effect: pawl.EffectWrite,
		// the same key as the file tools' calls that change the same path
		Serial: func(args json.RawMessage) string {
			var a exportArgs
			if json.Unmarshal(args, &a) != nil {
				return ""
			}
			return "file:" + path.Clean(a.Path)
		},
		Run: toolrun.Func(s.export),
	})
}

type exportArgs struct {
	source
	Path   string `json:"path"`
	Format string `json:"format"`
}

type exportData struct {
	Path  string `json:"path"`
	Count int    `json:"count"`
	Bytes int64  `json:"bytes"`
}

func (s *Set) export(ctx context.Context, a exportArgs) (llm.ToolResult, error) {
	t, err := s.input(ctx, a.source)
	if err != nil {
		return llm.ToolResult{}, err
	}

	a.Format = cmp.Or(a.Format, formats[strings.ToLower(path.Ext(a.Path))])
	write := t.writeCSV
	switch a.Format {
	case "", "csv":
	case "json":
		write = func(w *bufio.Writer) error { return t.writeJSON(w, "[\n", ",\n", "\n]\n") }
	case "jsonl":
		write = func(w *bufio.Writer) error { return t.writeJSON(w, "", "\n", "\n") }
	default:
		return llm.ToolResult{}, toolrun.Refuse("unknown format: %s (use csv, json, or jsonl)", clip(a.Format))
	}

	data := exportData{Path: a.Path, Count: len(t.rows)}
	// The writer of the caller decides whether the path may be written, and replaces a file as a
	// whole.
	err = s.create(ctx, a.Path, func(to io.Writer) error {
		counted := &counter{ctx: ctx, w: to}
		w := bufio.NewWriterSize(counted, inputSize)
		if err := write(w); err != nil {
			return err
		}
		err := w.Flush()
		data.Bytes = counted.n
		return err
	})
	if err != nil {
		return llm.ToolResult{}, err
	}
	return toolrun.Result(fmt.Sprintf("Written %d records (%d bytes) to %s", data.Count, data.Bytes, a.Path), data)
}

// counter counts the written bytes and stops when ctx ends.
type counter struct {
	ctx context.Context
	w   io.Writer
	n   int64
}

func (c *counter) Write(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

func (t *table) writeJSON(w *bufio.Writer, begin, between, end string) error {
	w.WriteString(begin)
	c := t.cursor()
	var b []byte
	for i, r := range t.rows {
		if i > 0 {
			w.WriteString(between)
		}
		b = t.appendRow(b[:0], c, r)
		w.Write(b)
	}
	if begin == "" && len(t.rows) == 0 {
		return nil
	}
	_, err := w.WriteString(end)
	return err
}

func (t *table) writeCSV(w *bufio.Writer) error {
	columns := t.shown()
	// The records of JSON have no order of columns. Sorted, the same data gives the same file.
	if t.picked == nil && !t.headed {
		slices.SortFunc(columns, func(a, b int) int { return strings.Compare(t.names[a], t.names[b]) })
	}
	for i, column := range columns {
		if i > 0 {
			w.WriteByte(',')
		}
		writeCell(w, t.names[column], len(columns) == 1)
	}
	w.WriteByte('\n')

	c := t.cursor()
	for _, r := range t.rows {
		c.load(r)
		for i, column := range columns {
			if i > 0 {
				w.WriteByte(',')
			}
			v, _ := c.get(column)
			writeCell(w, v.s, len(columns) == 1)
		}
		if err := w.WriteByte('\n'); err != nil {
			return err
		}
	}
	return nil
}

// writeCell writes a cell. It adds quotes if the cell would otherwise be read differently; a single
// empty cell would otherwise not be a row.
func writeCell(w *bufio.Writer, s string, alone bool) {
	// Semicolon, bar and tab are quoted too, because data_parse and spreadsheets guess the
	// separator.
	special := strings.ContainsAny(s, ",;|\t\"\r\n")
	padded := strings.Trim(s, " ") != s
	noRow := s == "" && alone
	if !special && !padded && !noRow {
		w.WriteString(s)
		return
	}

	w.WriteByte('"')
	w.WriteString(strings.ReplaceAll(s, `"`, `""`))
	w.WriteByte('"')
}
