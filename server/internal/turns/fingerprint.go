package turns

// fingerprint.go: the fingerprint of a body.

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
)

// fingerprint returns a hash of a body. It is the same for a stream and for the whole answer: a
// client that repeats a stream as a whole request sends the same question.
func fingerprint(body []byte) [32]byte {
	for _, name := range []string{"stream", "stream_options"} {
		body = withoutMember(body, name)
	}
	return sha256.Sum256(body)
}

// withoutMember returns a JSON object without a member, and any other text unchanged.
func withoutMember(body []byte, name string) []byte {
	if !bytes.Contains(body, []byte(`"`+name+`"`)) {
		return body
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return body
	}

	for first := true; d.More(); first = false {
		from := d.InputOffset() // the comma is not read yet
		key, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return body
		}
		if key != name {
			continue
		}
		to := d.InputOffset()
		if first {
			rest := bytes.TrimLeft(body[to:], " \t\r\n")
			to = int64(len(body) - len(bytes.TrimPrefix(rest, []byte(","))))
		}
		return bytes.Join([][]byte{body[:from], body[to:]}, nil)
	}
	return body
}
