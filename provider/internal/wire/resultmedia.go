package wire

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/mediatype"
	"github.com/pawl-go/pawl/llm"
)

// MediaRule states which media of tool results an API takes. Tools are foreign programs: what they
// return decides neither whether a request can be sent nor whether a conversation can continue. So
// media that an API does not take become notes in the request, and only there: the conversation is
// unchanged, and another model may take them.
type MediaRule struct {
	Name string // of the API in notes

	// Data are the types that are taken by value: a type, or "text/*".
	Data []string
	// Links are the types that are taken by address: a type, a family ("image/*"), or "" for an
	// address without a type. Nil means that no address is taken.
	Links []string
	// Schemes are the beginnings of the addresses, such as "https://".
	Schemes []string
	// Files is the beginning of the ids of files that were uploaded to the provider. Empty means
	// that the API does not take ids.
	Files string
	// ImageFiles means that the id of a file with the type of an image is taken.
	ImageFiles bool
	// Blind means that the model does not see images.
	Blind bool
}

// Apply returns req with a note for each medium in a result that the API does not take, and with
// the usual types of the others. It returns req itself if no result has media, and otherwise a
// copy. It emits a notice if there are notes, and reports whether the consumer wants more. yield
// may be nil.
func (r *MediaRule) Apply(req *llm.Request, yield func(llm.Delta, error) bool) (*llm.Request, bool) {
	var left []string
	out := req
	for i := range req.Messages {
		parts := req.Messages[i].Parts
		for j := range parts {
			result, ok := parts[j].(llm.ToolResult)
			if !ok || !slices.ContainsFunc(result.Parts, isMedia) {
				continue
			}
			taken, notes := r.result(&result)
			left = append(left, notes...)
			result.Parts = taken
			// The copies are as deep as the changes: messages are shared with the caller's
			// conversation.
			if out == req {
				out = new(*req)
				out.Messages = slices.Clone(req.Messages)
			}
			if &out.Messages[i].Parts[0] == &parts[0] {
				out.Messages[i].Parts = slices.Clone(parts)
			}
			out.Messages[i].Parts[j] = result
		}
	}

	if len(left) == 0 || yield == nil {
		return out, true
	}
	notice := &llm.Notice{Code: "media_not_taken", Text: fmt.Sprintf("%s: the model reads notes in place of media in results: %s", r.Name,
		strings.Join(left, "; "))}
	return out, yield(llm.Delta{Notice: notice}, nil)
}

func isMedia(p llm.Part) bool { _, ok := p.(llm.Media); return ok }

// result returns the parts of a result as the API takes them, and the notes among them.
func (r *MediaRule) result(of *llm.ToolResult) (parts []llm.Part, notes []string) {
	for _, p := range of.Parts {
		m, ok := p.(llm.Media)
		if !ok {
			parts = append(parts, p)
			continue
		}
		taken, note := r.Take(m)
		if note != "" {
			notes = append(notes, note)
		}
		parts = append(parts, taken)
	}
	return parts, notes
}

// Take returns a medium of a result as the API takes it: with its usual type, or as a text. A note
// that is not empty says why it cannot be sent; the part is then a text with the note.
func (r *MediaRule) Take(m llm.Media) (p llm.Part, note string) {
	data, stated, err := ofDataURI(m)
	switch {
	case err != nil:
		note = "its data: URI cannot be read"
	case data != nil:
		m.URL = ""
		m.Data = data
		m.MIME = cmp.Or(m.MIME, stated)
	}

	if note == "" && m.URL != "" {
		m.MIME = mediatype.Normal(m.MIME)
		note = r.refusesAddress(m)
	} else if note == "" {
		m.MIME = mediatype.Of(m.Data, m.MIME)
		note = r.refusesData(m)
	}
	if note == "" {
		return m, ""
	}

	// What can be read reaches the model in any case.
	if plain, ok := mediatype.Readable(m.Data); ok && m.URL == "" && mediatype.IsText(m.MIME) {
		return llm.Text{Text: "[" + m.MIME + "]\n" + plain}, ""
	}
	note = fmt.Sprintf("%s is not shown: %s", titleOf(m), note)
	return llm.Text{Text: "[" + note + "]"}, note
}

// ofDataURI returns the data of a data: URI. Nil data and no error mean that m has none.
func ofDataURI(m llm.Media) (data []byte, stated string, err error) {
	if !strings.HasPrefix(m.URL, "data:") {
		return nil, "", nil
	}
	return mediatype.Decode(m.URL)
}

// titleOf names a medium in a note.
func titleOf(m llm.Media) string {
	kind := cmp.Or(m.MIME, "a medium of no known type")
	switch {
	case strings.HasPrefix(m.URL, "data:"):
		return kind
	case m.URL != "":
		return kind + " at " + m.URL[:min(len(m.URL), 200)]
	}
	return fmt.Sprintf("%s of %d bytes", kind, len(m.Data))
}

// refusesData returns why the API does not take a medium by value. Empty means that it does.
func (r *MediaRule) refusesData(m llm.Media) string {
	switch {
	case len(m.Data) == 0:
		return "it has no data"
	case r.Blind && isImage(m.MIME):
		return "the model does not see images"
	case slices.Contains(r.Data, m.MIME):
		return ""
	case slices.Contains(r.Data, "text/*") && strings.HasPrefix(m.MIME, "text/"):
		return ""
	case m.MIME == "":
		return "its type is not known"
	}
	return r.Name + " does not take this type in a result"
}

// refusesAddress returns why the API does not take a medium by address. Empty means that it does.
func (r *MediaRule) refusesAddress(m llm.Media) string {
	switch {
	case IsLocal(m.URL):
		return "a result cannot name a local file; a tool that may read it can return its bytes"
	case r.Blind && isImage(m.MIME):
		return "the model does not see images"
	case FileID(m.URL):
		return r.refusesFile(m)
	case !slices.ContainsFunc(r.Schemes, func(s string) bool { return strings.HasPrefix(m.URL, s) }):
		return r.Name + " does not read this address"
	}
	family, _, _ := strings.Cut(m.MIME, "/")
	if slices.Contains(r.Links, m.MIME) || slices.Contains(r.Links, family+"/*") {
		return ""
	}
	return r.Name + " does not take this type by address"
}

// refusesFile returns why the API does not take the id of an uploaded file. Empty means that it
// does.
func (r *MediaRule) refusesFile(m llm.Media) string {
	switch {
	case r.Files == "" || !strings.HasPrefix(m.URL, r.Files):
		return "the file is at another provider"
	case isImage(m.MIME) && !r.ImageFiles:
		return r.Name + " does not take images by id"
	}
	return ""
}

func isImage(kind string) bool { return strings.HasPrefix(kind, "image/") }
