package mediatype_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/mediatype"
)

// beginnings are the first bytes of files of a type.
var beginnings = map[string]string{
	"image/png":       "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
	"image/jpeg":      "\xff\xd8\xff\xe0\x00\x10JFIF\x00",
	"image/gif":       "GIF89a\x01\x00\x01\x00",
	"image/webp":      "RIFF\x24\x00\x00\x00WEBPVP8 ",
	"image/bmp":       "BM\x46\x00\x00\x00\x00\x00\x00\x00",
	"image/tiff":      "II*\x00\x08\x00\x00\x00",
	"image/heic":      "\x00\x00\x00\x18ftypheic\x00\x00\x00\x00",
	"image/avif":      "\x00\x00\x00\x1cftypavif\x00\x00\x00\x00",
	"audio/wav":       "RIFF\x24\x00\x00\x00WAVEfmt ",
	"audio/mpeg":      "ID3\x03\x00\x00\x00\x00\x00\x21",
	"audio/flac":      "fLaC\x00\x00\x00\x22",
	"audio/mp4":       "\x00\x00\x00\x20ftypM4A \x00\x00\x00\x00",
	"video/mp4":       "\x00\x00\x00\x20ftypisom\x00\x00\x02\x00",
	"application/pdf": "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n",
	"application/zip": "PK\x03\x04\x14\x00",
}

// The bytes decide, with any stated type.
func TestOf(t *testing.T) {
	for want, data := range beginnings {
		for _, stated := range []string{"", want, "image/png", "image/jpg", "application/octet-stream", "x", "text/plain"} {
			if got := mediatype.Of([]byte(data), stated); got != want {
				t.Errorf("%q, called %s: %q", data, stated, got)
			}
		}
		if got := mediatype.Detect([]byte(data)); got != want {
			t.Errorf("%q: %q", data, got)
		}
	}

	// Without a signature the stated type counts, by its usual name.
	for _, c := range []struct{ data, stated, want string }{
		{"\x01\x02\x03\x04", "image/x-unheard", "image/x-unheard"},
		{"\x01\x02\x03\x04", "Audio/MP3; rate=8000", "audio/mpeg"},
		{"\x01\x02", "", ""},
		{"a,b\n1,2\n", "text/csv; charset=utf-8", "text/csv"},
		{"<html><body>Not found</body></html>", "image/png", "text/plain"},
		{" {\"error\":\"gone\"}", "application/pdf", "text/plain"},
		{"<svg/>", "image/svg+xml", "image/svg+xml"},
		{"{}", "application/json", "application/json"},
		{"BMW is a company", "text/plain", "text/plain"},
		{"BMW is a company", "", ""},
		{"GIF89a is the name of a format.", "text/plain", "text/plain"},
		{"PK\x03\x04\x14\x00", "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
			"application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
		{"\x00\x00\x00\x20ftypisom\x00\x00\x02\x00", "audio/mp4", "audio/mp4"},
	} {
		if got := mediatype.Of([]byte(c.data), c.stated); got != c.want {
			t.Errorf("%q, called %s: %q, want %q", c.data, c.stated, got, c.want)
		}
	}
}

func TestNormal(t *testing.T) {
	for in, want := range map[string]string{
		"image/jpg":                  "image/jpeg",
		"IMAGE/JPG":                  "image/jpeg",
		" image/pjpeg ; q=1":         "image/jpeg",
		"image/png; charset=binary":  "image/png",
		"audio/x-wav":                "audio/wav",
		"application/x-pdf":          "application/pdf",
		"text/html; charset=\"utf-8": "text/html",
		"image/*":                    "",
		"":                           "",
		"image/webp":                 "image/webp",
	} {
		if got := mediatype.Normal(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// All forms in which programs write bytes are read.
func TestDecode(t *testing.T) {
	data := "\xfb\xff\xfe picture?"
	std := base64.StdEncoding.EncodeToString([]byte(data))
	url := base64.URLEncoding.EncodeToString([]byte(data))
	for _, c := range []struct{ in, stated string }{
		{std, ""},
		{url, ""},
		{strings.TrimRight(std, "="), ""},
		{strings.TrimRight(url, "="), ""},
		{std[:8] + "\r\n" + std[8:] + "\n", ""},
		{"data:image/png;base64," + std, "image/png"},
		{"DATA:image/jpg;name=x;BASE64," + strings.TrimRight(url, "="), "image/jpeg"},
		{"data:;base64," + std, ""},
		{"data:audio/wav,%FB%FF%FE%20picture%3F", "audio/wav"},
	} {
		got, stated, err := mediatype.Decode(c.in)
		if string(got) != data || stated != c.stated || err != nil {
			t.Errorf("%s: %q, %q, %v", c.in, got, stated, err)
		}
	}
	for _, bad := range []string{"*", "data:image/png;base64,*", "data:,%zz", "a picture of a cat", "abcde"} {
		if got, _, err := mediatype.Decode(bad); err == nil {
			t.Errorf("%s: %q", bad, got)
		}
	}
}

func TestReadable(t *testing.T) {
	for in, want := range map[string]string{
		"a,b\n1,2\n":             "a,b\n1,2\n",
		"\xef\xbb\xbfcafé":       "café",
		"\xff\xfeh\x00i\x00":     "hi",
		"\xfe\xff\x00h\x00i":     "hi",
		"\x1b[1mbold\x1b[0m":     "\x1b[1mbold\x1b[0m",
		"":                       "",
		"quote \U0001F600 smile": "quote \U0001F600 smile",
	} {
		if got, ok := mediatype.Readable([]byte(in)); !ok || got != want {
			t.Errorf("%q: %q, %v", in, got, ok)
		}
	}
	for _, in := range []string{"a\x00b", "caf\xe9", "\x89PNG\r\n\x1a\n", "\xff\xfe\x00\x00"} {
		if got, ok := mediatype.Readable([]byte(in)); ok {
			t.Errorf("%q is read as %q", in, got)
		}
	}
}
