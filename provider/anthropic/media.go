package anthropic

import (
	"cmp"
	"net/url"
	"path"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// resultMedia are the media that the API takes in results.
// https://platform.claude.com/docs/en/build-with-claude/vision, pdf-support.
var resultMedia = wire.MediaRule{
	Name:       "Anthropic",
	Data:       []string{"image/jpeg", "image/png", "image/gif", "image/webp", "application/pdf", "text/*"},
	Links:      []string{"", "image/*", "application/pdf"},
	Schemes:    []string{"https://", "http://"},
	Files:      "file_",
	ImageFiles: true,
}

// media returns the rule for the media in results of a request.
func (d *dialect) media(name string) *wire.MediaRule {
	r := resultMedia
	known, ok := d.catalog.Find(provider, name)
	r.Blind = ok && known.Vision != nil && !*known.Vision
	return &r
}

// TakeMedia returns a medium of a result as Anthropic takes it, or a note in its place.
func (m *Model) TakeMedia(req *llm.Request, of llm.Media) llm.Part {
	p, _ := m.media(cmp.Or(req.Model, m.name)).Take(of)
	return p
}

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
	if kind == "" && isPDF(m.URL) {
		kind = "application/pdf"
	}
	if m.URL != "" {
		fromMediaURL(e, where, m.URL, kind)
	} else {
		fromMediaBytes(e, where, m.Data, kind)
	}
	e.Raw(`}}`)
}

// isPDF reports whether the path of an address ends in .pdf.
func isPDF(address string) bool {
	u, err := url.Parse(address)
	return err == nil && strings.EqualFold(path.Ext(u.Path), ".pdf")
}

// fromMediaURL writes a file at Anthropic, or an image or a document at an address. An empty kind
// means an image.
func fromMediaURL(e *encoder, where, address, kind string) {
	image := strings.HasPrefix(kind, "image/")
	switch {
	// A conversation that began at another provider may have its files, which do not exist here.
	case wire.FileID(address) && strings.HasPrefix(address, "file-"):
		e.Fail(unsupported(where, "%s is a file at OpenAI; those at Anthropic begin with file_", address))
	case wire.FileID(address):
		block := "document"
		if image {
			block = "image"
		}
		e.Quote(`{"type":"`+block+`","source":{"type":"file","file_id":`, address)

	case !strings.HasPrefix(address, "https://") && !strings.HasPrefix(address, "http://"):
		e.Fail(unsupported(where, "Anthropic takes the address of a web page, https://…, not %s", address))
	case kind == "" || image:
		e.Quote(`{"type":"image","source":{"type":"url","url":`, address)
	case kind == "application/pdf":
		e.Quote(`{"type":"document","source":{"type":"url","url":`, address)
	default:
		e.Fail(unsupported(where, "Anthropic takes images and PDF documents by URL, not %s", kind))
	}
}

// fromMediaBytes writes an image or a document with its content.
func fromMediaBytes(e *encoder, where string, data []byte, kind string) {
	switch kind {
	case "image/jpeg", "image/png", "image/gif", "image/webp":
		e.Raw(`{"type":"image","source":{"type":"base64","media_type":"`)
		e.Raw(kind)
		e.Raw(`","data":"`)
		e.Base64(data)
		e.Raw(`"`)
		return
	case "application/pdf":
		e.Raw(`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"`)
		e.Base64(data)
		e.Raw(`"`)
		return
	}

	switch {
	// The API has one type for text. Markdown, JSON and source code are text to the model.
	case strings.HasPrefix(kind, "text/") || kind == "application/json":
		e.Raw(`{"type":"document","source":{"type":"text","media_type":"text/plain","data":`)
		e.Bytes(data)
	case strings.HasPrefix(kind, "image/"):
		e.Fail(unsupported(where, "Anthropic takes images of type image/jpeg, image/png, image/gif and image/webp, not %s", kind))
	default:
		e.Fail(unsupported(where, "Anthropic takes images, PDF documents and text, not media of type %q", kind))
	}
}
