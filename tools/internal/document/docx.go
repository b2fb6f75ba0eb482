package document

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	maxEntries = 10_000
	maxPart    = 32 << 20 // unpacked size of a part of an archive
	maxNesting = 256      // depth of elements
)

// readDOCX reads a Word file: paragraphs under the headings that their styles define, tables, and
// notes. Deleted text and fallbacks for older programs are left out. Nested archives are not
// opened.
func readDOCX(ctx context.Context, o *outline, data []byte) error {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return fmt.Errorf("it is a broken archive: %w", err)
	}
	if len(z.File) > maxEntries {
		return fmt.Errorf("the archive has %d entries; %d are the most", len(z.File), maxEntries)
	}

	parts := map[string]*zip.File{}
	for _, f := range z.File {
		// Two programs could read two different documents from such an archive.
		if parts[f.Name] != nil && strings.HasPrefix(f.Name, "word/") {
			return fmt.Errorf("the archive has %s twice", f.Name)
		}
		parts[f.Name] = f
	}
	if parts["word/document.xml"] == nil {
		return notWord(parts)
	}

	w := &word{ctx: ctx, outline: o, styles: map[string]int{}}
	if err := w.part(parts["word/styles.xml"], w.style); err != nil {
		return err
	}
	if err := w.part(parts["docProps/core.xml"], w.property); err != nil {
		return err
	}
	if err := w.part(parts["word/document.xml"], w.body); err != nil {
		return err
	}
	if err := w.notesPart(parts["word/footnotes.xml"], "Footnotes"); err != nil {
		return err
	}
	return w.notesPart(parts["word/endnotes.xml"], "Endnotes")
}

// notWord explains what an archive contains that is not a Word file.
func notWord(parts map[string]*zip.File) error {
	nested := ""
	for name := range parts {
		switch {
		case strings.HasPrefix(name, "xl/"):
			return errors.New("it is an Excel workbook; save its sheets as CSV")
		case strings.HasPrefix(name, "ppt/"):
			return errors.New("it is a PowerPoint file; save it as PDF")
		case name == "content.xml" && parts["mimetype"] != nil:
			return errors.New("it is an OpenDocument file; save it as DOCX or PDF")
		case name == "META-INF/container.xml":
			return errors.New("it is an EPUB book; save it as HTML or PDF")
		case strings.HasSuffix(strings.ToLower(name), ".zip"):
			nested = " of archives"
		}
	}
	return fmt.Errorf("it is an archive%s, and no document; unpack it", nested)
}

// tokens reads the elements of a part, within limits.
type tokens struct {
	*xml.Decoder
	depth int
}

func (t *tokens) next() (xml.Token, error) {
	tok, err := t.Decoder.Token()
	switch tok.(type) {
	case xml.StartElement:
		t.depth++
		if t.depth > maxNesting {
			return nil, fmt.Errorf("its elements are more than %d deep", maxNesting)
		}
	case xml.EndElement:
		t.depth--
	}
	return tok, err
}

// each calls visit for the tokens of the current element, until its end. level is the number of
// elements that are open after the token; 0 is the end of the current one. read says that visit has
// read the element that begins to its end.
func (t *tokens) each(visit func(tok xml.Token, level int) (read bool, err error)) error {
	for level := 1; level > 0; {
		tok, err := t.next()
		if err != nil {
			return err
		}
		switch tok.(type) {
		case xml.StartElement:
			level++
		case xml.EndElement:
			level--
		}
		read, err := visit(tok, level)
		if err != nil {
			return err
		}
		if read {
			level--
		}
	}
	return nil
}

// text reads the text of the current element until its end, or until an error.
func (t *tokens) text() string {
	var b strings.Builder
	_ = t.each(func(tok xml.Token, _ int) (bool, error) {
		if x, ok := tok.(xml.CharData); ok {
			b.Write(x)
		}
		return false, nil
	})
	return b.String()
}

func (t *tokens) skip() error {
	return t.each(func(xml.Token, int) (bool, error) { return false, nil })
}

type word struct {
	ctx     context.Context
	outline *outline
	styles  map[string]int // heading level of each style
	notes   string         // heading of the current part if it contains notes; else empty
}

// part reads a part of the file and calls visit for each element that begins. A missing part has no
// elements.
func (w *word) part(f *zip.File, visit func(*tokens, xml.StartElement) error) error {
	if f == nil {
		return nil
	}
	tooMuch := fmt.Errorf("%s unpacks to more than %d MiB", f.Name, maxPart>>20)
	// The stated size may be wrong, so that the reading is limited too.
	if f.UncompressedSize64 > maxPart {
		return tooMuch
	}
	r, err := f.Open()
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	defer r.Close()

	limited := &io.LimitedReader{R: r, N: maxPart + 1}
	d := &tokens{Decoder: xml.NewDecoder(limited)}
	for n := 0; ; n++ {
		if n%1024 == 0 && w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		tok, err := d.next()
		if limited.N <= 0 {
			return tooMuch
		}
		if err == io.EOF {
			return nil
		}

		if e, ok := tok.(xml.StartElement); ok && err == nil {
			err = visit(d, e)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
}

func attr(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// style records which styles are headings: by their names, which Word stores in English in every
// language, or by their outline level.
func (w *word) style(d *tokens, e xml.StartElement) error {
	if e.Name.Local != "style" {
		return nil
	}
	id := attr(e, "styleId")
	return d.each(func(tok xml.Token, _ int) (bool, error) {
		x, _ := tok.(xml.StartElement)
		level := 0
		switch x.Name.Local {
		case "name":
			level = namedLevel(attr(x, "val"))
		case "outlineLvl":
			if w.styles[id] == 0 {
				level = outlineLevel(x)
			}
		}
		if level > 0 {
			w.styles[id] = level
		}
		return false, nil
	})
}

// namedLevel returns the level of headings with a style of this name. 0 means that they are not
// headings.
func namedLevel(name string) int {
	name = strings.ToLower(name)
	if name == "title" {
		return 1
	}
	number, ok := strings.CutPrefix(name, "heading ")
	if !ok {
		return 0
	}
	return levelIn(number, 1)
}

// outlineLevel returns the level of a heading that an element outlineLvl states. 0 means that it is
// not a heading.
func outlineLevel(e xml.StartElement) int { return levelIn(attr(e, "val"), 0) }

// levelIn reads one of nine levels, the first of which is written as the number first. 0 means that
// text is not such a level.
func levelIn(text string, first int) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	level := n - first + 1
	if level < 1 || level > 9 {
		return 0
	}
	return level
}

// property records the title of the file.
func (w *word) property(d *tokens, e xml.StartElement) error {
	if e.Name.Local == "title" {
		w.outline.doc.Title = strings.Join(strings.Fields(d.text()), " ")
	}
	return nil
}

// notesPart reads a part with notes, which belong to no section of the text. A missing part has no
// notes.
func (w *word) notesPart(f *zip.File, heading string) error {
	if f == nil {
		return nil
	}
	w.outline.finish()
	w.outline.path = nil
	w.outline.levels = nil
	w.outline.lone = false
	w.notes = heading
	return w.part(f, w.body)
}

func (w *word) body(d *tokens, e xml.StartElement) error {
	switch e.Name.Local {
	case "p":
		p, err := w.paragraph(d)
		if err != nil {
			return err
		}
		w.add(p)
	case "tbl":
		return w.table(d)
	case "Fallback":
		return d.skip()
	}
	return nil
}

func (w *word) add(p paragraph) {
	text := strings.TrimSpace(p.text)
	switch {
	case text == "":
	case w.notes != "":
		w.outline.add(Block{Heading: w.notes, Text: text})
	case p.level > 0:
		w.outline.heading(p.level, text)
	case p.item:
		w.outline.prose("- " + text)
	default:
		w.outline.prose(text)
	}
}

type paragraph struct {
	text  string
	level int  // level of a heading
	item  bool // item of a list
}

// paragraph reads to the end of a paragraph. The paragraphs of text boxes in it are added to its
// text.
func (w *word) paragraph(d *tokens) (p paragraph, err error) {
	var b strings.Builder
	err = d.each(func(tok xml.Token, level int) (bool, error) {
		if end, ok := tok.(xml.EndElement); ok && end.Name.Local == "p" && level > 0 {
			b.WriteByte('\n')
		}

		x, _ := tok.(xml.StartElement)
		switch x.Name.Local {
		case "t":
			b.WriteString(d.text())
			return true, nil
		// A fallback repeats a drawing for older programs; the others are codes of fields and
		// deleted text.
		case "Fallback", "instrText", "delText":
			return true, d.skip()

		case "tab":
			b.WriteByte('\t')
		case "br", "cr":
			b.WriteByte('\n')
		case "noBreakHyphen":
			b.WriteByte('-')

		case "pStyle":
			if b.Len() == 0 {
				p.level = w.styles[attr(x, "val")]
			}
		case "outlineLvl":
			if p.level == 0 {
				p.level = outlineLevel(x)
			}
		case "numPr":
			p.item = true
		}
		return false, nil
	})
	p.text = b.String()
	return p, err
}

// table reads to the end of a table. A table within a cell becomes part of the cell's text.
func (w *word) table(d *tokens) error {
	var t tableReader
	err := d.each(func(tok xml.Token, level int) (bool, error) {
		switch x := tok.(type) {
		case xml.StartElement:
			if x.Name.Local == "p" {
				p, err := w.paragraph(d)
				t.cell = append(t.cell, strings.Fields(p.text)...)
				return true, err
			}
			t.begin(x.Name.Local)
		case xml.EndElement:
			if level > 0 { // not the end of this table
				t.endElement(x.Name.Local)
			}
		}
		return false, nil
	})
	if err != nil {
		return err
	}

	rows := t.rows
	switch len(rows) {
	case 0:
	// The only row of a table is no head.
	case 1:
		w.outline.add(Block{Form: Rows, Rows: rows})
	default:
		columns := strings.Count(rows[0], " | ") + 1
		rule := "|" + strings.Repeat("---|", columns)
		w.outline.add(Block{Form: Rows, Head: rows[0] + "\n" + rule, Rows: rows[1:]})
	}
	return nil
}

// tableReader collects the rows of a table from its elements.
type tableReader struct {
	rows  []string
	cells []string // of the current row
	cell  []string // the words of the current cell
	inner int      // tables around the current element, within this one
}

// begin notes the beginning of an element.
func (t *tableReader) begin(element string) {
	if element == "tbl" {
		t.inner++
	}
	if t.inner > 0 {
		return
	}
	switch element {
	case "tr":
		t.cells = nil
	case "tc":
		t.cell = nil
	}
}

// endElement notes the end of an element.
func (t *tableReader) endElement(element string) {
	if element == "tbl" {
		t.inner--
		return
	}
	if t.inner > 0 {
		return
	}
	switch element {
	case "tc":
		t.cells = append(t.cells, strings.ReplaceAll(strings.Join(t.cell, " "), "|", `\|`))
	case "tr":
		if strings.Join(t.cells, "") != "" {
			t.rows = append(t.rows, "| "+strings.Join(t.cells, " | ")+" |")
		}
	}
}
