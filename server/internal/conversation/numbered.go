package conversation

// numbered.go: conversations whose runs have a number in their IDs, so that the newest is the first
// in the order of the IDs. What a message costs does not grow with the conversation.

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// window is the number of the newest runs of a conversation in which a message is looked for. An
// older message that is sent again counts as a new one.
const window = 50

// The ID of a numbered run is PREFIX NUMBER _ MESSAGE _ REQUEST. NUMBER counts down from largest,
// MESSAGE is a hash of the ID of the user's message, and REQUEST one of what the run begins with.
// The digits of NUMBER begin with 0, which no hash has.
const (
	largest    = 999_999_999
	digits     = 10
	hashLength = 10
)

// numberOf returns the number of a run, from 1, and the rest of its ID. 0 means that it has none.
func numberOf(prefix, id string) (number int, rest string) {
	text := strings.TrimPrefix(id, prefix)
	if len(text) <= digits || text[0] != '0' || text[digits] != '_' {
		return 0, ""
	}
	down, err := strconv.Atoi(text[:digits])
	if err != nil {
		return 0, ""
	}
	return largest - down, text[digits+1:]
}

// recent returns the newest numbered runs of a conversation, the newest first.
func (c *Call) recent(prefix string) ([]store.JournalRun, error) {
	heads, err := c.Runs.Heads(c.Context(), c.Caller(), "", store.Page{After: prefix, Limit: window})
	if err != nil {
		return nil, err
	}
	for i, h := range heads {
		number := 0
		if strings.HasPrefix(h.ID, prefix) {
			number, _ = numberOf(prefix, h.ID)
		}
		if number == 0 {
			return heads[:i], nil
		}
	}
	return heads, nil
}

// NewestNumbered is Newest for a conversation of numbered runs, in any state.
func (c *Call) NewestNumbered(prefix string) (*store.JournalRun, error) {
	heads, err := c.recent(prefix)
	if err != nil {
		return nil, err
	}
	return newestOf(prefix, heads), nil
}

// newestOf returns the newest of recent runs. Nil means that there is none.
func newestOf(prefix string, heads []store.JournalRun) *store.JournalRun {
	if len(heads) == 0 {
		return nil
	}
	newest := &heads[0]
	number, _ := numberOf(prefix, newest.ID)
	for i := range heads {
		same, _ := numberOf(prefix, heads[i].ID) // of a request at the same time
		if same == number && heads[i].Created.After(newest.Created) {
			newest = &heads[i]
		}
	}
	return newest
}

// Follow sets the run that the message of a request follows if the page sends nothing but that
// message: the newest run of the conversation. A message that the conversation has, because it is
// repeated, edited or answered again, follows the run that it followed before.
func (c *Call) Follow(in *Request) error {
	heads, err := c.recent(in.Prefix)
	if err != nil || len(heads) == 0 {
		return err
	}
	in.Extras.Before = newestOf(in.Prefix, heads).ID

	mark := Hash(hashLength, in.Extras.Message) + "_"
	for _, h := range heads {
		_, rest := numberOf(in.Prefix, h.ID)
		if !strings.HasPrefix(rest, mark) {
			continue
		}
		x, err := c.Runs.Extras(c.Context(), c.Caller(), h.ID)
		if err != nil {
			return err
		}
		if x != nil {
			in.Extras.Before = x.Before
		}
		return nil
	}
	return nil
}

// numbered returns the ID of the run of a request, and whether the run exists: the run of an equal
// request, or the next number.
func (c *Call) numbered(in *Request) (id string, exists bool, err error) {
	said, err := json.Marshal(llm.WithoutLabels(in.Messages))
	if err != nil {
		return "", false, err
	}
	heads, err := c.recent(in.Prefix)
	if err != nil {
		return "", false, err
	}

	equal := Hash(hashLength, in.Extras.Message) + "_" + Hash(2*hashLength, in.Extras.Before, "", string(said))
	last := 0
	if len(heads) > 0 {
		last, _ = numberOf(in.Prefix, heads[0].ID)
	}
	for _, h := range heads {
		_, rest := numberOf(in.Prefix, h.ID)
		if rest == equal && !in.Again {
			return h.ID, true, nil
		}
	}
	if last == largest {
		return "", false, runs.Fault("conflict", "the conversation has no number left", "take another ID for it")
	}

	// Numbers count down in IDs, because lists are in the order of IDs and the newest run is looked
	// for.
	return fmt.Sprintf("%s%0*d_%s", in.Prefix, digits, largest-last-1, equal), false, nil
}
