package anthropic

import (
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/wire"
)

var errTooLarge = errors.New("the file is larger than a request may be, 32 MiB")

// maxFile is the size of the largest file that is read: that of a request.
const maxFile = 32 << 20

// fromMedia writes an image or a document. The URL may be an address, a data: URI, or, where the user's own words have it
// (local), a path: one that begins with /, ./, ../ or ~/, or a file: URL.
func fromMedia(e *encoder, where string, m pawl.Media, local bool) {
	if file, ok := localPath(m.URL); ok {
		if !local {
			e.Fail(unsupported(where, "a result cannot name a local file: a tool that may read it can give its bytes"))
			return
		}
		var err error
		if m, err = readFile(m.MIME, file); err != nil {
			e.Fail(invalid(where, "%v", err))
			return
		}
	}
	if rest, ok := strings.CutPrefix(m.URL, "data:"); ok {
		head, data, _ := strings.Cut(rest, ",")
		kind, isBase64 := strings.CutSuffix(head, ";base64")
		kind, _, _ = strings.Cut(kind, ";")
		var err error
		if isBase64 {
			m.Data, err = base64.StdEncoding.DecodeString(data)
		} else {
			var s string
			s, err = url.PathUnescape(data)
			m.Data = []byte(s)
		}
		if err != nil {
			e.Fail(invalid(where, "the data: URI cannot be read"))
			return
		}
		if m.URL = ""; m.MIME == "" {
			m.MIME = kind
		}
	}
	kind := m.MIME
	if kind == "" && m.URL != "" {
		if u, err := url.Parse(m.URL); err == nil && strings.EqualFold(path.Ext(u.Path), ".pdf") {
			kind = "application/pdf"
		}
	}
	switch {
	case wire.FileID(m.URL) && strings.HasPrefix(m.URL, "file-"):
		e.Fail(unsupported(where, "%s is a file at OpenAI; those at Anthropic begin with file_", m.URL))
	case wire.FileID(m.URL):
		block := "document"
		if strings.HasPrefix(kind, "image/") {
			block = "image"
		}
		e.Raw(`{"type":"` + block + `","source":{"type":"file","file_id":`)
		e.String(m.URL)
	case m.URL != "" && (kind == "" || strings.HasPrefix(kind, "image/")):
		e.Raw(`{"type":"image","source":{"type":"url","url":`)
		e.String(m.URL)
	case m.URL != "" && kind == "application/pdf":
		e.Raw(`{"type":"document","source":{"type":"url","url":`)
		e.String(m.URL)
	case m.URL != "":
		e.Fail(unsupported(where, "Anthropic takes images and PDF documents by URL, not %s", kind))
	case kind == "image/jpeg" || kind == "image/png" || kind == "image/gif" || kind == "image/webp":
		e.Raw(`{"type":"image","source":{"type":"base64","media_type":"`)
		e.Raw(kind)
		e.Raw(`","data":"`)
		e.Base64(m.Data)
		e.Raw(`"`)
	case kind == "application/pdf":
		e.Raw(`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"`)
		e.Base64(m.Data)
		e.Raw(`"`)
	case strings.HasPrefix(kind, "text/") || kind == "application/json":
		e.Raw(`{"type":"document","source":{"type":"text","media_type":"text/plain","data":`)
		e.Bytes(m.Data)
	case strings.HasPrefix(kind, "image/"):
		e.Fail(unsupported(where, "Anthropic takes images of type image/jpeg, image/png, image/gif and image/webp, not %s", kind))
	default:
		e.Fail(unsupported(where, "Anthropic takes images, PDF documents and text, not media of type %q", kind))
	}
	e.Raw(`}}`)
}

// localPath reports whether a URL is a path of this machine.
func localPath(s string) (string, bool) {
	if rest, ok := strings.CutPrefix(s, "file://"); ok {
		if p, err := url.PathUnescape(rest); err == nil {
			rest = p
		}
		return strings.TrimPrefix(rest, "localhost"), true
	}
	for _, prefix := range []string{"/", "./", "../", "~/"} {
		if strings.HasPrefix(s, prefix) && !strings.HasPrefix(s, "//") {
			return s, true
		}
	}
	return "", false
}

// readFile reads a file of the user's; kind is its type where that is known.
func readFile(kind, name string) (pawl.Media, error) {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return pawl.Media{}, err
		}
		name = filepath.Join(home, rest)
	}
	f, err := os.Open(name)
	if err != nil {
		return pawl.Media{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return pawl.Media{}, err
	}
	if len(data) > maxFile {
		return pawl.Media{}, &os.PathError{Op: "read", Path: name, Err: errTooLarge}
	}
	if kind == "" {
		kind, _, _ = strings.Cut(typeOf(name), ";")
	}
	return pawl.Media{MIME: kind, Data: data}, nil
}

// typeOf is the type that a file's name tells. The usual ones do not depend on the machine's tables.
func typeOf(name string) string {
	switch ext := strings.ToLower(filepath.Ext(name)); ext {
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".png":
		return "image/png"
	case ".gif":
		return "image/gif"
	case ".webp":
		return "image/webp"
	case ".pdf":
		return "application/pdf"
	case ".txt", ".md", ".csv", ".log", ".yaml", ".yml", ".go", ".py":
		return "text/plain"
	default:
		return mime.TypeByExtension(ext)
	}
}
