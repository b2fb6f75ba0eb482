package outside

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"mime"
	"net/http"

	"github.com/pawl-go/pawl/internal/mediatype"
)

// lenientParts rewrites the parts of messages and artifacts in a response to a form that the A2A
// SDK decodes. The SDK decodes a task as one value, so one part that it cannot decode would lose
// them all: bytes that are not strict base64, a part of an unknown kind, a part with several
// contents.
func lenientParts(res *http.Response) {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch kind {
	case "text/event-stream":
		res.Body = &partLines{ReadCloser: res.Body, lines: bufio.NewReaderSize(res.Body, 64<<10)}
	case "application/json":
		b, err := io.ReadAll(res.Body)
		rest := io.Reader(bytes.NewReader(rewrittenParts(b)))
		if err != nil {
			rest = io.MultiReader(bytes.NewReader(b), failing{err})
		}
		res.Body = struct {
			io.Reader
			io.Closer
		}{rest, res.Body}
		res.ContentLength = -1
	}
}

// failing is a reader with an error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// partLines is a stream of events whose parts are rewritten. An event is a line.
type partLines struct {
	io.ReadCloser
	lines *bufio.Reader
	rest  []byte
	err   error
}

// Read returns the next bytes of the stream.
func (l *partLines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		if l.err != nil {
			return 0, l.err
		}
		l.rest, l.err = l.lines.ReadBytes('\n')
		if data, ok := bytes.CutPrefix(l.rest, []byte("data:")); ok {
			l.rest = append(append([]byte("data: "), rewrittenParts(bytes.TrimSpace(data))...), '\n')
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// rewrittenParts returns a message with its parts rewritten. A message that needs no change is
// returned unchanged.
func rewrittenParts(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"parts"`)) {
		return message
	}
	d := json.NewDecoder(bytes.NewReader(message))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || !rewriteParts(v) {
		return message
	}
	return mustJSON(v)
}

// rewriteParts rewrites the lists named parts in v, and reports whether one has changed.
func rewriteParts(v any) (changed bool) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			changed = rewriteParts(e) || changed
		}
	case map[string]any:
		for name, member := range v {
			list, isList := member.([]any)
			switch {
			case name == "data" || name == "metadata":
				continue // values of the agent, in which parts are something else
			case name != "parts" || !isList:
				changed = rewriteParts(member) || changed
				continue
			}
			out := []any{}
			for _, p := range list {
				decodable, same := rewrittenPart(p)
				changed = changed || !same
				out = append(out, decodable...)
			}
			v[name] = out
		}
	}
	return changed
}

// contentsOfPart are the members with the content of a part; it has exactly one of them.
var contentsOfPart = []string{"text", "raw", "data", "url"}

// rewrittenPart returns a part as parts that the SDK decodes. same means that it is one already.
func rewrittenPart(p any) (parts []any, same bool) {
	of, ok := p.(map[string]any)
	if !ok {
		return []any{map[string]any{"data": p}}, false
	}
	about := map[string]any{}
	for _, name := range []string{"filename", "mediaType", "metadata"} {
		if v, ok := of[name]; ok {
			about[name] = v
		}
	}

	same = true
	for _, name := range contentsOfPart {
		content := of[name]
		unset := name == "url" && content == "" // written by encoders that leave no member out
		if content == nil || unset {
			continue
		}
		// A part with several contents becomes one part for each, with what all of them share.
		part, sound := soundPart(name, content)
		same = same && sound
		for name, v := range about {
			part[name] = v
		}
		parts = append(parts, part)
	}
	switch len(parts) {
	case 0:
		return []any{map[string]any{"data": p}}, false // of an unknown kind
	case 1:
		return parts, same
	}
	return parts, false
}

// soundPart returns a part with one content of the right type. sound means that the content is
// unchanged.
func soundPart(name string, content any) (part map[string]any, sound bool) {
	text, isText := content.(string)
	switch {
	case name == "data":
		return map[string]any{"data": content}, true
	case !isText:
		return map[string]any{"data": content}, false
	case name != "raw":
		return map[string]any{name: text}, true
	}
	data, stated, err := mediatype.Decode(text)
	if err != nil {
		return map[string]any{"text": "[bytes that are left out: " + err.Error() + "]"}, false
	}
	// The SDK reads only the standard alphabet with padding. Agents also send others.
	strict := base64.StdEncoding.EncodeToString(data)
	part = map[string]any{"raw": strict}
	if stated != "" {
		part["mediaType"] = stated
	}
	return part, strict == text
}
