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

// sentMessage is a message that was sent, and the digest of the conversation up to it.
type sentMessage struct {
	first  *llm.Part
	parts  int
	role   llm.Role
	digest [sha256.Size]byte
}

func (s *sentMessage) is(m llm.Message) bool {
	return len(m.Parts) > 0 && s.first == &m.Parts[0] && s.parts == len(m.Parts) && s.role == m.Role
}

// digest returns the digests of the conversation, and of the rest of the request without its tools.
// A transcript only grows at its end, so that only the new messages are read.
func (m *model) digest(req *llm.Request) (conversation, rest string) {
	n := min(len(m.sent), len(req.Messages))
	for n > 0 && !m.sent[n-1].is(req.Messages[n-1]) {
		n-- // searched from the end; otherwise each step would read the whole run
	}
	m.sent = m.sent[:n]

	var prev [sha256.Size]byte
	if n > 0 {
		prev = m.sent[n-1].digest
	}
	for _, msg := range req.Messages[n:] {
		form, err := json.Marshal(msg)
		if err != nil {
			form = []byte(err.Error()) // no provider could send it
		}
		prev = sha256.Sum256(append(prev[:len(prev):len(prev)], form...))
		s := sentMessage{parts: len(msg.Parts), role: msg.Role, digest: prev}
		if len(msg.Parts) > 0 {
			s.first = &msg.Parts[0]
		}
		m.sent = append(m.sent, s)
	}

	form, err := json.Marshal(llm.Request{Model: req.Model, Choice: req.Choice, Output: req.Output,
		Settings: req.Settings})
	if err != nil {
		form = []byte(err.Error())
	}
	return hex.EncodeToString(prev[:16]), record.Digest(form)
}

// compareDigests compares the new request with the request of the stored reply b.
func compareDigests(b *record.Reply, key llm.Key, conversation, rest string) error {
	switch {
	case b.Messages == "": // copied from another run, or made before an accepted change
	case b.Messages != conversation:
		return fmt.Errorf("%w: the request %s differs from the recorded request: its messages differ", ErrChanged, key)
	case b.Request != rest:
		return fmt.Errorf("%w: the request %s differs from the recorded request: its settings, choice or output schema differ",
			ErrChanged, key)
	}
	return nil
}
