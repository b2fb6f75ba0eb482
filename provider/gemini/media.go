package gemini

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/wire"
)

// fromMedia begins a part of media: by value, or by an address that the API can read (of an uploaded file, a bucket, a
// video, or of the public web). The caller closes it. local allows it to name a file of this machine.
func fromMedia(e *encoder, where string, m pawl.Media, local bool) {
	if wire.IsLocal(m.URL) {
		if !local {
			e.Fail(invalid(where, "only a user's message can name a local file"))
			return
		}
		read, err := wire.ReadLocal(m)
		if err != nil {
			e.Fail(invalid(where, "%v", err))
			return
		}
		m = read
	}
	if rest, ok := strings.CutPrefix(m.URL, "data:"); ok {
		read, err := readDataURI(rest)
		if err != nil {
			e.Fail(invalid(where, "%v", err))
			return
		}
		m = read
	}
	if wire.FileID(m.URL) {
		e.Fail(unsupported(where, "%s is a file at another provider; Gemini names its own by an address, https://…/files/NAME", m.URL))
		return
	}
	if m.URL != "" {
		e.Raw(`{"fileData":{`)
		if kind := typeOf(m); kind != "" {
			e.Raw(`"mimeType":`)
			e.String(kind)
			e.Raw(",")
		}
		e.Raw(`"fileUri":`)
		e.String(m.URL)
		e.Raw("}")
		return
	}
	switch {
	case len(m.Data) == 0:
		e.Fail(invalid(where, "the media have neither data nor an address"))
	case m.MIME == "":
		e.Fail(unsupported(where, "Gemini wants to know the type of media"))
	}
	e.Raw(`{"inlineData":{"mimeType":`)
	e.String(m.MIME)
	e.Raw(`,"data":"`)
	e.Base64(m.Data)
	e.Raw(`"}`)
}

// readDataURI reads what follows "data:".
func readDataURI(s string) (pawl.Media, error) {
	head, data, ok := strings.Cut(s, ",")
	if !ok {
		return pawl.Media{}, errors.New("a data: address has no comma")
	}
	mime, encoded := strings.CutSuffix(head, ";base64")
	if mime == "" {
		mime = "text/plain"
	}
	if !encoded {
		text, err := url.PathUnescape(data)
		return pawl.Media{MIME: mime, Data: []byte(text)}, err
	}
	b, err := decodeBase64([]byte(data))
	return pawl.Media{MIME: mime, Data: b}, err
}

// typeOf is the type of media, as far as they say.
func typeOf(m pawl.Media) string {
	if m.MIME != "" {
		return m.MIME
	}
	if rest, ok := strings.CutPrefix(m.URL, "data:"); ok {
		return rest[:max(0, strings.IndexAny(rest, ";,"))]
	}
	return wire.MIMEByName(m.URL)
}

// decodeBase64 reads any of its forms: some clients write the one that is meant for addresses, or leave the padding out.
func decodeBase64(data []byte) ([]byte, error) {
	data = bytes.TrimRight(data, "=")
	b, err := base64.RawStdEncoding.AppendDecode(nil, data)
	if err != nil {
		if url, e := base64.RawURLEncoding.AppendDecode(nil, data); e == nil {
			return url, nil
		}
	}
	return b, err
}

// fitsResult reports whether media of a type may be part of a result for Gemini 3.
func fitsResult(mime string) bool {
	switch mime {
	case "image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain":
		return true
	}
	return false
}

// field names a part of a request in an error.
func field(message, part int) string {
	return "messages[" + strconv.Itoa(message) + "].parts[" + strconv.Itoa(part) + "]"
}
