package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/ledongthuc/pdf"
)

const (
	maxPages  = 10_000
	maxNodes  = 50_000    // nodes of the page tree
	maxOps    = 5_000_000 // operators of all pages
	maxDrawn  = 256 << 20 // unpacked bytes of everything that is drawn
	maxForms  = 8         // nesting depth of forms
	pageDepth = 64
)

// readPDF reads the text of each page in drawing order. Each page is a heading.
func readPDF(ctx context.Context, o *outline, data []byte) error {
	data = data[bytes.Index(data, []byte("%PDF-")):]
	if end := bytes.LastIndex(data, []byte("%%EOF")); end >= 0 {
		data = data[:end+len("%%EOF")] // the library accepts nothing after the marker
	}
	// Before the library reads it: some of its failures cannot be recovered.
	if err := guardPDF(ctx, data, maxInflate); err != nil {
		return err
	}
	r, err := pdf.NewReader(&pdfFile{ctx: ctx, data: data, left: 1<<30 + 256*int64(len(data))}, int64(len(data)))
	switch {
	case errors.Is(err, pdf.ErrInvalidPassword),
		err != nil && strings.Contains(strings.ToLower(err.Error()), "encrypt"):
		return errors.New("the PDF is encrypted; take the password off")
	case err != nil:
		return fmt.Errorf("the PDF cannot be read: %w", err)
	}

	p := &pdfReader{ctx: ctx}
	p.pages(r.Trailer().Key("Root").Key("Pages"), 0)
	if len(p.list) == 0 {
		return errors.New("the PDF has no pages")
	}

	o.doc.Title = strings.Join(strings.Fields(clean(r.Trailer().Key("Info").Key("Title").Text())), " ")
	bad := 0
	found := false
	for i, page := range p.list {
		text, err := p.text(page)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			bad++
			o.doc.note("page %d: %v", i+1, err)
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		found = true
		// A page is what a citation of a PDF can name.
		o.path = []string{fmt.Sprint("page ", i+1)}
		o.levels = []int{1}
		readText(o, text)
	}

	switch {
	case found:
		return nil
	// Some pages with faults are a note. Without any text, the faults are the answer.
	case bad > 0:
		return fmt.Errorf("no page of the PDF can be read: %s", o.doc.Notes[0])
	}
	return fmt.Errorf("the PDF has no text; its %d pages are pictures", len(p.list))
}

// pdfFile is the file as the library reads it. It returns an error after too many reads, or when
// ctx has ended, which ends circular references.
type pdfFile struct {
	ctx  context.Context
	data []byte
	left int64
}

func (f *pdfFile) ReadAt(b []byte, off int64) (int, error) {
	if f.ctx.Err() != nil {
		panic(context.Cause(f.ctx))
	}
	f.left -= int64(len(b))
	if f.left < 0 {
		panic("it goes in circles")
	}
	if off < 0 || off >= int64(len(f.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.data[off:])
	for i := off; i < 9 && int(i-off) < n; i++ {
		// the library requires a known version; everything else is found by its offset
		b[i-off] = "%PDF-1.7\n"[i]
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

type pdfReader struct {
	ctx   context.Context
	list  []pdf.Page
	nodes int
	ops   int
	drawn int64
}

// weigh unpacks a stream, or a list of streams, to check its size, because the library would hold
// all of it in memory.
func (p *pdfReader) weigh(v pdf.Value) {
	if v.Kind() == pdf.Array {
		for i := range v.Len() {
			p.weigh(v.Index(i))
		}
		return
	}
	if v.Kind() != pdf.Stream {
		return
	}
	// a broken stream is reported when it is drawn
	n, _ := io.Copy(io.Discard, io.LimitReader(v.Reader(), maxDrawn+1-p.drawn))
	p.drawn += n
	if p.drawn > maxDrawn {
		panic(fmt.Sprintf("the PDF unpacks to more than %d MiB", maxDrawn>>20))
	}
}

// pages walks the page tree once. The library's own method walks it for each page.
func (p *pdfReader) pages(v pdf.Value, depth int) {
	p.nodes++
	if depth > pageDepth || p.nodes > maxNodes || len(p.list) >= maxPages {
		panic(fmt.Sprintf("the PDF has more than %d pages, or they form a cycle", maxPages))
	}
	if kids := v.Key("Kids"); kids.Kind() == pdf.Array {
		for i := range kids.Len() {
			p.pages(kids.Index(i), depth+1)
		}
		return
	}
	if v.Kind() == pdf.Dict {
		p.list = append(p.list, pdf.Page{V: v})
	}
}

// text returns the text of a page. With an error it returns the text that could be read.
func (p *pdfReader) text(page pdf.Page) (text string, err error) {
	w := &pdfText{reader: p}
	defer func() {
		if v := recover(); v != nil {
			text = w.text.String()
			err = fmt.Errorf("%v", v)
		}
	}()
	contents := page.V.Key("Contents")
	if contents.Kind() == pdf.Null {
		return "", nil
	}
	w.draw(contents, page.Resources(), identity, 0)
	return w.text.String(), nil
}

// A matrix is a transformation matrix of PDF: [a b c d e f].
type matrix [6]float64

var identity = matrix{1, 0, 0, 1, 0, 0}

func (m matrix) times(n matrix) matrix {
	return matrix{
		m[0]*n[0] + m[1]*n[2],
		m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2],
		m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4],
		m[4]*n[1] + m[5]*n[3] + n[5],
	}
}

// pdfText builds lines and words from drawn text and its positions.
type pdfText struct {
	reader     *pdfReader
	text       strings.Builder
	endX, endY float64 // end of the last text
	size       float64 // height of the last text
	any        bool    // text is not empty
}

// drawing is the state of one stream.
type drawing struct {
	page    *pdfText
	fonts   pdf.Value
	forms   pdf.Value
	cache   map[string]*font
	font    *font
	ctm     matrix
	stack   []matrix
	tm, tlm matrix
	size    float64
	leading float64
	spacing float64 // extra space after each letter
	depth   int
}

func (w *pdfText) draw(stream, resources pdf.Value, ctm matrix, depth int) {
	d := &drawing{
		page:  w,
		fonts: resources.Key("Font"),
		forms: resources.Key("XObject"),
		cache: map[string]*font{},
		ctm:   ctm,
		tm:    identity,
		tlm:   identity,
		size:  1,
		depth: depth,
	}
	w.reader.weigh(stream)
	pdf.Interpret(stream, func(stk *pdf.Stack, op string) {
		// The interpreter of the library has no limit, no context and no error.
		w.reader.ops++
		if w.reader.ops > maxOps {
			panic("the PDF contains too much drawing")
		}
		if w.reader.ops%1024 == 0 && w.reader.ctx.Err() != nil {
			panic(context.Cause(w.reader.ctx))
		}
		args := make([]pdf.Value, stk.Len())
		for i := len(args) - 1; i >= 0; i-- {
			args[i] = stk.Pop()
		}
		d.do(op, args)
	})
}

func number(args []pdf.Value, i int) float64 {
	if i >= len(args) {
		return 0
	}
	return args[i].Float64()
}

func sixth(args []pdf.Value) (m matrix) {
	for i := range m {
		m[i] = number(args, i)
	}
	return m
}

// do executes an operator. Operators that do not move text are left out.
func (d *drawing) do(op string, args []pdf.Value) {
	switch op {
	case "q", "Q", "cm", "Do":
		d.graphics(op, args)
	case "BT", "Tf", "TL", "Tc", "Tm", "Td", "TD", "T*":
		d.textState(op, args)
	case "Tj", "'", `"`, "TJ":
		d.showText(op, args)
	}
}

// graphics executes an operator of the graphics state, or draws a form.
func (d *drawing) graphics(op string, args []pdf.Value) {
	switch op {
	case "q":
		if len(d.stack) < 1000 {
			d.stack = append(d.stack, d.ctm)
		}
	case "Q":
		if n := len(d.stack); n > 0 {
			d.ctm = d.stack[n-1]
			d.stack = d.stack[:n-1]
		}
	case "cm":
		d.ctm = sixth(args).times(d.ctm)
	case "Do":
		if len(args) > 0 {
			d.form(d.forms.Key(args[0].Name()))
		}
	}
}

// textState executes an operator that sets the font, its spacing or the position of text.
func (d *drawing) textState(op string, args []pdf.Value) {
	switch op {
	case "BT":
		d.tm = identity
		d.tlm = identity
	case "Tf":
		if len(args) == 2 {
			d.font = d.named(args[0].Name())
			d.size = args[1].Float64()
		}
	case "TL":
		d.leading = number(args, 0)
	case "Tc":
		d.spacing = number(args, 0)

	case "Tm":
		d.tm = sixth(args)
		d.tlm = d.tm
	case "Td":
		d.move(number(args, 0), number(args, 1))
	case "TD":
		d.leading = -number(args, 1)
		d.move(number(args, 0), number(args, 1))
	case "T*":
		d.move(0, -d.leading)
	}
}

// showText executes an operator that shows text, some after a move to the next line.
func (d *drawing) showText(op string, args []pdf.Value) {
	switch op {
	case "Tj":
		d.show(args)
	case "'":
		d.move(0, -d.leading)
		d.show(args)
	case `"`:
		d.move(0, -d.leading)
		d.show(args[min(2, len(args)):])
	case "TJ":
		if len(args) > 0 {
			d.showAll(args[0])
		}
	}
}

func (d *drawing) form(f pdf.Value) {
	if d.depth >= maxForms || f.Key("Subtype").Name() != "Form" {
		return
	}
	m := identity
	if v := f.Key("Matrix"); v.Len() == 6 {
		for i := range m {
			m[i] = v.Index(i).Float64()
		}
	}
	resources := f.Key("Resources")
	d.page.draw(f, resources, m.times(d.ctm), d.depth+1)
}

func (d *drawing) named(name string) *font {
	f, ok := d.cache[name]
	if !ok {
		if v := d.fonts.Key(name); v.Kind() == pdf.Dict {
			f = newFont(v)
		}
		d.cache[name] = f
	}
	return f
}

func (d *drawing) move(x, y float64) {
	d.tlm = matrix{1, 0, 0, 1, x, y}.times(d.tlm)
	d.tm = d.tlm
}

func (d *drawing) show(args []pdf.Value) {
	if len(args) > 0 && args[0].Kind() == pdf.String {
		d.draw(args[0].RawString())
	}
}

// showAll shows strings with moves between them, in thousandths of the font size.
func (d *drawing) showAll(list pdf.Value) {
	for i := range list.Len() {
		switch v := list.Index(i); v.Kind() {
		case pdf.String:
			d.draw(v.RawString())
		case pdf.Integer, pdf.Real:
			d.tm = matrix{1, 0, 0, 1, -v.Float64() / 1000 * d.size, 0}.times(d.tm)
		}
	}
}

// draw writes text at the current position and moves behind it.
func (d *drawing) draw(raw string) {
	if raw == "" {
		return
	}
	text := raw
	if d.font != nil {
		text = d.font.code.Decode(raw)
	}
	text = clean(text)
	at := d.tm.times(d.ctm)
	height := math.Abs(d.size) * math.Hypot(at[2], at[3])
	d.page.add(at[4], at[5], height, text)
	d.tm = matrix{1, 0, 0, 1, d.width(raw, text), 0}.times(d.tm)
	end := d.tm.times(d.ctm)
	d.page.endX = end[4]
	d.page.endY = end[5]
}

// width returns the horizontal advance of a text.
func (d *drawing) width(raw, text string) float64 {
	sum, letters := d.font.measure(raw, text)
	return sum/1000*d.size + float64(letters)*d.spacing
}

// add decides what separates the last text from the next one: nothing, a space, a line break or an
// empty line.
func (w *pdfText) add(x, y, height float64, text string) {
	if w.any {
		line := max(height, w.size, 1)
		dx := x - w.endX
		dy := math.Abs(y - w.endY)
		switch {
		case dy > 1.75*line:
			w.text.WriteString("\n\n")
		case dy > 0.4*line:
			w.text.WriteString("\n")
		// Many PDFs have no spaces: words are only drawn apart from each other.
		case dx > 0.18*line || dx < -2*line:
			if s := w.text.String(); !strings.HasSuffix(s, " ") && !strings.HasPrefix(text, " ") {
				w.text.WriteByte(' ')
			}
		}
	}
	w.text.WriteString(text)
	w.size = height
	w.any = true
	if w.text.Len() > maxText {
		panic("the PDF contains too much text")
	}
}
