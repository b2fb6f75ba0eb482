package knowledge

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"

	"github.com/pawl-go/pawl/internal/netguard"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/internal/document"
	"github.com/pawl-go/pawl/tools/internal/webpage"
)

// Source is a document to add: text, Markdown, HTML, CSV, JSON, JSON lines, PDF or DOCX. The
// content determines the format. Name is used only to choose between formats that look alike.
type Source struct {
	// Name is the origin of the document, a path or an address. Empty means none; the ID is then
	// derived from the text.
	Name string
	Data []byte // at most 32 MiB
	// ID under which the document is stored; empty means Name; an existing document with this ID is
	// replaced
	ID string
	// Title is empty for the title in the document, or else a title derived from Name.
	Title string
	Meta  json.RawMessage // a JSON value of the program; nil means none

	// Progress receives the number of chunks that have vectors. Nil means no reports. It is not
	// called without an Embedder.
	Progress func(done, total int)
}

// Added is the result of adding a document.
type Added struct {
	store.Document
	Same  bool     // the document was stored already, without any difference, and was not touched
	Notes []string // irregularities of the document, for a person
}

// form is part of a digest: changing it adds all documents again.
const form = "1"

// Add adds a document for s. If s.Thread is empty, it is added for all of the user's threads. An
// existing document with the same ID, the same bytes and vectors of the same model stays unchanged.
// The error says what is wrong with the document, or comes from the Embedder or the store. After an
// error nothing has changed.
func (s *Set) Add(ctx context.Context, sc store.Scope, src Source) (Added, error) {
	d := store.Document{Source: src.Name, Meta: src.Meta, Digest: s.digest(src)}
	d.ID = documentID(cmp.Or(src.ID, src.Name), d.Digest)
	old, err := s.db.Document(ctx, sc, d.ID)
	switch {
	case err == nil && old.Digest == d.Digest:
		return Added{Document: old, Same: true}, nil
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return Added{}, err
	}

	read, err := document.Read(ctx, src.Name, src.Data)
	if err != nil {
		return Added{}, err
	}
	d.Title = cmp.Or(src.Title, read.Title, document.BaseTitle(src.Name))
	d.Kind = read.Kind
	chunks := make([]store.Chunk, 0, len(read.Blocks))
	for _, c := range document.Chunks(read.Blocks, 0, 0) {
		chunks = append(chunks, store.Chunk{Heading: c.Heading, Text: c.Text})
	}

	// The vectors come first: a document whose words alone can be found would look complete.
	if err := s.embed(ctx, d.Title, chunks, src.Progress); err != nil {
		return Added{}, err
	}
	d, err = s.db.PutDocument(ctx, sc, d, chunks)
	return Added{Document: d, Notes: read.Notes}, err
}

// documentID returns the ID under which a document is stored: its name, or a digest of it if the
// store does not accept the name, or of the content if there is no name.
func documentID(name, digest string) string {
	switch {
	case name == "":
		return "text-" + digest[:16]
	case store.CheckID(name) != nil:
		sum := sha256.Sum256([]byte(name))
		return "document-" + hex.EncodeToString(sum[:8])
	}
	return name
}

func (s *Set) digest(src Source) string {
	h := sha256.New()
	model := ""
	if s.opts.Embedder != nil {
		model = s.opts.Embedder.Name()
	}
	for _, part := range []string{form, model, src.Name, src.Title, string(src.Meta)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	h.Write(src.Data)
	return hex.EncodeToString(h.Sum(nil))
}

// embed computes the vectors of the chunks, including their title and headings.
func (s *Set) embed(ctx context.Context, title string, chunks []store.Chunk, progress func(done, total int)) error {
	const together = 256
	if s.opts.Embedder == nil {
		return nil
	}

	for from := 0; from < len(chunks); from += together {
		part := chunks[from:min(from+together, len(chunks))]
		texts := make([]string, len(part))
		for i, c := range part {
			texts[i] = strings.TrimLeft(title+"\n"+c.Heading+"\n"+c.Text, "\n")
		}
		vectors, err := store.Embed(ctx, s.opts.Embedder, store.ForDocument, texts...)
		if err != nil {
			return err
		}

		for i, v := range vectors {
			part[i].Vector = v
			if len(v.Values) != len(chunks[0].Vector.Values) {
				return fmt.Errorf("%s changed the size of its vectors", v.Model)
			}
		}
		if progress != nil {
			progress(from+len(part), len(chunks))
		}
	}
	return nil
}

// AddFile adds a local file under its path. A file that is too large is not read.
func (s *Set) AddFile(ctx context.Context, sc store.Scope, path string) (Added, error) {
	src, err := FileSource(path)
	if err != nil {
		return Added{}, err
	}
	return s.Add(ctx, sc, src)
}

// FileSource reads a local file as a Source.
func FileSource(path string) (Source, error) {
	// so that a pipe without a writer does not block
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return Source{}, err
	}
	defer f.Close()

	info, err := f.Stat()
	switch {
	case err != nil:
		return Source{}, err
	case !info.Mode().IsRegular():
		return Source{}, fmt.Errorf("%s is not a file; the output of a program can be read from standard input", path)
	case info.Size() > document.MaxBytes:
		return Source{}, document.TooLarge(info.Size())
	}
	data, err := ReadSource(f)
	return Source{Name: path, Data: data}, err
}

// ReadSource reads a document of at most 32 MiB. A larger document is an error.
func ReadSource(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, document.MaxBytes+1))
	if err == nil && len(data) > document.MaxBytes {
		err = fmt.Errorf("it has more than %d MiB, which are the most", document.MaxBytes>>20)
	}
	return data, err
}

// AddPage fetches an address and adds the page under that address.
func (s *Set) AddPage(ctx context.Context, sc store.Scope, address string) (Added, error) {
	guard, err := netguard.New(netguard.Options{Allow: s.opts.Allow})
	if err != nil {
		return Added{}, err
	}
	defer guard.CloseIdleConnections()
	fetch := webpage.Fetcher{Transport: guard, MaxBody: document.MaxBytes}
	res, err := fetch.Fetch(ctx, webpage.Request{URL: address})
	switch {
	case err != nil:
		return Added{}, err
	case res.Status != http.StatusOK:
		return Added{}, fmt.Errorf("%s answers with status %d", address, res.Status)
	case res.Truncated:
		return Added{}, fmt.Errorf("%s has more than %d MiB, which are the most", address, document.MaxBytes>>20)
	}
	data := res.Body
	if res.Charset != "" { // the server's charset takes precedence over the page's
		data = append([]byte("\ufeff"), webpage.Decode(bytes.Clone(data), res.Type+"; charset="+res.Charset)...)
	}
	return s.Add(ctx, sc, Source{Name: address, Data: data})
}
