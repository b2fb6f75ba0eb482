package record

// sent.go: SentRequest, a request byte for byte.

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"

	"github.com/pawl-go/pawl/internal/text"
)

// SentRequest is a request as it was sent, stored as the difference from the previous one.
type SentRequest struct {
	To     string `json:"to"`
	Whole  bool   `json:"whole,omitzero"` // it asked for a reply without fragments
	Prefix int    `json:"prefix"`         // bytes shared with the start of the previous request
	Suffix int    `json:"suffix"`         // bytes shared with its end
	Middle []byte `json:"middle"`         // the bytes in between, deflated
	Digest string `json:"digest"`         // of the whole request
}

// NewSentRequest returns the stored form of body, which was sent after prev.
func NewSentRequest(to string, prev, body []byte, whole bool) *SentRequest {
	// A request repeats the one before it, and adds messages before the end of the body.
	prefix := text.Common(prev, body)
	suffix := 0
	for suffix < min(len(prev), len(body))-prefix && prev[len(prev)-1-suffix] == body[len(body)-1-suffix] {
		suffix++
	}

	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, flate.BestSpeed) // the level is valid
	_, _ = w.Write(body[prefix : len(body)-suffix])   // in memory: no error is possible
	_ = w.Close()
	return &SentRequest{
		To:     to,
		Whole:  whole,
		Prefix: prefix,
		Suffix: suffix,
		Middle: packed.Bytes(),
		Digest: Digest(body),
	}
}

// After returns the request that was sent after prev.
func (b *SentRequest) After(prev []byte) ([]byte, error) {
	if b.Prefix < 0 || b.Suffix < 0 || b.Prefix+b.Suffix > len(prev) {
		return nil, errors.New("the request before is another one")
	}
	body := bytes.NewBuffer(bytes.Clone(prev[:b.Prefix]))
	if _, err := io.Copy(body, flate.NewReader(bytes.NewReader(b.Middle))); err != nil {
		return nil, err
	}
	body.Write(prev[len(prev)-b.Suffix:])
	if Digest(body.Bytes()) != b.Digest {
		return nil, errors.New("the digest of the request differs from the stored digest")
	}
	return body.Bytes(), nil
}
