package anthropic

import (
	"net/url"
	"path"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// fromMedia writes an image or a document. Its URL is an address or a data: URI. In a user's
// message (local) it may also be a path that begins with /, ./, ../ or ~/, or a file: URL.
func fromMedia(e *encoder, where string, m llm.Media, local bool) {
	if !local && wire.IsLocal(m.URL) {
		e.Fail(unsupported(where, "a result cannot name a local file: a tool that may read it can give its bytes"))
		return
	}
	m, err := wire.ReadMedia(m, local)
	if err != nil {
		e.Fail(invalid(where, "%v", err))
		return
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
		e.Quote(`{"type":"`+block+`","source":{"type":"file","file_id":`, m.URL)
	case m.URL != "" && !strings.HasPrefix(m.URL, "https://") && !strings.HasPrefix(m.URL, "http://"):
		e.Fail(unsupported(where, "Anthropic takes the address of a web page, https://…, not %s", m.URL))
	case m.URL != "" && (kind == "" || strings.HasPrefix(kind, "image/")):
		e.Quote(`{"type":"image","source":{"type":"url","url":`, m.URL)
	case m.URL != "" && kind == "application/pdf":
		e.Quote(`{"type":"document","source":{"type":"url","url":`, m.URL)
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
