// Package mediatype finds out what bytes are: the type by their signature, the usual name of a
// type, and the bytes in base64 of any form.
//
// Programs that send media often state a wrong type: a screenshot in JPEG as image/png, or the name
// image/jpg, which is not registered. Providers compare the type with the bytes and refuse the
// whole request. So the bytes decide, and the stated type counts only where they say nothing.
package mediatype

import (
	"bytes"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"
)

// The types that have no signature, or that callers compare with.
const (
	Text   = "text/plain"
	Octets = "application/octet-stream"
	PDF    = "application/pdf"
)

// Of returns the type of data whose sender states a type; the stated type may be empty. The
// signature of the bytes decides. Without one, it is the stated type by its usual name, unless the
// bytes are markup or JSON and the stated type is not a text. An empty type means unknown.
func Of(data []byte, stated string) string {
	kind := Normal(stated)
	if found := Detect(data); found != "" {
		// A text may begin with the letters of a signature, such as ID3.
		if _, readable := Readable(data); readable && IsText(kind) {
			return kind
		}
		return refined(found, kind)
	}
	isNoText := kind != "" && kind != Octets && !IsText(kind)
	if isNoText && isMarkup(data) {
		return Text
	}
	return kind
}

// refined returns the stated type if it is a more exact name of the detected one: the bytes
// identify a container, and not its content.
func refined(detected, stated string) string {
	if slices.Contains(finer[detected], stated) {
		return stated
	}
	return detected
}

// finer are the types whose files begin as another type does.
var finer = map[string][]string{
	"video/mp4":  {"audio/mp4", "video/quicktime", "video/3gpp"},
	"video/webm": {"audio/webm", "video/x-matroska", "audio/x-matroska"},
	"audio/ogg":  {"video/ogg", "audio/opus", "application/ogg"},
	"image/heic": {"image/heif"},
	"image/heif": {"image/heic"},
	"application/zip": {
		"application/vnd.openxmlformats-officedocument.wordprocessingml.document",
		"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
		"application/vnd.openxmlformats-officedocument.presentationml.presentation",
		"application/epub+zip",
		"application/vnd.oasis.opendocument.text",
		"application/vnd.oasis.opendocument.spreadsheet",
	},
}

// signature is the beginning of the files of a type.
type signature struct {
	kind  string
	at    int // the offset of magic
	magic string
}

// signatures are tried in this order. The source is the table of the MIME Sniffing standard, with
// the formats of photographs and documents that it does not have.
var signatures = []signature{
	{"image/png", 0, "\x89PNG\r\n\x1a\n"},
	{"image/jpeg", 0, "\xff\xd8\xff"},
	{"image/gif", 0, "GIF87a"},
	{"image/gif", 0, "GIF89a"},
	{"image/tiff", 0, "II*\x00"},
	{"image/tiff", 0, "MM\x00*"},
	{"image/x-icon", 0, "\x00\x00\x01\x00"},
	{"image/jxl", 0, "\x00\x00\x00\x0cJXL "},
	{"image/jp2", 0, "\x00\x00\x00\x0cjP  "},
	{PDF, 0, "%PDF-"},
	{"audio/mpeg", 0, "ID3"},
	{"audio/mpeg", 0, "\xff\xfb"},
	{"audio/mpeg", 0, "\xff\xfa"},
	{"audio/mpeg", 0, "\xff\xf3"},
	{"audio/mpeg", 0, "\xff\xf2"},
	{"audio/aac", 0, "\xff\xf1"},
	{"audio/aac", 0, "\xff\xf9"},
	{"audio/ogg", 0, "OggS\x00"},
	{"audio/flac", 0, "fLaC"},
	{"audio/midi", 0, "MThd\x00"},
	{"video/webm", 0, "\x1aE\xdf\xa3"},
	{"application/gzip", 0, "\x1f\x8b\x08"},
	{"application/zip", 0, "PK\x03\x04"},
	{"application/zip", 0, "PK\x05\x06"},
}

// riff are the types of files in the format RIFF, by the word at offset 8.
var riff = map[string]string{"WEBP": "image/webp", "WAVE": "audio/wav", "AVI ": "video/x-msvideo"}

// brands are the types of files in the ISO base media format, by the brand at offset 8. Other
// brands are video/mp4.
var brands = map[string]string{
	"heic": "image/heic",
	"heix": "image/heic",
	"hevc": "image/heic",
	"mif1": "image/heif",
	"msf1": "image/heif",
	"avif": "image/avif",
	"avis": "image/avif",
	"M4A ": "audio/mp4",
	"M4B ": "audio/mp4",
	"qt  ": "video/quicktime",
}

// Detect returns the type of data by its signature. Empty means that there is none, as for text.
func Detect(data []byte) string {
	if kind := container(data); kind != "" {
		return kind
	}
	for _, s := range signatures {
		if len(data) >= s.at+len(s.magic) && string(data[s.at:s.at+len(s.magic)]) == s.magic {
			return s.kind
		}
	}

	// Two letters are no signature: a text may begin with BM. Its header has zero bytes.
	head := data[:min(len(data), 32)]
	if bytes.HasPrefix(head, []byte("BM")) && bytes.IndexByte(head, 0) > 0 {
		return "image/bmp"
	}
	return ""
}

// container returns the type of data in a container whose word at offset 8 names what it contains.
func container(data []byte) string {
	if len(data) < 12 {
		return ""
	}
	word := string(data[8:12])
	switch {
	case string(data[:4]) == "RIFF":
		return riff[word]
	case string(data[:4]) == "FORM" && (word == "AIFF" || word == "AIFC"):
		return "audio/aiff"
	case string(data[4:8]) != "ftyp":
		return ""
	}
	if kind := brands[word]; kind != "" {
		return kind
	}
	return "video/mp4"
}

// Normal returns the usual name of a type, in lower case and without parameters. Empty means that
// there is none.
func Normal(name string) string {
	kind, _, err := mime.ParseMediaType(name)
	if err != nil {
		kind, _, _ = strings.Cut(strings.ToLower(name), ";")
		kind = strings.TrimSpace(kind)
	}
	if usual, ok := names[kind]; ok {
		return usual
	}
	return kind
}

// names are the usual names of types with several names. An empty one says nothing.
var names = map[string]string{
	"image/jpg":                "image/jpeg",
	"image/pjpeg":              "image/jpeg",
	"image/jfif":               "image/jpeg",
	"image/x-png":              "image/png",
	"image/x-bmp":              "image/bmp",
	"image/x-ms-bmp":           "image/bmp",
	"image/tif":                "image/tiff",
	"image/vnd.microsoft.icon": "image/x-icon",
	"audio/mp3":                "audio/mpeg",
	"audio/x-mp3":              "audio/mpeg",
	"audio/mpeg3":              "audio/mpeg",
	"audio/x-mpeg":             "audio/mpeg",
	"audio/wave":               "audio/wav",
	"audio/x-wav":              "audio/wav",
	"audio/vnd.wave":           "audio/wav",
	"audio/x-aiff":             "audio/aiff",
	"audio/x-flac":             "audio/flac",
	"audio/x-aac":              "audio/aac",
	"audio/m4a":                "audio/mp4",
	"audio/x-m4a":              "audio/mp4",
	"video/avi":                "video/x-msvideo",
	"application/x-pdf":        PDF,
	"application/x-gzip":       "application/gzip",
	"application/x-zip":        "application/zip",
	"text/json":                "application/json",
	"text/x-markdown":          "text/markdown",
	"binary/octet-stream":      Octets,
	"application/binary":       Octets,
	"image/*":                  "",
	"audio/*":                  "",
	"video/*":                  "",
	"*/*":                      "",
}

// HasSignature reports whether files of a type begin with a signature that Detect knows. Bytes
// without it are not of the type.
func HasSignature(kind string) bool {
	return kind == "image/bmp" || kind == "image/webp" || kind == "audio/wav" ||
		slices.ContainsFunc(signatures, func(s signature) bool { return s.kind == kind && kind != "audio/mpeg" })
}

// textual are the types beyond text/* whose bytes are text.
var textual = []string{
	"application/json", "application/xml", "application/javascript", "application/ecmascript", "application/x-javascript",
	"application/x-ndjson", "application/jsonl", "application/yaml", "application/x-yaml", "application/toml",
	"application/sql", "application/x-sh", "application/graphql", "application/x-www-form-urlencoded",
}

// IsText reports whether data of a type is text.
func IsText(kind string) bool {
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") ||
		slices.Contains(textual, kind)
}

// Readable returns data as text. It reports false if the bytes are no text: UTF-8, or UTF-16 that
// begins with a byte order mark. The mark is removed.
func Readable(data []byte) (string, bool) {
	if wide, ok := fromUTF16(data); ok {
		return wide, true
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(data) || bytes.ContainsFunc(data, isBinary) {
		return "", false
	}
	return string(data), true
}

// isBinary reports whether r does not occur in texts, where escape sequences of terminals may
// occur.
func isBinary(r rune) bool { return r < 0x20 && !strings.ContainsRune("\t\n\v\f\r\b\x1b", r) }

// isMarkup reports whether data is text that begins as a page, XML or JSON does.
func isMarkup(data []byte) bool {
	head := bytes.TrimLeft(data, " \t\r\n")
	if len(head) == 0 || !bytes.ContainsRune([]byte("<{["), rune(head[0])) {
		return false
	}
	_, ok := Readable(data)
	return ok
}
