package wire

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-go/pawl/internal/mediatype"
	"github.com/pawl-go/pawl/llm"
)

// maxLocal is the largest local file that a request can contain. No provider accepts more.
const maxLocal = 20 << 20

// ReadMedia returns media with the bytes of a data: URI, or of a file of this machine if local
// allows one. An image has the usual name of the type that its bytes have.
func ReadMedia(m llm.Media, local bool) (llm.Media, error) {
	var err error
	switch {
	case !IsLocal(m.URL):
		m, err = ReadDataURI(m)
	case !local:
		err = errors.New("only a user's message can name a local file")
	default:
		m, err = ReadLocal(m)
	}

	// APIs compare the type with the bytes, and refuse the names that browsers and phones use.
	stated := mediatype.Normal(m.MIME)
	if kind := mediatype.Of(m.Data, stated); isImage(stated) && isImage(kind) {
		m.MIME = kind
	}
	return m, err
}

// IsLocal reports whether the address of a Media is a file of this machine: /x, ./x, ../x, ~/x or
// file:///x. Adapters read files only for messages of the user: tools and models must not be able
// to name files.
func IsLocal(address string) bool {
	for _, prefix := range [...]string{"/", "./", "../", "~/", "file:///"} {
		if strings.HasPrefix(address, prefix) {
			return !strings.HasPrefix(address, "//")
		}
	}
	return false
}

// FileID reports whether the address of a Media is the id of a file uploaded to a provider:
// "file-" (OpenAI) or "file_" (Anthropic), followed by letters, digits, - and _.
func FileID(address string) bool {
	id, ok := strings.CutPrefix(address, "file")
	if !ok || len(id) < 2 || !strings.ContainsRune("-_", rune(id[0])) {
		return false
	}
	return strings.Trim(id, Alphanumeric+"-_") == ""
}

// ReadLocal returns m with the content of its local file, of at most 20 MiB. If m has no type, the
// extension decides. Other Media are returned unchanged.
func ReadLocal(m llm.Media) (llm.Media, error) {
	if !IsLocal(m.URL) {
		return m, nil
	}
	path := m.URL
	if strings.HasPrefix(path, "file:") {
		u, err := url.Parse(path)
		if err != nil {
			return m, err
		}
		path = filepath.FromSlash(u.Path)
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return m, err
		}
		path = filepath.Join(home, rest)
	}
	if m.MIME == "" {
		m.MIME = MIMEByName(path)
		if m.MIME == "" {
			return m, fmt.Errorf("the type of %s is unknown: set MIME", filepath.Base(path))
		}
	}

	// The size is checked before the file is read: a device or a large file would fill the memory.
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return m, err
	case !info.Mode().IsRegular():
		return m, fmt.Errorf("%s is not a file", filepath.Base(path))
	case info.Size() > maxLocal:
		return m, fmt.Errorf("%s has %d bytes, more than the %d that can be sent", filepath.Base(path), info.Size(), maxLocal)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return m, err
	}
	return llm.Media{MIME: m.MIME, Data: b}, nil
}

// MIMEByName returns the type for the extension of a path or address; "" means unknown. It is the
// same on all machines.
func MIMEByName(name string) string {
	if i := strings.IndexAny(name, "?#"); i >= 0 && !IsLocal(name) {
		name = name[:i]
	}
	ext := strings.ToLower(filepath.Ext(name))
	return byEnding[ext]
}

var byEnding = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".heic": "image/heic", ".heif": "image/heif",
	".pdf": "application/pdf", ".md": "text/markdown", ".csv": "text/csv", ".html": "text/html",
	".json": "application/json", ".xml": "text/xml",
	".txt": "text/plain", ".log": "text/plain", ".yaml": "text/plain", ".yml": "text/plain", ".go": "text/plain", ".py": "text/plain",
	".wav": "audio/wav", ".mp3": "audio/mpeg", ".flac": "audio/flac", ".ogg": "audio/ogg", ".aac": "audio/aac", ".aiff": "audio/aiff", ".m4a": "audio/mp4",
	".mp4": "video/mp4", ".webm": "video/webm", ".mov": "video/quicktime", ".mpeg": "video/mpeg",
}

// ReadDataURI decodes the data: URI of m. The URI's media type applies only if m has none. Other
// Media are returned unchanged.
func ReadDataURI(m llm.Media) (llm.Media, error) {
	rest, ok := strings.CutPrefix(m.URL, "data:")
	if !ok {
		return m, nil
	}
	head, data, ok := strings.Cut(rest, ",")
	if !ok {
		return m, errors.New("the data: URI has no comma")
	}
	head, encoded := strings.CutSuffix(head, ";base64")
	mime, _, _ := strings.Cut(head, ";")
	mime = cmp.Or(mime, "text/plain")
	// The program knows its file better than the author of the URI.
	if m.MIME != "" {
		mime = m.MIME
	}
	var b []byte
	var err error
	if encoded {
		b, err = mediatype.Base64(data)
	} else {
		var text string
		text, err = url.PathUnescape(data)
		b = []byte(text)
	}
	if err != nil {
		return m, errors.New("the data: URI cannot be read")
	}
	return llm.Media{MIME: mime, Data: b}, nil
}
