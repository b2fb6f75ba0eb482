package file

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// magic lists how common files that are not text begin.
var magic = []struct{ prefix, kind string }{
	{"\x89PNG\r\n\x1a\n", "a PNG image"},
	{"\xff\xd8\xff", "a JPEG image"},
	{"GIF87a", "a GIF image"},
	{"GIF89a", "a GIF image"},
	{"%PDF-", "a PDF document"},
	{"PK\x03\x04", "a ZIP archive, or a document in one (docx, xlsx, jar)"},
	{"\x1f\x8b", "a gzip file"},
	{"BZh", "a bzip2 file"},
	{"\xfd7zXZ\x00", "an xz file"},
	{"\x28\xb5\x2f\xfd", "a zstd file"},
	{"7z\xbc\xaf\x27\x1c", "a 7z archive"},
	{"\x7fELF", "an ELF program"},
	{"MZ", "a Windows program"},
	{"\xcf\xfa\xed\xfe", "a Mach-O program"},
	{"\x00asm", "a WebAssembly module"},
	{"SQLite format 3\x00", "an SQLite database"},
	{"PAR1", "a Parquet file"},
	{"\xff\xfe", "UTF-16 text"},
	{"\xfe\xff", "UTF-16 text"},
}

// binary returns the kind of a file that begins with head, or "" if it is text. Text in a one-byte
// encoding is not UTF-8 either, but has no control characters. Compressed or compiled files soon
// contain both.
func binary(head []byte) string {
	odd := bytes.IndexByte(head, 0) >= 0
	if !odd && !validPrefix(head) {
		odd = bytes.ContainsFunc(head, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\n\r\f\x1b", r) })
	}
	for _, m := range magic {
		// A short prefix could also begin a text ("MZ", "BZh", "%PDF-"), so the rest must look
		// binary as well.
		if bytes.HasPrefix(head, []byte(m.prefix)) && (odd || !validPrefix(head)) {
			return m.kind
		}
	}
	if odd {
		return "binary data"
	}
	return ""
}

// validPrefix reports whether b is UTF-8, ignoring a rune cut off at its end.
func validPrefix(b []byte) bool {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			return !utf8.FullRune(b)
		}
		b = b[n:]
	}
	return true
}
