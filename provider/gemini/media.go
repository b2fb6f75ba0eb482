package gemini

import (
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

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
