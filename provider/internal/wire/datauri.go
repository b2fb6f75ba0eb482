package wire

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"

	"github.com/pawl-go/pawl/llm"
)

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
	if mime == "" {
		mime = "text/plain"
	}
	if m.MIME != "" {
		mime = m.MIME
	}
	var b []byte
	var err error
	if encoded {
		b, err = DecodeBase64([]byte(data))
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

// DecodeBase64 decodes standard and URL-safe base64, with or without padding. Clients write all of
// these forms.
func DecodeBase64(data []byte) ([]byte, error) {
	data = bytes.TrimRight(data, "=")
	b, err := base64.RawStdEncoding.AppendDecode(nil, data)
	if err != nil {
		if url, e := base64.RawURLEncoding.AppendDecode(nil, data); e == nil {
			return url, nil
		}
	}
	return b, err
}
