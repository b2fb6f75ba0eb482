package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/internal/words"
)

const documentColumns = "id, title, source, kind, digest, meta, chunks, created, updated"

func scanDocument(r *sql.Rows) (d store.Document, err error) {
	var meta sql.NullString
	var created, updated int64
	err = r.Scan(&d.ID, &d.Title, &d.Source, &d.Kind, &d.Digest, &meta, &d.Chunks, &created, &updated)
	d.Meta, d.Created, d.Updated = raw(meta), moment(created), moment(updated)
	return d, err
}

// PutDocument stores a document with its chunks, in place of an existing one with that ID.
func (db *DB) PutDocument(ctx context.Context, s store.Scope, d store.Document, chunks []store.Chunk) (store.Document, error) {
	if err := valid(s, d.ID); err != nil {
		return d, err
	}
	meta, err := jsonText("meta", d.Meta)
	if err != nil {
		return d, err
	}
	for i := range chunks {
		if err := chunks[i].Vector.Check(); err != nil {
			return d, fmt.Errorf("chunk %d: %w", i, err)
		}
	}
	now := stamp(db.now())
	if d.Created.IsZero() {
		d.Created = moment(now)
	}
	err = db.change(ctx, func(tx *sql.Tx) error {
		var created, n int64
		err := tx.QueryRowContext(ctx, "select created from documents where tenant = ? and user = ? and thread = ? and id = ?", s.Tenant, s.User, s.Thread, d.ID).Scan(&created)
		switch {
		case err == nil:
			d.Created = moment(created)
			_, err = tx.ExecContext(ctx, "delete from documents where tenant = ? and user = ? and thread = ? and id = ?", s.Tenant, s.User, s.Thread, d.ID)
		case err == sql.ErrNoRows:
			err = nil
		}
		if err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, `insert into documents (tenant, user, thread, id, title, source, kind, digest, meta, chunks, created, updated)
			values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) returning n`, s.Tenant, s.User, s.Thread, d.ID, d.Title, d.Source, d.Kind, d.Digest, meta, len(chunks), stamp(d.Created), now).Scan(&n); err != nil {
			return err
		}
		return putChunks(ctx, tx, s, n, d.Title, chunks)
	})
	d.Chunks, d.Updated = len(chunks), moment(now)
	return d, err
}

func putChunks(ctx context.Context, tx *sql.Tx, s store.Scope, document int64, title string, chunks []store.Chunk) error {
	row, err := tx.PrepareContext(ctx, "insert into chunks (document, tenant, user, thread, place, heading, body, model, vector) values (?, ?, ?, ?, ?, ?, ?, ?, ?) returning n")
	if err != nil {
		return err
	}
	defer row.Close()
	index, err := tx.PrepareContext(ctx, "insert into chunks_words (rowid, text) values (?, ?)")
	if err != nil {
		return err
	}
	defer index.Close()
	for i := range chunks {
		c := &chunks[i]
		var n int64
		if err := row.QueryRowContext(ctx, document, s.Tenant, s.User, s.Thread, i, c.Heading, c.Text, null(c.Vector.Model), blob(c.Vector)).Scan(&n); err != nil {
			return err
		}
		if _, err := index.ExecContext(ctx, n, words.Spaced(title+"\n"+c.Heading+"\n"+c.Text)); err != nil {
			return err
		}
	}
	return nil
}

// Document returns a document without its chunks.
func (db *DB) Document(ctx context.Context, s store.Scope, id string) (store.Document, error) {
	if err := valid(s, id); err != nil {
		return store.Document{}, err
	}
	return one(ctx, db.read, "document "+id, scanDocument, "select "+documentColumns+" from documents where tenant = ? and user = ? and thread = ? and id = ?",
		s.Tenant, s.User, s.Thread, id)
}

// Documents lists documents by ID.
func (db *DB) Documents(ctx context.Context, s store.Scope, p store.Page) ([]store.Document, error) {
	if err := valid(s); err != nil {
		return nil, err
	}
	return list(ctx, db.read, scanDocument, "select "+documentColumns+" from documents where tenant = ? and user = ? and thread = ? and id > ? order by id limit ?",
		s.Tenant, s.User, s.Thread, p.After, p.Size())
}

// DeleteDocument deletes a document.
func (db *DB) DeleteDocument(ctx context.Context, s store.Scope, id string) error {
	if err := valid(s, id); err != nil {
		return err
	}
	res, err := db.write.ExecContext(ctx, "delete from documents where tenant = ? and user = ? and thread = ? and id = ?", s.Tenant, s.User, s.Thread, id)
	return changed(res, err, "document "+id)
}

func scanHit(r *sql.Rows) (h store.ChunkHit, err error) {
	var model sql.NullString
	var v []byte
	err = r.Scan(&h.Document, &h.Index, &h.Heading, &h.Text, &model, &v, &h.Title, &h.Source, &h.Score, &h.Shared)
	h.Vector = vector(model, v)
	return h, err
}

const chunkColumns = "d.id, t.place, t.heading, t.body, t.model, t.vector, d.title, d.source"

// Chunks returns chunks of a document, in order.
func (db *DB) Chunks(ctx context.Context, s store.Scope, id string, from, limit int) ([]store.Chunk, error) {
	if _, err := db.Document(ctx, s, id); err != nil {
		return nil, err
	}
	if limit <= 0 {
		limit = -1
	}
	scan := func(r *sql.Rows) (store.Chunk, error) {
		h, err := scanHit(r)
		return h.Chunk, err
	}
	return list(ctx, db.read, scan, "select "+chunkColumns+", 0, 0 from chunks t join documents d on d.n = t.document where d.tenant = ? and d.user = ? and d.thread = ? and d.id = ? and t.place >= ? order by t.place limit ?",
		s.Tenant, s.User, s.Thread, id, from, limit)
}

// SearchChunks finds chunks, the best first.
func (db *DB) SearchChunks(ctx context.Context, s store.Scope, q store.Query) ([]store.ChunkHit, error) {
	found, err := db.find(ctx, searched{table: "chunks", words: "chunks_words", id: "d.id || ' ' || printf('%08d', t.place)", from: "join documents d on d.n = t.document"}, s, q)
	return load(found, err, func(n, score any) (store.ChunkHit, error) {
		return one(ctx, db.read, "chunk", scanHit, "select "+chunkColumns+", ?, not (t.user = ? and (? = '' or t.thread = ?)) from chunks t join documents d on d.n = t.document where t.n = ? and "+inScope,
			append([]any{score, s.User, s.Thread, s.Thread, n}, seen(s, q.Shared)...)...)
	})
}
