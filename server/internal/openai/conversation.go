package openai

// conversation.go: conversations of Responses. A conversation is a chain of runs, whose IDs begin
// with a hash of its ID. Each response follows the newest run that is over.

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// conversationID is the ID of a conversation in a request: text, or an object with the member id.
type conversationID string

// UnmarshalJSON reads either form.
func (id *conversationID) UnmarshalJSON(b []byte) error {
	var named struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(b, (*string)(id)) == nil {
		return nil
	}
	if json.Unmarshal(b, &named) != nil || named.ID == "" {
		return errors.New("conversation is neither an ID nor an object with an id")
	}
	*id = conversationID(named.ID)
	return nil
}

// check returns the error of a request whose other members do not go with a conversation.
func (id conversationID) check(previous string, stored bool) error {
	switch {
	case id == "":
		return nil
	case store.CheckID(string(id)) != nil:
		return runs.BadRequest("conversation: "+store.CheckID(string(id)).Error(), "")
	case previous != "":
		return runs.BadRequest("conversation and previous_response_id exclude each other", "leave one of them out")
	case !stored:
		return runs.BadRequest("conversation: with store: false the conversation would lose the response",
			"leave store out")
	}
	return nil
}

// prefix returns the beginning of the IDs of the runs of a conversation.
func (id conversationID) prefix() string {
	sum := sha256.Sum256([]byte(id))
	const length = 16
	return "resp_" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:length])
}

// newestOf returns the run that a new response of a conversation follows. "" means that the
// conversation begins. A run that failed is passed over.
func (c *call) newestOf(id conversationID) (run string, err error) {
	heads, err := c.Runs.HeadsWith(c.Context(), c.Caller(), id.prefix()+"_", "")
	if err != nil {
		return "", err
	}
	var last store.JournalRun
	for _, h := range heads {
		if h.State != store.JournalFailed && !h.Created.Before(last.Created) {
			last = h
		}
	}
	if last.ID != "" && last.State != store.JournalOver {
		return "", runs.Fault("conflict", "the response "+last.ID+" of the conversation is not over",
			"give its calls their results, or cancel it")
	}
	return last.ID, nil
}

// createConversation handles POST /v1/conversations. Nothing is stored: a conversation is the runs
// with its ID.
func (c *call) createConversation() error {
	var r struct {
		Items    []json.RawMessage `json:"items"`
		Metadata json.RawMessage   `json:"metadata"`
	}
	if err := c.Read(&r); err != nil {
		return err
	}
	if len(r.Items) > 0 {
		return runs.BadRequest("items: not supported", "send them as the input of the first response")
	}
	if len(r.Metadata) == 0 {
		r.Metadata = json.RawMessage("{}")
	}
	return c.Write(http.StatusOK, object{
		"id":         "conv_" + rand.Text(),
		"object":     "conversation",
		"created_at": c.Now().Unix(),
		"metadata":   r.Metadata,
	})
}
