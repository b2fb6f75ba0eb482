package pawltest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/script"
)

// object is a JSON object as we write it; keys come out sorted.
type object = map[string]any

// event is one server-sent event.
type event struct {
	name string // "": no event line
	data string
}

func (e event) write(w io.Writer) {
	if e.name != "" {
		fmt.Fprintf(w, "event: %s\n", e.name)
	}
	fmt.Fprintf(w, "data: %s\n\n", e.data)
}

// reply writes one reply in the words of its API.
type reply struct {
	api   string
	req   *pawl.Request
	usage bool   // Chat: a chunk with the usage was asked for
	id    string // the reply's number in the conversation, for ids

	began  bool
	seq    int        // Responses: number of the next event
	parts  []*partOut // by Delta.Index
	calls  int        // Chat: index of the next call
	figure pawl.Usage
}

// partOut is what was written of a part.
type partOut struct {
	part pawl.Part       // kind, id and name; the text is in buf
	buf  strings.Builder // text or arguments
	call int             // Chat: index of the call
	done bool
}

func newReply(got *Received) *reply {
	n := 1
	for _, m := range got.Request.Messages {
		if m.Role == pawl.RoleAssistant {
			n++
		}
	}
	r := &reply{api: got.API, req: got.Request, id: fmt.Sprintf("sim_%d", n)}
	var w chatRequest
	if got.API == Chat && json.Unmarshal(got.Body, &w) == nil {
		r.usage = w.StreamOptions.IncludeUsage
	}
	return r
}

func (r *reply) contentType() string {
	if r.req.Whole {
		return "application/json"
	}
	return "text/event-stream"
}

// body is the reply in one piece.
func (r *reply) body(resp *pawl.Response) []byte {
	if r.api == Chat {
		return r.chatBody(resp)
	}
	return r.responsesBody(resp)
}

// events is a fragment of the reply.
func (r *reply) events(d pawl.Delta) []event {
	if d.Usage != nil {
		r.figure = *d.Usage
	}
	if r.api == Chat {
		return r.chatEvents(d)
	}
	return r.responsesEvents(d)
}

// failed is the end of a stream that broke in the middle.
func (r *reply) failed(e *apiError) []event {
	if r.api == Chat {
		return []event{{data: string(marshal(object{"error": e}))}}
	}
	return r.responsesFailed(e)
}

// part notes the fragment and returns the part it belongs to, and whether it begins here.
func (r *reply) part(d pawl.Delta) (p *partOut, fragment string, begins bool) {
	for d.Index >= len(r.parts) {
		r.parts = append(r.parts, nil)
	}
	p = r.parts[d.Index]
	if p == nil {
		p, begins = &partOut{part: d.Part}, true
		r.parts[d.Index] = p
	}
	switch part := d.Part.(type) {
	case pawl.Text:
		fragment = part.Text
	case pawl.Reasoning:
		fragment = part.Text
	case pawl.ToolCall:
		fragment = string(part.Args)
	}
	p.buf.WriteString(fragment)
	return p, fragment, begins
}

// seal makes the encrypted content of a reasoning item: text that comes back unchanged or not at all.
func seal(text string) string {
	return fmt.Sprintf("sim_%s.%08x", base64.RawURLEncoding.EncodeToString([]byte(text)), crc32.ChecksumIEEE([]byte(text)))
}

// unseal reads what seal made.
func unseal(s string) (text string, ok bool) {
	b64, _, _ := strings.Cut(strings.TrimPrefix(s, "sim_"), ".")
	b, err := base64.RawURLEncoding.DecodeString(b64)
	if err != nil || seal(string(b)) != s {
		return "", false
	}
	return string(b), true
}

func isExhausted(err error) bool {
	var e *script.ExhaustedError
	return errors.As(err, &e)
}

// marshal writes JSON as OpenAI does, without escaping <, > and &.
func marshal(v any) []byte {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("pawltest: %v", err)) // we only write maps, strings and numbers
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}
