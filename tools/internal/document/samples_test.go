package document_test

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
)

// facts returns the content of sample i in each format. All of it must be found after reading.
func facts(i int) []string {
	return []string{
		fmt.Sprintf("Handbook number %d", i),
		fmt.Sprintf("The office in room %d opens at %d:30, and closes late.", 100+i, i%12),
		fmt.Sprintf("Crème brûlée costs %d.50 €.", i),
		fmt.Sprintf("Employee %d has twelve days of leave.", i*7),
	}
}

// kinds lists, for each format, how a sample is written and how it is read.
var kinds = []struct {
	name, ending, kind string
	write              func(i int) []byte
	lost               []string // facts that the format cannot contain, or writes differently
}{
	{"text", ".txt", "text/plain", sampleText, nil},
	{"markdown", ".md", "text/markdown", sampleMarkdown, nil},
	{"html", ".html", "text/html", sampleHTML, nil},
	{"csv", ".csv", "text/csv", sampleCSV, nil},
	{"json", ".json", "application/json", sampleJSON, nil},
	{"jsonl", ".jsonl", "application/x-ndjson", sampleJSONL, nil},
	{"pdf", ".pdf", "application/pdf", samplePDF, nil},
	{"docx", ".docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", sampleDOCX, nil},
}

func sampleText(i int) []byte { return []byte(strings.Join(facts(i), "\n\n") + "\n") }

func sampleMarkdown(i int) []byte {
	f := facts(i)
	return fmt.Appendf(nil, "# %s\n\n%s\n\n## Prices\n\n%s\n\n| who | what |\n|---|---|\n| x | %s |\n", f[0], f[1], f[2], f[3])
}

func sampleHTML(i int) []byte {
	f := facts(i)
	return fmt.Appendf(nil, "<!DOCTYPE html><html><head><title>%s</title><meta charset=utf-8><style>p{}</style></head><body><h1>%s</h1><p>%s</p><h2>Prices</h2><p>%s</p><p>%s</p><script>evil()</script></body></html>",
		f[0], f[0], f[1], f[2], f[3])
}

func sampleCSV(i int) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.Write([]string{"n", "fact"})
	for n, f := range facts(i) {
		w.Write([]string{fmt.Sprint(n), f})
	}
	w.Flush()
	return b.Bytes()
}

func sampleJSON(i int) []byte {
	b, _ := json.MarshalIndent(map[string]any{"facts": facts(i), "n": i}, "", "\t")
	return b
}

func sampleJSONL(i int) []byte {
	var b bytes.Buffer
	for _, f := range facts(i) {
		line, _ := json.Marshal(map[string]any{"fact": f})
		b.Write(append(line, '\n'))
	}
	return b.Bytes()
}

// samplePDF writes a PDF by hand: one fact per page, in WinAnsi. Every second sample has compressed
// streams. Every third shows its words in pieces.
func samplePDF(i int) []byte {
	var pages []string
	for _, f := range facts(i) {
		raw := strings.NewReplacer("è", "\xe8", "û", "\xfb", "é", "\xe9", "€", "\x80", "(", `\(`, ")", `\)`).Replace(f)
		show := "(" + raw + ") Tj"
		if i%3 == 0 {
			words := strings.Fields(raw)
			show = "[(" + strings.Join(words, ") -300 (") + ")] TJ"
		}
		pages = append(pages, "BT /F1 12 Tf 72 720 Td "+show+" 0 -14 Td (second line) Tj 0 -40 Td (another paragraph) Tj ET")
	}
	return writePDF(fmt.Sprintf("Title %d", i), i%2 == 0, pages...)
}

// writePDF writes a file whose pages draw the given pages.
func writePDF(title string, packed bool, pages ...string) []byte {
	var b bytes.Buffer
	var offsets []int
	object := func(body string) {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", len(offsets), body)
	}
	b.WriteString("%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
	var kids []string
	for i := range pages {
		kids = append(kids, fmt.Sprintf("%d 0 R", 5+2*i))
	}
	object("<< /Type /Catalog /Pages 2 0 R >>")
	object(fmt.Sprintf("<< /Type /Pages /Kids [%s] /Count %d >>", strings.Join(kids, " "), len(pages)))
	object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
	object("<< /Title (" + title + ") >>")
	for i, p := range pages {
		object(fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>", 6+2*i))
		filter := ""
		if packed {
			var z bytes.Buffer
			w, _ := zlib.NewWriterLevel(&z, zlib.BestSpeed)
			w.Write([]byte(p))
			w.Close()
			p, filter = z.String(), " /Filter /FlateDecode"
		}
		object(fmt.Sprintf("<< /Length %d%s >>\nstream\n%s\nendstream", len(p), filter, p))
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, o := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R /Info 4 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, start)
	return b.Bytes()
}

func sampleDOCX(i int) []byte {
	f := facts(i)
	return writeDOCX(map[string]string{
		"docProps/core.xml": `<cp:coreProperties xmlns:cp="c" xmlns:dc="d"><dc:title>` + fmt.Sprintf("Title %d", i) + `</dc:title></cp:coreProperties>`,
		"word/styles.xml":   `<w:styles xmlns:w="w"><w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style><w:style w:styleId="berschrift2"><w:name w:val="heading 2"/></w:style></w:styles>`,
		"word/document.xml": `<?xml version="1.0" encoding="UTF-8"?><w:document xmlns:w="w"><w:body>` +
			p("berschrift1", f[0]) + p("", f[1][:10], f[1][10:]) + p("berschrift2", "Prices") + p("", f[2]) +
			`<w:tbl><w:tr><w:tc>` + p("", "who") + `</w:tc><w:tc>` + p("", "what") + `</w:tc></w:tr><w:tr><w:tc>` + p("", "x") + `</w:tc><w:tc>` + p("", f[3]) + `</w:tc></w:tr></w:tbl>` +
			`<w:p><w:del><w:r><w:delText>deleted words</w:delText></w:r></w:del></w:p></w:body></w:document>`,
		"word/footnotes.xml": `<w:footnotes xmlns:w="w"><w:footnote>` + p("", "A note at the foot.") + `</w:footnote></w:footnotes>`,
	})
}

// p returns a paragraph of runs.
func p(style string, runs ...string) string {
	var b strings.Builder
	b.WriteString("<w:p>")
	if style != "" {
		b.WriteString(`<w:pPr><w:pStyle w:val="` + style + `"/></w:pPr>`)
	}
	for _, r := range runs {
		b.WriteString(`<w:r><w:t xml:space="preserve">` + r + `</w:t></w:r>`)
	}
	return b.String() + "</w:p>"
}

func writeDOCX(parts map[string]string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range parts {
		w, _ := z.Create(name)
		w.Write([]byte(text))
	}
	z.Close()
	return b.Bytes()
}
