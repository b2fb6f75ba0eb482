package temporal

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/pawl-go/pawl/llm"
)

// A conversation is stored as a chain of blobs. Each holds the messages that one request added, and
// the digest of the previous blob. Each message is therefore sent once, and a request refers to its
// conversation by the head of the chain.

// link is one blob of the chain.
type link struct {
	Prev     string        `json:"prev,omitzero"`
	Messages []llm.Message `json:"messages"`
}

// transcripts reads and writes chains. It caches the chains that were read last.
type transcripts struct {
	blobs Blobs

	mu    sync.Mutex
	known map[string][]llm.Message
	order []string
}

const knownTranscripts = 256

// load returns the conversation with that head. An empty head means no messages.
func (t *transcripts) load(ctx context.Context, head string) ([]llm.Message, error) {
	var parts [][]llm.Message
	for at := head; at != ""; {
		if msgs, ok := t.remembered(at); ok {
			parts = append(parts, msgs)
			break
		}
		b, err := t.blobs.Get(ctx, at)
		if err != nil {
			return nil, err
		}
		var l link
		if err := json.Unmarshal(b, &l); err != nil {
			return nil, fmt.Errorf("blob %s: %w", at, err)
		}
		parts, at = append(parts, l.Messages), l.Prev
	}
	slices.Reverse(parts)
	msgs := slices.Concat(parts...)
	t.remember(head, msgs)
	return msgs, nil
}

// add appends more to the conversation with that head, and returns the whole with its head.
func (t *transcripts) add(ctx context.Context, head string, more []llm.Message) ([]llm.Message, string, error) {
	msgs, err := t.load(ctx, head)
	if err != nil || len(more) == 0 {
		return msgs, head, err
	}
	b, err := json.Marshal(link{head, more})
	if err != nil {
		return nil, "", err
	}
	digest := digestOf(b)
	if err := t.blobs.Put(ctx, digest, b); err != nil {
		return nil, "", err
	}
	msgs = append(slices.Clip(msgs), more...)
	t.remember(digest, msgs)
	return msgs, digest, nil
}

func (t *transcripts) remembered(head string) ([]llm.Message, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	msgs, ok := t.known[head]
	return msgs, ok
}

func (t *transcripts) remember(head string, msgs []llm.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.known[head]; ok || head == "" {
		return
	}
	if t.known == nil {
		t.known = map[string][]llm.Message{}
	}
	if len(t.order) == knownTranscripts {
		delete(t.known, t.order[0])
		t.order = t.order[1:]
	}
	t.known[head], t.order = msgs, append(t.order, head)
}
