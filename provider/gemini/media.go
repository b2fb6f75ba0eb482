package gemini

import (
	"cmp"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// resultMedia are the media that the API takes in results, or after them.
// https://ai.google.dev/gemini-api/docs/image-understanding, audio, video-understanding,
// document-processing.
var resultMedia = wire.MediaRule{
	Name: "Gemini",
	Data: []string{
		"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif",
		"audio/wav", "audio/mpeg", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac", "audio/mp4",
		"video/mp4", "video/mpeg", "video/quicktime", "video/webm", "video/x-msvideo", "video/x-flv", "video/3gpp",
		"application/pdf", "text/*",
	},
	Links:   []string{"", "image/*", "audio/*", "video/*", "application/*", "text/*"},
	Schemes: []string{"https://", "http://", "gs://"},
}

// media returns the rule for the media in results of a request.
func (d *dialect) media(name string) *wire.MediaRule {
	r := resultMedia
	known, ok := d.catalog.Find(provider, name)
	r.Blind = ok && known.Vision != nil && !*known.Vision
	return &r
}

// TakeMedia returns a medium of a result as Gemini takes it, or a note in its place.
func (m *Model) TakeMedia(req *llm.Request, of llm.Media) llm.Part {
	p, _ := m.media(cmp.Or(req.Model, m.name)).Take(of)
	return p
}

// fromMedia begins a part with media: by value, or by an address that the API reads (an uploaded
// file, a bucket, a video, the public web). The caller closes the part. local allows files of this
// machine.
func fromMedia(e *encoder, where string, m llm.Media, local bool) {
	m, err := wire.ReadMedia(m, local)
	if err != nil {
		e.Fail(invalid(where, "%v", err))
		return
	}
	if wire.FileID(m.URL) {
		e.Fail(unsupported(where, "%s is a file at another provider; Gemini names its own by an address, https://…/files/NAME", m.URL))
		return
	}
	if m.URL != "" {
		e.Raw(`{"fileData":{`)
		if kind := typeOf(m); kind != "" {
			e.Quote(`"mimeType":`, kind, ",")
		}
		e.Quote(`"fileUri":`, m.URL, "}")
		return
	}
	switch {
	case len(m.Data) == 0:
		e.Fail(invalid(where, "the media have neither data nor an address"))
	case m.MIME == "":
		e.Fail(unsupported(where, "Gemini wants to know the type of media"))
	}
	e.Quote(`{"inlineData":{"mimeType":`, m.MIME, `,"data":"`)
	e.Base64(m.Data)
	e.Raw(`"}`)
}

// typeOf returns the type of media. "" means that it is unknown.
func typeOf(m llm.Media) string {
	if m.MIME != "" {
		return m.MIME
	}
	if rest, ok := strings.CutPrefix(m.URL, "data:"); ok {
		return rest[:max(0, strings.IndexAny(rest, ";,"))]
	}
	return wire.MIMEByName(m.URL)
}

// ofResults are the types of media that Gemini 3 accepts in a result.
var ofResults = []string{"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"}
