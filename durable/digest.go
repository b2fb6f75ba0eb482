package durable

// digest.go: digests of requests, with which a replay compares them.

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/llm"
)

// digests are the digests of a request, as record.Reply stores them.
type digests struct {
	conversation string
	rest         string // without the tools, which have records of their own
}

// digester computes the digests of the requests of a run, one after the other. A transcript only
// grows at its end, so that only the new messages are read.
type digester struct {
	sent []sentMessage // of the previous request
}

// sentMessage is a message that was sent, and the digest of the conversation up to it.
type sentMessage struct {
	first  *llm.Part // nil means no parts
	parts  int
	role   llm.Role
	digest [sha256.Size]byte
}

// is reports whether m is the message that was sent. The first part of a message of a transcript
// stays at its place in memory.
func (s *sentMessage) is(m llm.Message) bool {
	return len(m.Parts) > 0 && s.first == &m.Parts[0] && s.parts == len(m.Parts) && s.role == m.Role
}

// digest returns the digests of the next request.
func (d *digester) digest(req *llm.Request) digests {
	// The common part is searched from its end; otherwise each step would read the whole run.
	n := min(len(d.sent), len(req.Messages))
	for n > 0 && !d.sent[n-1].is(req.Messages[n-1]) {
		n--
	}
	d.sent = d.sent[:n]

	var prev [sha256.Size]byte
	if n > 0 {
		prev = d.sent[n-1].digest
	}
	for _, msg := range req.Messages[n:] {
		prev = sha256.Sum256(append(prev[:len(prev):len(prev)], formOf(msg)...))
		s := sentMessage{parts: len(msg.Parts), role: msg.Role, digest: prev}
		if len(msg.Parts) > 0 {
			s.first = &msg.Parts[0]
		}
		d.sent = append(d.sent, s)
	}

	rest := llm.Request{Model: req.Model, Choice: req.Choice, Output: req.Output, Settings: req.Settings}
	return digests{hex.EncodeToString(prev[:16]), record.Digest(formOf(rest))}
}

// formOf returns the JSON form of a part of a request, or the error text of a part that has none
// and that no provider could send.
func formOf(v any) []byte {
	form, err := json.Marshal(v)
	if err != nil {
		return []byte(err.Error())
	}
	return form
}

// compareDigests compares the new request with the request of a stored reply.
func compareDigests(stored *record.Reply, key llm.Key, is digests) error {
	what := ""
	switch {
	case stored.Messages == "": // copied from another run, or made before an accepted change
	case stored.Messages != is.conversation:
		what = "messages"
	case stored.Request != is.rest:
		what = "settings, choice or output schema"
	}
	if what == "" {
		return nil
	}
	return fmt.Errorf("%w: the request %s differs from the recorded request: its %s differ", ErrChanged, key, what)
}
