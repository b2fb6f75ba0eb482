package record

// request.go: digests of requests, with which a replay compares them.

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/pawl-go/pawl/llm"
)

// Digests are the digests of a request, as Reply stores them.
type Digests struct {
	Conversation string
	Rest         string // without the tools, which have records of their own
}

// Digester computes the digests of the requests of a run, one after the other. A transcript only
// grows at its end, so that only the new messages are read.
type Digester struct {
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

// Next returns the digests of the next request.
func (d *Digester) Next(req *llm.Request) Digests {
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
		// Labels are not sent, and conversations of earlier versions have none.
		prev = sha256.Sum256(append(prev[:len(prev):len(prev)], formOf(msg.WithLabel(nil))...))
		s := sentMessage{parts: len(msg.Parts), role: msg.Role, digest: prev}
		if len(msg.Parts) > 0 {
			s.first = &msg.Parts[0]
		}
		d.sent = append(d.sent, s)
	}

	rest := llm.Request{Model: req.Model, Choice: req.Choice, Output: req.Output, Settings: req.Settings}
	return Digests{hex.EncodeToString(prev[:16]), Digest(formOf(rest))}
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

// Difference names what differs between the stored request and a new one, or returns "". Nothing
// is compared if the request was copied from another run, or made before an accepted change.
func (b *Reply) Difference(now Digests) string {
	switch {
	case b.Messages == "":
		return ""
	case b.Messages != now.Conversation:
		return "messages"
	case b.Request != now.Rest:
		return "settings, choice or output schema"
	}
	return ""
}
