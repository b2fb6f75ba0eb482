package document_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/tools/internal/document"
)

// text returns everything that was read as one line.
func text(d *document.Document) string {
	var b strings.Builder
	for _, k := range d.Blocks {
		b.WriteString(k.Heading + "\n" + k.Head + "\n" + k.Text + "\n" + strings.Join(k.Rows, "\n") + "\n")
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// Ten samples of each format: under their own name, without name, and under a name of another
// format.
func TestSamples(t *testing.T) {
	for _, k := range kinds {
		for i := range 10 {
			data := k.write(i)
			for _, name := range []string{"dir/sample" + k.ending, "https://example.com/sample" + k.ending + "?v=1", "", "sample.pdf", "sample.docx"} {
				d, err := document.Read(t.Context(), name, data)
				if err != nil {
					t.Errorf("%s %d as %q: %v", k.name, i, name, err)
					continue
				}
				if named := strings.Contains(name, k.ending) || k.ending != ".md" && k.ending != ".txt" &&
					k.ending != ".csv"; named && d.Kind != k.kind {
					t.Errorf("%s %d as %q is read as %s", k.name, i, name, d.Kind)
				}
				if foreign := strings.HasPrefix(name, "sample.") && name != "sample"+k.ending; foreign != (len(d.Notes) > 0) {
					t.Errorf("%s %d as %q: notes %q", k.name, i, name, d.Notes)
				}
				all := strings.ReplaceAll(text(d), `""`, `"`)
				for _, f := range facts(i) {
					if !strings.Contains(all, f) && !strings.Contains(all, quoted(f)) {
						t.Errorf("%s %d as %q: %q is lost in %q", k.name, i, name, f, all)
					}
				}
				if strings.Contains(all, "evil()") || strings.Contains(all, "deleted words") {
					t.Errorf("%s %d: %q is no text of it", k.name, i, all)
				}
			}
		}
	}
}

// quoted returns s as it appears inside JSON.
func quoted(s string) string {
	b, _ := json.Marshal(s)
	return strings.Trim(string(b), `"`)
}

func TestStructure(t *testing.T) {
	read := func(name string, data []byte) *document.Document {
		t.Helper()
		d, err := document.Read(t.Context(), name, data)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := read("x.docx", sampleDOCX(3))
	if d.Title != "Title 3" {
		t.Errorf("the title is %q", d.Title)
	}
	want := []document.Block{
		{Heading: "Handbook number 3", Text: facts(3)[1]},
		{Heading: "Handbook number 3 > Prices", Text: facts(3)[2]},
		{Heading: "Handbook number 3 > Prices", Form: document.Rows, Head: "| who | what |\n|---|---|", Rows: []string{"| x | " + facts(3)[3] + " |"}},
		{Heading: "Footnotes", Text: "A note at the foot."},
	}
	if diff := cmp.Diff(want, d.Blocks); diff != "" {
		t.Errorf("docx: -want +got\n%s", diff)
	}
	d = read("x.pdf", samplePDF(2))
	want = []document.Block{{Heading: "page 1", Text: "Handbook number 2\nsecond line"}, {Heading: "page 1", Text: "another paragraph"}}
	if diff := cmp.Diff(want, d.Blocks[:2]); diff != "" || d.Title != "Title 2" || len(d.Blocks) != 8 {
		t.Errorf("pdf %q: -want +got\n%s", d.Title, diff)
	}
	d = read("x.md", []byte("---\ntitle: \"The Book\"\n---\n# One\n## Two\n# Three\n\nBody\ngoes on.\n\nUnder\n-----\n\n```sh\n# no heading\n\nls\n```\n\n#nor this\n\n#### Last\n"))
	want = []document.Block{{Form: document.Code, Text: `title: "The Book"`}, {Heading: "One", Text: "Two"}, {Heading: "Three", Text: "Body\ngoes on."},
		{Heading: "Three > Under", Form: document.Code, Text: "```sh\n# no heading\n\nls\n```"}, {Heading: "Three > Under", Text: "#nor this"}, {Heading: "Three > Under", Text: "Last"}}
	if diff := cmp.Diff(want, d.Blocks); diff != "" || d.Title != "The Book" {
		t.Errorf("markdown %q: -want +got\n%s", d.Title, diff)
	}
	long := strings.Repeat("long ", 400)
	d = read("x.json", []byte(`{"a":1.00,"b":{"list":[1, {"x":"y  z"}],"text":"`+long+`"}}`))
	want = []document.Block{{Form: document.Rows, Rows: []string{`"a": 1.00`}}, {Heading: "b", Form: document.Rows, Rows: []string{`"list": [1,{"x":"y  z"}]`}},
		{Heading: "b > text", Text: strings.TrimSpace(long)}}
	if diff := cmp.Diff(want, d.Blocks); diff != "" {
		t.Errorf("json: -want +got\n%s", diff)
	}
	d = read("x.csv", []byte("a;b\n1;\"two\nlines\"\n;\n3;4\n"))
	want = []document.Block{{Form: document.Rows, Head: "a,b", Rows: []string{"1,\"two\nlines\"", "3,4"}}}
	if diff := cmp.Diff(want, d.Blocks); diff != "" {
		t.Errorf("csv: -want +got\n%s", diff)
	}
	d = read("x.txt", []byte("\xff\xfeh\x00i\x00"))
	if text(d) != "hi" {
		t.Errorf("UTF-16 is %q", text(d))
	}
	if d = read("x.json", []byte("{broken")); len(d.Notes) != 1 || d.Kind != "text/plain" {
		t.Errorf("what is named JSON and is none: %s, %q", d.Kind, d.Notes)
	}
}

// Words placed one by one, whole lines, and letters of two bytes.
func TestPDFLayout(t *testing.T) {
	for _, row := range []struct{ draws, want string }{
		{"BT /F1 12 Tf 72 700 Td (Hello) Tj 31 0 Td (world) Tj 0 -14 Td (again) Tj ET", "Hello world\nagain"},
		{"BT /F1 12 Tf 1 0 0 1 72 700 Tm [(He) 20 (llo) -278 (wor) 15 (ld)] TJ ET", "Hello world"},
		{"q .5 0 0 -.5 0 800 cm BT /F1 24 Tf 1 0 0 -1 72 100 Tm (one) Tj 1 0 0 -1 72 128 Tm (two) Tj ET Q BT /F1 12 Tf 72 500 Td (three) Tj ET", "one\ntwo\n\nthree"},
		{"BT /F1 12 Tf 14 TL 72 700 Td (one) Tj T* (two) Tj (three) ' 1 2 (four) \" ET", "one\ntwo\nthree\nfour"},
		{"BT /F1 12 Tf 72 700 Td (a) Tj ET Q Q Q BT 72 686 Td (b\\(c\\)) Tj ET", "a\nb(c)"},
	} {
		d, err := document.Read(t.Context(), "", writePDF("", false, row.draws))
		if err != nil {
			t.Errorf("%s: %v", row.draws, err)
			continue
		}
		var got []string
		for _, b := range d.Blocks {
			got = append(got, b.Text)
		}
		if diff := cmp.Diff(row.want, strings.Join(got, "\n\n")); diff != "" {
			t.Errorf("%s: -want +got\n%s", row.draws, diff)
		}
	}
}

// A file that cannot be read is refused quickly, with a text for a person.
func TestRefused(t *testing.T) {
	soak.Sequential(t)
	zeros := strings.Repeat("0", 40<<20)
	gzipped := new(bytes.Buffer)
	z := gzip.NewWriter(gzipped)
	z.Write([]byte("hello"))
	z.Close()
	good := string(writePDF("t", false, "BT /F1 12 Tf (x) Tj ET"))
	for _, row := range []struct {
		what, name string
		data       []byte
		want       string
	}{
		{"100 MB", "big.txt", make([]byte, 100_000_000), "100000000 bytes"},
		{"nothing", "x.txt", []byte(" \n"), "empty"},
		{"a nested archive", "x.docx", writeDOCX(map[string]string{"a.zip": string(writeDOCX(map[string]string{"b.zip": "PK\x03\x04"}))}), "an archive of archives"},
		{"an archive inside of one", "x.docx", writeDOCX(map[string]string{"word/document.xml": string(writeDOCX(map[string]string{"word/document.xml": "<w:p/>"}))}), "document.xml"},
		{"a bomb", "x.docx", writeDOCX(map[string]string{"word/document.xml": "<w:document>" + zeros}), "unpacks to more than 32 MiB"},
		{"a bomb of styles", "x.docx", writeDOCX(map[string]string{"word/document.xml": "<d/>", "word/styles.xml": zeros}), "unpacks to more than 32 MiB"},
		{"deep elements", "x.docx", writeDOCX(map[string]string{"word/document.xml": strings.Repeat("<a>", 100_000)}), "deep"},
		{"deep paragraphs", "x.docx", writeDOCX(map[string]string{"word/document.xml": "<p>" + strings.Repeat("<a>", 100_000)}), "deep"},
		{"entities", "x.docx", writeDOCX(map[string]string{"word/document.xml": `<!DOCTYPE a [<!ENTITY x "y">]><p><t>&x;</t></p>`}), "document.xml"},
		{"a cut archive", "x.docx", sampleDOCX(1)[:500], "broken archive"},
		{"an Excel workbook", "x.xlsx", writeDOCX(map[string]string{"xl/workbook.xml": "<x/>"}), "Excel"},
		{"an old Office file", "x.doc", []byte("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1...."), "old form"},
		{"an encrypted Office file", "x.docx", []byte("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1..E\x00n\x00c\x00r\x00y\x00p\x00t\x00e\x00d\x00P\x00a\x00c\x00k\x00a\x00g\x00e\x00"), "encrypted"},
		{"an image", "x.txt", []byte("\x89PNG\r\n\x1a\n\x00\x00"), "image/png"},
		{"gzip", "x.json", gzipped.Bytes(), "application/x-gzip"},
		{"bytes", "x.md", []byte("a\x00b\x01\x02"), "no document"},
		{"an encrypted PDF", "x.pdf", []byte(strings.Replace(good, "/Root 1 0 R", "/Root 1 0 R /ID [(a)(b)] /Encrypt << /Filter /Standard /V 1 /R 2 /O ("+strings.Repeat("o", 32)+") /U ("+strings.Repeat("u", 32)+") /P -4 >>", 1)), "encrypted"},
		{"an encryption of a newer kind", "x.pdf", []byte(strings.Replace(good, "/Root 1 0 R", "/Root 1 0 R /ID [(a)(b)] /Encrypt << /Filter /Standard /V 5 /R 6 >>", 1)), "encrypted"},
		{"a PDF that is cut", "x.pdf", []byte(good[:300]), "cannot be read"},
		{"a PDF of pictures", "x.pdf", writePDF("t", false, "q Q"), "pictures"},
		{"a PDF without pages", "x.pdf", writePDF("t", false), "no "},
		{"pages in circles", "x.pdf", []byte(strings.Replace(good, "/Kids [5 0 R]", "/Kids [2 0 R]", 1)), "cycle"},
		{"a giant size", "x.pdf", []byte(strings.Replace(good, "/Size 7", "/Size 99999999999", 1)), "impossible sizes"},
		{"a giant size in other letters", "x.pdf", []byte(strings.Replace(good, "/Size 7", "/#53ize%x\n 99999999999", 1)), "impossible sizes"},
		{"a giant section", "x.pdf", []byte(strings.Replace(good, "xref\n0 7", "xref\n99999999999 7", 1)), "impossible sizes"},
		{"lists in lists", "x.pdf", []byte(strings.Replace(good, "(x) Tj", strings.Repeat("[", 1_000_000), 1)), "nested lists"},
		{"packed lists in lists", "x.pdf", writePDF("t", true, strings.Repeat("[", 1_000_000)), "nested lists"},
	} {
		began := time.Now()
		d, err := document.Read(t.Context(), row.name, row.data)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, %v; want %q", row.what, d, err, row.want)
		}
		if took := time.Since(began); took > 5*time.Second || took > time.Second &&
			(strings.Contains(row.what, "100") || strings.Contains(row.what, "archive")) {
			t.Errorf("%s: refused after %v", row.what, took)
		}
		if err != nil && strings.Contains(err.Error(), "goroutine") {
			t.Errorf("%s: a stack is no message: %v", row.what, err)
		}
	}
}

// The unpacked size of a PDF is limited, over all its streams.
func TestPDFBomb(t *testing.T) {
	page := "BT (x) Tj ET" + strings.Repeat(" ", 1<<20)
	bomb := writePDF("t", true, page, page, page, page)
	if err := document.GuardPDF(bomb, 3<<20); err == nil || !strings.Contains(err.Error(), "unpacks to more than 3 MiB") {
		t.Errorf("%d bytes that unpack to 4 MiB: %v", len(bomb), err)
	}
	if err := document.GuardPDF(bomb, 5<<20); err != nil {
		t.Errorf("where 5 MiB are allowed: %v", err)
	}
}

func TestEnded(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	for _, data := range [][]byte{samplePDF(1), sampleDOCX(1), sampleText(1)} {
		if _, err := document.Read(ctx, "", data); err == nil || !strings.Contains(err.Error(), "enough") {
			t.Errorf("%v", err)
		}
	}
}

func ExampleRead() {
	d, err := document.Read(context.Background(), "handbook.md", []byte("# Handbook\n\n## Leave\n\nEverybody has twelve days.\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range document.Chunks(d.Blocks, 0, 0) {
		fmt.Printf("%s: %s\n", c.Heading, c.Text)
	}
	// Output:
	// Handbook > Leave: Everybody has twelve days.
}

func FuzzRead(f *testing.F) {
	for _, k := range kinds {
		f.Add("x"+k.ending, k.write(1))
		f.Add("", k.write(2))
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		d, err := document.Read(t.Context(), name, data)
		if err != nil {
			return
		}
		for _, c := range document.Chunks(d.Blocks, 0, 0) {
			if len(c.Text) > document.DefaultMax || strings.TrimSpace(c.Text) == "" || c.Overlap >= len(c.Text) {
				t.Errorf("a chunk of %d bytes, overlap %d", len(c.Text), c.Overlap)
			}
		}
	})
}
