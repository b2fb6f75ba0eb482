// Package document reads files as structured text and splits it into chunks of a size that suits a
// model.
//
//	d, err := document.Read(ctx, "handbook.docx", data)
//	chunks := document.Chunks(d.Blocks, 0, 0)
//
// It reads plain text, Markdown, HTML, CSV, JSON, JSON lines, PDF and DOCX. The content determines
// the format. The name is used only to choose between formats that look alike. Files are treated as
// hostile: their size, their unpacked size, their depth and the reading time are limited, and a
// panic in a library is returned as an error.
//
//	bytes ─ kind ─▶ readText, readMarkdown, readCSV, readJSON, readPDF, readDOCX
//	      ─▶ blocks, each under its headings ─▶ Chunks
package document

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawl-go/pawl/tools/internal/webpage"
)

// MaxBytes is the maximum size of a file.
const MaxBytes = 32 << 20

const (
	maxHTML    = 8 << 20  // pages are parsed to trees
	maxText    = 64 << 20 // bytes of text extracted from a file
	maxHeading = 200      // a longer heading becomes a paragraph
	readTime   = time.Minute
)

// Document is a file as text.
type Document struct {
	Title  string // title stated in the file, or else its first heading; empty means neither
	Kind   string // media type as which the file was read
	Blocks []Block
	Notes  []string // irregularities of the file, for a person
}

// Form is the way in which a block may be split.
type Form int

// The forms.
const (
	Prose Form = iota // split between sentences
	Code              // split between lines
	Rows              // split between its Rows
)

// Block is a piece of text that belongs together: a paragraph, a listing or a table.
type Block struct {
	Heading string // the headings above it, joined by " > "
	Form    Form
	Text    string   // for Prose and Code
	Head    string   // for Rows: text repeated above each part of a table; may be empty
	Rows    []string // for Rows: each row is kept whole if it fits
}

// Read reads a file. name is its name or address and may be empty. The error says what is wrong
// with the file, for a person. If ctx has ended, the error is its cause.
func Read(ctx context.Context, name string, data []byte) (d *Document, err error) {
	if len(data) > MaxBytes {
		return nil, TooLarge(int64(len(data)))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readTime, fmt.Errorf("reading it took longer than %v", readTime))
	defer cancel()
	defer func() {
		// The readers of PDF panic on broken files, and a limit within them panics too, because
		// they return no errors.
		if v := recover(); v != nil {
			d = nil
			err = fmt.Errorf("the file cannot be read: %v", v)
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
		}
	}()

	d = new(Document)
	kind, text, err := d.kindOf(name, data)
	if err != nil {
		return nil, err
	}
	d.Kind = kind
	d.misnamed(name)

	o := &outline{doc: d}
	err = o.read(ctx, data, text)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	o.finish()

	if len(d.Blocks) == 0 {
		return nil, errors.New("there is no text in it")
	}
	return d, nil
}

// read adds the blocks of a file of the kind of the document. text is the content of a text format.
func (o *outline) read(ctx context.Context, data []byte, text string) error {
	switch o.doc.Kind {
	case kindPDF:
		return readPDF(ctx, o, data)
	case kindDOCX:
		return readDOCX(ctx, o, data)
	case kindHTML:
		return readHTML(o, data)
	case kindMarkdown:
		readMarkdown(o, text)
	case kindCSV, kindTSV:
		readCSV(o, text)
	case kindJSON, kindJSONL:
		readJSON(o, text)
	default:
		readText(o, text)
	}
	return nil
}

func readHTML(o *outline, data []byte) error {
	if len(data) > maxHTML {
		return fmt.Errorf("the page has %d bytes; %d are the most", len(data), maxHTML)
	}
	page := webpage.Markdown(data, "text/html", "")
	readMarkdown(o, page.Text)
	o.doc.Title = cmp.Or(page.Title, o.doc.Title)
	return nil
}

// TooLarge returns the error for a file of size bytes. Callers check the size of a file before they
// read it.
func TooLarge(size int64) error {
	return fmt.Errorf("it has %d bytes; %d (%d MiB) are the most", size, MaxBytes, MaxBytes>>20)
}

// BaseTitle derives a title from a name: the last part of a path or an address, without its
// extension.
func BaseTitle(name string) string {
	name, _, _ = strings.Cut(name, "?")
	base := path.Base(strings.TrimRight(strings.ReplaceAll(name, `\`, "/"), "/"))
	if base == "." || base == "/" {
		return ""
	}
	if cut := strings.TrimSuffix(base, path.Ext(base)); cut != "" {
		return cut
	}
	return base
}

// outline assigns blocks to their headings.
type outline struct {
	doc    *Document
	path   []string // the current headings
	levels []int
	lone   bool // the last heading has no text yet
	size   int
}

// heading begins a section. A heading without text below it becomes text.
func (o *outline) heading(level int, text string) {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return
	}
	// A paragraph in the style of a heading would be repeated in front of each of its passages.
	if len(text) > maxHeading {
		o.prose(text)
		return
	}
	if o.lone && level <= o.levels[len(o.levels)-1] {
		o.alone()
	}

	for len(o.levels) > 0 && o.levels[len(o.levels)-1] >= level {
		o.path = o.path[:len(o.path)-1]
		o.levels = o.levels[:len(o.levels)-1]
	}
	o.path = append(o.path, text)
	o.levels = append(o.levels, level)
	o.lone = true
	o.doc.Title = cmp.Or(o.doc.Title, text)
}

// alone converts the last heading to text.
func (o *outline) alone() {
	last := o.path[len(o.path)-1]
	all := o.path
	o.path = o.path[:len(o.path)-1]
	o.add(Block{Text: last})
	o.path = all
}

func (o *outline) prose(text string) { o.add(Block{Form: Prose, Text: text}) }

func (o *outline) add(b Block) {
	b.Text = strings.Trim(clean(b.Text), "\n")
	b.Head = clean(b.Head)
	o.size += len(b.Text) + len(b.Head)
	for i := range b.Rows {
		b.Rows[i] = clean(b.Rows[i])
		o.size += len(b.Rows[i])
	}
	// Read recovers it: the readers have no other way to stop.
	if o.size > maxText {
		panic(fmt.Sprintf("it contains more than %d bytes of text", maxText))
	}
	if strings.TrimSpace(b.Text) == "" && len(b.Rows) == 0 {
		return
	}
	if b.Heading == "" {
		b.Heading = strings.Join(o.path, " > ")
	}
	o.lone = false
	o.doc.Blocks = append(o.doc.Blocks, b)
}

// finish converts a last heading without text.
func (o *outline) finish() {
	if o.lone {
		o.alone()
	}
}

// clean returns text that every store accepts: UTF-8, without NULs, with \n as line ending.
func clean(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if strings.ContainsAny(s, "\x00\r\f\v") {
		s = strings.NewReplacer("\x00", "", "\r\n", "\n", "\r", "\n", "\f", "\n", "\v", "\n").Replace(s)
	}
	return s
}

// note records a note for a person.
func (d *Document) note(format string, args ...any) {
	d.Notes = append(d.Notes, fmt.Sprintf(format, args...))
}
