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

// Source is something to take in: text, Markdown, HTML, CSV, JSON, JSON lines, PDF or DOCX, which its content says; Name decides where they look alike.
type Source struct {
	Name  string // where it is from: a path, an address; "": nowhere, and its ID is made of its text
	Data  []byte // at most 32 MiB
	ID    string // what it is kept as; "": Name. What has that ID already is replaced
	Title string // "": as the document says it, else made of Name
	Meta  json.RawMessage

	// Progress, when not nil, is told how many of the chunks have their vectors. It is not called without an Embedder.
	Progress func(done, total int)
}

// Added is what came of taking something in.
type Added struct {
	store.Document
	Same  bool     // it was there already, just so, and was not touched
	Notes []string // what is odd about it, for a person
}

// form is part of a digest: another one takes all documents in again.
const form = "1"

// Add takes a document in, for s; s.Thread "" is all the user's conversations. What is there already under that ID, from the same bytes and with vectors of
// the same model, is left as it is. The error says what is wrong with the document, or is that of the Embedder or the store; then nothing was changed.
func (s *Set) Add(ctx context.Context, sc store.Scope, src Source) (Added, error) {
	d := store.Document{ID: cmp.Or(src.ID, src.Name), Source: src.Name, Meta: src.Meta, Digest: s.digest(src)}
	if d.ID == "" {
		d.ID = "text-" + d.Digest[:16]
	} else if store.CheckID(d.ID) != nil {
		sum := sha256.Sum256([]byte(d.ID))
		d.ID = "document-" + hex.EncodeToString(sum[:8])
	}
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
	d.Title, d.Kind = cmp.Or(src.Title, read.Title, document.BaseTitle(src.Name)), read.Kind
	chunks := make([]store.Chunk, 0, len(read.Blocks))
	for _, c := range document.Chunks(read.Blocks, 0, 0) {
		chunks = append(chunks, store.Chunk{Heading: c.Heading, Text: c.Text})
	}
	if err := s.embed(ctx, d.Title, chunks, src.Progress); err != nil {
		return Added{}, err
	}
	d, err = s.db.PutDocument(ctx, sc, d, chunks)
	return Added{Document: d, Notes: read.Notes}, err
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

// embed gives the chunks their vectors, which know of the title and the headings too.
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
			if len(v.Values) != len(vectors[0].Values) || from > 0 && len(v.Values) != len(chunks[0].Vector.Values) {
				return fmt.Errorf("%s changed the size of its vectors", v.Model)
			}
			part[i].Vector = v
		}
		if progress != nil {
			progress(from+len(part), len(chunks))
		}
	}
	return nil
}

// AddFile takes in a file of this machine, under its path. One that is too large is not read.
func (s *Set) AddFile(ctx context.Context, sc store.Scope, path string) (Added, error) {
	src, err := FileSource(path)
	if err != nil {
		return Added{}, err
	}
	return s.Add(ctx, sc, src)
}

// FileSource reads a file of this machine to be taken in.
func FileSource(path string) (Source, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe that nobody writes to would hold it up
	if err != nil {
		return Source{}, err
	}
	defer f.Close()
	switch info, err := f.Stat(); {
	case err != nil:
		return Source{}, err
	case !info.Mode().IsRegular():
		return Source{}, fmt.Errorf("%s is no file; what a program writes can come by standard input", path)
	case info.Size() > document.MaxBytes:
		return Source{}, document.TooLarge(info.Size())
	}
	data, err := ReadSource(f)
	return Source{Name: path, Data: data}, err
}

// ReadSource reads what is to be taken in, at most 32 MiB; more is an error.
func ReadSource(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, document.MaxBytes+1))
	if err == nil && len(data) > document.MaxBytes {
		err = fmt.Errorf("it has more than %d MiB, which are the most", document.MaxBytes>>20)
	}
	return data, err
}

// AddPage fetches an address and takes in what is there, under that address.
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
	if res.Charset != "" { // the server knows better than the page
		data = append([]byte("\ufeff"), webpage.Decode(bytes.Clone(data), res.Type+"; charset="+res.Charset)...)
	}
	return s.Add(ctx, sc, Source{Name: address, Data: data})
}
