// Package conversation keeps the conversations of front ends: a conversation is a chain of runs.
//
// Each message of the assistant is a run, and its ID is the ID of the message, which the client
// sends back with the conversation. The run of a new message starts with what the run before it
// stored, so that the client's copy of the assistant's words counts for nothing.
//
//	a, prefix := Identify("ui", agent, chat) // the IDs of its runs begin with prefix
//	AddHistory(request, items)               // the run to follow, and the messages after it
//	Respond(request)                         // starts or continues the run and sends its stream
package conversation

// conversation.go: the runs of a conversation, and what a request adds to them.

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/internal/web"
	"github.com/pawl-go/pawl/server/uistream"
	"github.com/pawl-go/pawl/store"
)

// Call is a request of a front end.
type Call struct{ *web.Call }

// Request is what a request of a front end wants: a new run, or answers to a run. The ID of the run
// is made from the rest.
type Request struct {
	runs.Request
	Prefix   string           // of the IDs of the runs of the conversation
	Numbered bool             // the runs of the conversation have numbers: see NewestNumbered
	Key      string           // the client's ID of the run, which decides about ours; "" means none
	Again    bool             // a new run, even if an equal request had one; with Numbered
	Stream   uistream.Options // of the answer
	Run      string           // the run to continue; "" means a new one
	Answers  []llm.Decision   // for calls of that run
}

// Hash returns a hash of texts that an ID can contain.
func Hash(length int, texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:length])
}

// Identify returns the name of the agent of a conversation, and the prefix of its runs. The agent
// is the one in the path, or else the one of that name, or the only one.
func (c *Call) Identify(protocol, agent, chat string) (name, prefix string, err error) {
	a, err := c.Runs.Agent(cmp.Or(c.Request.PathValue("agent"), agent))
	if err != nil {
		return "", "", err
	}
	return a.Name, protocol + "_" + Hash(16, a.Name, chat) + "_", nil
}

// Newest returns the newest run of a conversation in a state; "" means any. Nil means that there is
// none.
func (c *Call) Newest(prefix, state string) (last *store.JournalRun, err error) {
	heads, err := c.Runs.HeadsWith(c.Context(), c.Caller(), prefix, state)
	if err != nil {
		return nil, err
	}
	for _, h := range heads {
		if last == nil || !h.Created.Before(last.Created) {
			last = &h
		}
	}
	return last, nil
}

// Item is a message of the client's copy of a conversation.
type Item struct {
	Run  string // the run of the message, or another text
	Read func() (llm.Message, error)
}

// AddHistory sets the run that items follow: the run of the assistant's last message, whose own
// messages replace the client's copy. It adds the messages after it to the request.
func (c *Call) AddHistory(in *Request, items []Item) error {
	first := 0
	for i := len(items) - 1; i >= 0 && first == 0; i-- {
		id := items[i].Run
		if !strings.HasPrefix(id, in.Prefix) {
			continue
		}

		// The client's copy counts for a run that was deleted.
		_, err := c.Runs.Head(c.Context(), c.Caller(), id)
		switch {
		case err == nil:
			in.Extras.Before = id
			first = i + 1
		case !errors.Is(err, store.ErrNotFound):
			return err
		}
	}

	for _, item := range items[first:] {
		msg, err := item.Read()
		switch {
		case err != nil:
			return runs.BadRequest("messages: "+err.Error(), "")
		case msg.Role == llm.RoleSystem:
			in.Extras.AddSystem(msg.Parts)
		case len(msg.Parts) > 0:
			in.Messages = append(in.Messages, msg)
		}
	}
	return nil
}
