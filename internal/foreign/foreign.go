// Package foreign converts what other programs return to the parts of a result: MCP servers,
// agents, APIs and commands.
//
//	r := foreign.Reader{Clean: clean}
//	r.Blocks(content)       // a list of blocks, as MCP has it
//	r.Bytes(body, "image/jpg", "")
//	r.Structured(data)      // unless the texts hold it already
//	result.Parts = r.Parts
//
// A Reader never fails as a whole: what it can read reaches the model, and a note stands in the
// place of what it cannot read. It decides by the bytes, not by what their sender says of them. It
// does not know providers: whether a model takes a medium is decided with each request.
package foreign

import (
	"cmp"
	"encoding/json"
	"fmt"
	"mime"
	"strings"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/pawl-go/pawl/internal/mediatype"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

// DefaultMaxMedia is the maximum size in bytes of an image, a sound or a document.
const DefaultMaxMedia = 5 << 20

const (
	maxName = 200 // bytes of a name or an address in a note
	maxKind = 60  // bytes of a media type in a note
)

// Reader collects the parts of one result. The zero value is ready for use. It is not safe for
// concurrent use.
type Reader struct {
	// Clean is applied to each text of the sender. Nil means that texts are used unchanged.
	Clean func(string) string
	// MaxMedia is the maximum size of a medium. 0 means DefaultMaxMedia.
	MaxMedia int

	Parts   []llm.Part
	Dropped []string // what is left out or is not what it was called, for people

	head string // stands before the next part; empty means nothing
}

// Text adds a text of the sender. A model reads texts that follow each other as one, so each begins
// on a line of its own. An empty text adds nothing.
func (r *Reader) Text(s string) {
	s = r.clean(s)
	if s != "" || r.head != "" {
		r.add(llm.Text{Text: s})
	}
}

// Head sets a remark of pawl, on a line of its own, before the part that follows.
func (r *Reader) Head(format string, args ...any) {
	r.head = "[" + fmt.Sprintf(format, args...) + "]\n"
}

// Note adds a remark of pawl in brackets.
func (r *Reader) Note(format string, args ...any) {
	r.add(llm.Text{Text: r.clean("[" + fmt.Sprintf(format, args...) + "]")})
}

// drop adds a note about what is left out, and reports it.
func (r *Reader) drop(format string, args ...any) {
	r.Note(format, args...)
	r.Dropped = append(r.Dropped, fmt.Sprintf(format, args...))
}

func (r *Reader) add(p llm.Part) {
	t, isText := p.(llm.Text)
	head := r.head
	r.head = ""
	switch {
	case head != "" && !isText:
		r.add(llm.Text{Text: head})
	case head != "":
		p = llm.Text{Text: head + t.Text}
	}

	r.EndLine()
	r.Parts = append(r.Parts, p)
}

// EndLine ends the last text with a line feed, unless it has one.
func (r *Reader) EndLine() {
	last := len(r.Parts) - 1
	if last < 0 {
		return
	}
	t, ok := r.Parts[last].(llm.Text)
	if ok && !strings.HasSuffix(t.Text, "\n") {
		r.Parts[last] = llm.Text{Text: t.Text + "\n"}
	}
}

func (r *Reader) clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if r.Clean == nil {
		return s
	}
	return r.Clean(s)
}

// name returns a word of the sender for a note.
func (r *Reader) name(s string, n int) string { return text.Clip(r.clean(s), n) }

// Bytes adds data whose sender states a type: text as a text, a medium as a medium. stated may be
// empty. name is the name of a file for notes; empty means none.
func (r *Reader) Bytes(data []byte, stated, name string) {
	kind := mediatype.Of(data, stated)
	called := r.name(cmp.Or(mediatype.Normal(stated), kind, "data"), maxKind)
	if name != "" {
		called = r.name(name, maxName) + ", " + called
	}

	m, ok := Medium(data, stated)
	switch {
	case len(data) == 0:
		r.drop("%s of 0 bytes is left out", called)
	case !ok:
		r.readable(data, stated, called)
	case len(data) > cmp.Or(r.MaxMedia, DefaultMaxMedia):
		r.drop("%s of %d bytes is left out", called, len(data))
	default:
		r.add(m)
	}
}

// Medium returns data as a medium: an image, a sound, a video or a PDF document. It reports false
// if data is nothing of this, or not what its sender says. stated is the type that the sender
// states; it may be empty.
func Medium(data []byte, stated string) (m llm.Media, ok bool) {
	kind := mediatype.Of(data, stated)
	if len(data) == 0 || !isMedium(kind) || !isSound(data, kind) {
		return llm.Media{}, false
	}
	return llm.Media{MIME: kind, Data: data}, true
}

// isMedium reports whether providers know the type as a medium or a document.
func isMedium(kind string) bool {
	if mediatype.IsText(kind) {
		return false // such as image/svg+xml
	}
	family, _, _ := strings.Cut(kind, "/")
	switch family {
	case "image", "audio", "video":
		return true
	}
	return kind == mediatype.PDF
}

// isSound reports whether data can be of the type kind: it has a signature, or the type has none.
func isSound(data []byte, kind string) bool {
	if mediatype.Detect(data) != "" {
		return true
	}
	_, readable := mediatype.Readable(data)
	return !readable && !mediatype.HasSignature(kind)
}

// readable adds data as a text if it is text. Otherwise a note says what the bytes are.
func (r *Reader) readable(data []byte, stated, called string) {
	kind := mediatype.Normal(stated)
	plain, ok := mediatype.Readable(data)
	switch {
	case !ok && mediatype.IsText(kind):
		r.Text(inCharset(data, stated))
	case !ok && isMedium(kind):
		r.drop("%s is left out: its %d bytes are not of that type", called, len(data))
	case !ok && (kind == "" || kind == mediatype.Octets):
		r.drop("%d bytes that are not text", len(data))
	case !ok:
		r.drop("%s: %d bytes that are not text", called, len(data))
	case isMedium(kind):
		r.drop("what is called %s is text", called)
		r.Text(plain)
	default:
		r.Text(plain)
	}
}

// inCharset returns text that is not UTF-8. Without a charset in the stated type, most of the text
// can be read in the usual one of the web.
func inCharset(data []byte, stated string) string {
	_, params, _ := mime.ParseMediaType(stated) // without parameters if it cannot be read
	charset, err := htmlindex.Get(cmp.Or(params["charset"], "windows-1252"))
	if err != nil {
		return string(data)
	}
	text, err := charset.NewDecoder().Bytes(data)
	if err != nil {
		return string(data)
	}
	return string(text)
}

// Encoded adds data in base64 of any form, or in a data: URI, as Bytes does. The type in the URI
// counts if the sender states no other.
func (r *Reader) Encoded(encoded, stated, name string) {
	data, own, err := mediatype.Decode(encoded)
	kind := mediatype.Normal(stated)
	switch {
	case err == nil:
	case strings.HasPrefix(encoded, "https://"), strings.HasPrefix(encoded, "http://"):
		r.Link(encoded, name, kind)
		return
	case mediatype.IsText(kind) && !isData(encoded):
		r.Text(encoded) // the text itself, or markup such as SVG
		return
	default:
		called := r.name(cmp.Or(name, mediatype.Normal(stated), "data"), maxName)
		r.drop("%s is left out: %v", called, err)
		return
	}
	if kind == "" {
		stated = own
	}
	r.Bytes(data, stated, name)
}

// Link adds a note about what stands at an address. Nothing is fetched.
func (r *Reader) Link(address string, about ...string) {
	of := strings.Join(strings.Fields(strings.Join(about, " ")), " ")
	r.Note("a link to the resource %s: %s", r.name(address, 2000), r.name(of, 1000))
}

// JSON adds a value unchanged.
func (r *Reader) JSON(v json.RawMessage) { r.Text(string(v)) }

// Structured adds structured data, unless the texts so far hold it.
func (r *Reader) Structured(data json.RawMessage) {
	switch {
	case len(data) == 0:
	case len(r.Parts) == 0:
		r.JSON(data)
	case !Holds(r.texts(), data):
		r.Head("structured content")
		r.JSON(data)
	}
}

// texts returns the texts so far, one for each part.
func (r *Reader) texts() []string {
	var all []string
	for _, p := range r.Parts {
		if t, ok := p.(llm.Text); ok {
			all = append(all, t.Text)
		}
	}
	return all
}
