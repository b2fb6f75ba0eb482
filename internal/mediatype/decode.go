package mediatype

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net/url"
	"strings"
	"unicode/utf16"
)

var errNotBase64 = errors.New("it is not base64")

// Decode returns the bytes that a text carries: base64 in any form of Base64, or a data: URI.
// stated is the type in the URI; empty means none.
func Decode(text string) (data []byte, stated string, err error) {
	text = strings.Trim(text, "\ufeff\" \t\r\n")
	if len(text) > 7 && strings.EqualFold(text[:7], "base64,") { // the end of a data: URI
		text = text[7:]
	}
	head, rest, ok := strings.Cut(text, ",")
	scheme := "data:"
	if !ok || len(head) < len(scheme) || !strings.EqualFold(head[:len(scheme)], scheme) {
		data, err = Base64(text)
		if err != nil {
			err = errNotBase64
		}
		return data, "", err
	}

	head = head[len(scheme):]
	plain, encoded := strings.CutSuffix(strings.ToLower(head), ";base64")
	if encoded {
		data, err = Base64(rest)
		if err != nil {
			err = errNotBase64
		}
		return data, Normal(plain), err
	}
	unescaped, err := url.PathUnescape(rest)
	if err != nil {
		return nil, Normal(plain), errors.New("its data: URI cannot be read")
	}
	if Normal(plain) == "" {
		plain = Text // RFC 2397
	}
	return []byte(unescaped), Normal(plain), nil
}

// Base64 decodes standard and URL-safe base64, with or without padding, white space, and the
// escapes of URLs and JSON. Programs write all of these forms. With spaces in it, the text must be
// whole groups, as a sentence rarely is: without them, or with a plus sign in place of each, as
// before the decoding of a form.
func Base64(text string) ([]byte, error) {
	if strings.Contains(text, "%") {
		unescaped, err := url.PathUnescape(text)
		if err != nil {
			return nil, err
		}
		text = unescaped
	}
	text = strings.Map(standard, text)

	spaces := strings.Count(text, " ")
	switch {
	case spaces == 0:
	case (len(text)-spaces)%4 == 0:
		text = strings.ReplaceAll(text, " ", "")
	case len(text)%4 == 0:
		text = strings.ReplaceAll(text, " ", "+")
	default:
		return nil, errNotBase64
	}
	return base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
}

// standard returns the character of standard base64 that r stands for, and a negative number for a
// character that carries nothing.
func standard(r rune) rune {
	switch r {
	case '\r', '\n', '\t', '\v', '\f', '\\':
		return -1
	case '-':
		return '+'
	case '_':
		return '/'
	}
	return r
}

// fromUTF16 decodes UTF-16 that begins with a byte order mark.
func fromUTF16(data []byte) (string, bool) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		order = binary.BigEndian
	default:
		return "", false
	}

	units := make([]uint16, 0, len(data)/2)
	for i := 2; i+1 < len(data); i += 2 {
		units = append(units, order.Uint16(data[i:]))
	}
	text := string(utf16.Decode(units))
	return text, !strings.ContainsFunc(text, isBinary)
}
