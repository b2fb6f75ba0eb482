package relational

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl/store"
)

const (
	documentColumns = "id, title, source, kind, digest, meta, chunks, created, updated"
	ofDocument      = " from documents where tenant = ? and USER = ? and thread = ? and id = ?"
)

func scanDocument(r Row) (d store.Document, err error) {
	err = r.Scan(&d.ID, &d.Title, &d.Source, &d.Kind, &d.Digest, (*jsonField)(&d.Meta), &d.Chunks,
		(*timeField)(&d.Created), (*timeField)(&d.Updated))
	return d, err
}

// PutDocument stores a document with its chunks, in place of an existing one with that ID.
func (db *DB) PutDocument(ctx context.Context, s store.Scope, d store.Document, chunks []store.Chunk) (store.Document,
	error) {
	if err := valid(s, d.ID); err != nil {
		return d, err
	}
	meta, err := db.jsonText("meta", d.Meta)
	if err != nil {
		return d, err
	}
	for i := range chunks {
		if err := db.backend.CheckVector(chunks[i].Vector); err != nil {
			return d, fmt.Errorf("chunk %d: %w", i, err)
		}
	}

	now := stamp(db.backend.Now())
	if d.Created.IsZero() {
		d.Created = moment(now)
	}
	db.plain(&d.Title, &d.Source, &d.Kind, &d.Digest)
	err = db.backend.Change(ctx, Item{"document", s, d.ID}, func(tx Conn) error {
		created, err := number(ctx, tx, "document", "delete"+ofDocument+" returning created",
			s.Tenant, s.User, s.Thread, d.ID)
		switch {
		case err == nil:
			d.Created = moment(created)
		case !errors.Is(err, store.ErrNotFound):
			return err
		}

		n, err := number(ctx, tx, "document", `insert into documents
			(tenant, USER, thread, id, title, source, kind, digest, meta, chunks, created, updated)
			values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) returning n`,
			s.Tenant, s.User, s.Thread, d.ID, d.Title, d.Source, d.Kind, d.Digest, meta, len(chunks),
			stamp(d.Created), now)
		if err != nil {
			return err
		}
		return db.putChunks(ctx, tx, s, n, d.Title, chunks)
	})
	d.Chunks = len(chunks)
	d.Updated = moment(now)
	return d, err
}

func (db *DB) putChunks(ctx context.Context, tx Conn, s store.Scope, document int64, title string,
	all []store.Chunk) error {
	columns, values := db.backend.VectorColumns()
	insert := "insert into chunks (document, tenant, USER, thread, place, heading, body, " + columns + `)
		values (?, ?, ?, ?, ?, ?, ?, ` + values + ") returning n"
	batch := make([]Statement, len(all))
	numbers := make([]int64, len(all))
	texts := make([]string, len(all))
	for i, c := range all {
		db.plain(&c.Heading, &c.Text)
		args := []any{document, s.Tenant, s.User, s.Thread, i, c.Heading, c.Text}
		batch[i] = Statement{
			Text:   insert,
			Args:   append(args, db.backend.VectorArgs(c.Vector)...),
			Number: &numbers[i],
		}
		texts[i] = title + "\n" + c.Heading + "\n" + c.Text
	}
	if err := tx.Batch(ctx, batch); err != nil {
		return err
	}
	return db.backend.PutWords(ctx, tx, chunks, s, numbers, texts)
}

// Document returns a document without its chunks.
func (db *DB) Document(ctx context.Context, s store.Scope, id string) (store.Document, error) {
	return item(ctx, db, s, "document", id, scanDocument, "select "+documentColumns+ofDocument)
}

// Documents lists documents by ID.
func (db *DB) Documents(ctx context.Context, s store.Scope, p store.Page) ([]store.Document, error) {
	return page(ctx, db, s, p, scanDocument, "select "+documentColumns+
		" from documents where tenant = ? and USER = ? and thread = ? and id > ? order by id limit ?")
}

// DeleteDocument deletes a document.
func (db *DB) DeleteDocument(ctx context.Context, s store.Scope, id string) error {
	return db.drop(ctx, s, "document", id, ofDocument)
}

// hitColumns are the columns that scanHit reads, except the last one: whether the chunk belongs to
// another scope.
const hitColumns = "select t.n, d.id, t.place, t.heading, t.body, t.model, VECTOR, d.title, d.source, "

func (db *DB) scanHit(r Row) (n int64, h store.ChunkHit, err error) {
	var model *string
	var vector []byte
	if err = r.Scan(&n, &h.Document, &h.Index, &h.Heading, &h.Text, &model, &vector, &h.Title, &h.Source,
		&h.Shared); err != nil {
		return n, h, err
	}
	h.Vector, err = db.vector(model, vector)
	return n, h, err
}

// Chunks returns chunks of a document, in order.
func (db *DB) Chunks(ctx context.Context, s store.Scope, id string, from, limit int) ([]store.Chunk, error) {
	if _, err := db.Document(ctx, s, id); err != nil {
		return nil, err
	}
	scan := func(r Row) (store.Chunk, error) {
		_, h, err := db.scanHit(r)
		return h.Chunk, err
	}
	return List(ctx, db.backend.Read(), scan, hitColumns+`false from chunks t join documents d on d.n = t.document
		where d.tenant = ? and d.USER = ? and d.thread = ? and d.id = ? and t.place >= ? order by t.place limit ?`,
		s.Tenant, s.User, s.Thread, id, from, rowsOf(limit))
}

const inDocument = " join documents d on d.n = t.document"

var chunks = Kind{Table: "chunks", name: "d.id", place: "t.place", from: inDocument}

// SearchChunks finds chunks, the best first.
func (db *DB) SearchChunks(ctx context.Context, s store.Scope, q store.Query) ([]store.ChunkHit, error) {
	return search(ctx, db, chunks, s, q, db.scanHit, func(h *store.ChunkHit) *float64 { return &h.Score },
		hitColumns+"not (t.USER = ? and (? = '' or t.thread = ?)) from chunks t"+inDocument, s.User, s.Thread, s.Thread)
}
