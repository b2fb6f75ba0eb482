// Package document reads files as text that keeps its structure, and cuts that into chunks of a size that a model reads.
//
//	d, err := document.Read(ctx, "handbook.docx", data)
//	chunks := document.Chunks(d.Blocks, 0, 0)
//
// It reads plain text, Markdown, HTML, CSV, JSON, JSON lines, PDF and DOCX. Of what kind a file is says its content; its name only decides between kinds
// that look alike. Files are hostile: their size, what they unpack to, their depth and the time that reading takes are bounded, and a library that panics
// is an error as any other.
//
//	bytes ─ kind ─▶ readText, readMarkdown, readCSV, readJSON, readPDF, readDOCX ─▶ blocks, each under its headings ─▶ Chunks
package document

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawl-go/pawl/tools/internal/webpage"
)

// MaxBytes is how large a file may be.
const MaxBytes = 32 << 20

const (
	maxHTML    = 8 << 20  // pages are parsed to trees
	maxText    = 64 << 20 // of text that is made of a file
	maxHeading = 200      // a longer heading is a paragraph
	readTime   = time.Minute
)

// Document is a file as text.
type Document struct {
	Title  string // as the file says it, else its first heading; "": it says none
	Kind   string // the media type that it was read as
	Blocks []Block
	Notes  []string // what is odd about it, for a person
}

// Form is how a block may be cut.
type Form int

// The forms.
const (
	Prose Form = iota // between sentences
	Code              // between lines
	Rows              // between its Rows
)

// Block is a piece of text that belongs together: a paragraph, a listing, a table.
type Block struct {
	Heading string // the headings above it, joined by " > "
	Form    Form
	Text    string   // of Prose and Code
	Head    string   // of Rows: what stands above each part of a table; may be ""
	Rows    []string // of Rows: each is kept whole where it fits
}

// Read reads a file. name, which may be "", is its name or address. The error says what is wrong with the file, for a person; that of a ctx that has
// ended is its cause.
func Read(ctx context.Context, name string, data []byte) (d *Document, err error) {
	if len(data) > MaxBytes {
		return nil, TooLarge(int64(len(data)))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readTime, fmt.Errorf("reading it took longer than %v", readTime))
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			d, err = nil, fmt.Errorf("the file cannot be read: %v", v)
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
	o := &outline{d: d}
	switch kind {
	case kindPDF:
		err = readPDF(ctx, o, data)
	case kindDOCX:
		err = readDOCX(ctx, o, data)
	case kindHTML:
		if len(data) > maxHTML {
			return nil, fmt.Errorf("the page has %d bytes; %d are the most", len(data), maxHTML)
		}
		page := webpage.Markdown(data, "text/html", "")
		readMarkdown(o, page.Text)
		if page.Title != "" {
			d.Title = page.Title
		}
	case kindMarkdown:
		readMarkdown(o, text)
	case kindCSV, kindTSV:
		readCSV(o, text)
	case kindJSON, kindJSONL:
		readJSON(o, text)
	default:
		readText(o, text)
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	o.end()
	if len(d.Blocks) == 0 {
		return nil, errors.New("there is no text in it")
	}
	return d, nil
}

// TooLarge is the error of a file with that many bytes. Who reads a file looks at its size first.
func TooLarge(size int64) error {
	return fmt.Errorf("it has %d bytes; %d (%d MiB) are the most", size, MaxBytes, MaxBytes>>20)
}

// BaseTitle makes a title of a name: the last part of a path or an address, without its ending.
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

// outline puts blocks under their headings.
type outline struct {
	d      *Document
	path   []string // the headings at work
	levels []int
	lone   bool // nothing stands under the last one yet
	size   int
}

// heading begins a part. A heading without text under it is kept as text.
func (o *outline) heading(level int, text string) {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return
	}
	if len(text) > maxHeading {
		o.prose(text)
		return
	}
	if o.lone && level <= o.levels[len(o.levels)-1] {
		o.alone()
	}
	for len(o.levels) > 0 && o.levels[len(o.levels)-1] >= level {
		o.path, o.levels = o.path[:len(o.path)-1], o.levels[:len(o.levels)-1]
	}
	o.path, o.levels, o.lone = append(o.path, text), append(o.levels, level), true
	if o.d.Title == "" {
		o.d.Title = text
	}
}

// alone makes text of the last heading.
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
	if o.size > maxText {
		panic(fmt.Sprintf("it makes more than %d bytes of text", maxText))
	}
	if strings.TrimSpace(b.Text) == "" && len(b.Rows) == 0 {
		return
	}
	if b.Heading == "" {
		b.Heading = strings.Join(o.path, " > ")
	}
	o.lone = false
	o.d.Blocks = append(o.d.Blocks, b)
}

func (o *outline) end() {
	if o.lone {
		o.alone()
	}
}

// clean makes text that every store takes: UTF-8, without NULs, with \n at the ends of lines.
func clean(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if strings.ContainsAny(s, "\x00\r\f\v") {
		s = strings.NewReplacer("\x00", "", "\r\n", "\n", "\r", "\n", "\f", "\n", "\v", "\n").Replace(s)
	}
	return s
}

// note keeps something that a person should know.
func (d *Document) note(format string, args ...any) {
	d.Notes = append(d.Notes, fmt.Sprintf(format, args...))
}
