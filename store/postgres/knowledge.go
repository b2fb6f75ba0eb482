package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/store"
)

const documentColumns = "id, title, source, kind, digest, meta, chunks, created, updated"

func scanDocument(r pgx.Rows) (d store.Document, err error) {
	var meta *string
	var created, updated int64
	err = r.Scan(&d.ID, &d.Title, &d.Source, &d.Kind, &d.Digest, &meta, &d.Chunks, &created, &updated)
	d.Meta, d.Created, d.Updated = raw(meta), moment(created), moment(updated)
	return d, err
}

const ofDocument = " from documents where tenant = $1 and userid = $2 and thread = $3 and id = $4"

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
		if err := db.vectors.check(chunks[i].Vector); err != nil {
			return d, fmt.Errorf("chunk %d: %w", i, err)
		}
	}
	now := stamp(db.now())
	if d.Created.IsZero() {
		d.Created = moment(now)
	}
	d.Title, d.Source, d.Kind, d.Digest = plain(d.Title), plain(d.Source), plain(d.Kind), plain(d.Digest)
	err = db.change(ctx, lock("document", s, d.ID), func(tx pgx.Tx) error {
		var created int64
		switch err := tx.QueryRow(ctx, "delete"+ofDocument+" returning created", s.Tenant, s.User, s.Thread, d.ID).Scan(&created); {
		case err == nil:
			d.Created = moment(created)
		case !errors.Is(err, pgx.ErrNoRows):
			return err
		}
		var n int64
		if err := tx.QueryRow(ctx, `insert into documents (tenant, userid, thread, id, title, source, kind, digest, meta, chunks, created, updated)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) returning n`, s.Tenant, s.User, s.Thread, d.ID, d.Title, d.Source, d.Kind, d.Digest, meta, len(chunks), stamp(d.Created), now).Scan(&n); err != nil {
			return err
		}
		from := 0
		for part := range slices.Chunk(chunks, 500) { // the size of a statement is limited
			if err := db.putChunks(ctx, tx, s, n, d.Title, from, part); err != nil {
				return err
			}
			from += len(part)
		}
		return nil
	})
	d.Chunks, d.Updated = len(chunks), moment(now)
	return d, err
}

// putChunks stores chunks; from is the position of the first one in the document.
func (db *DB) putChunks(ctx context.Context, tx pgx.Tx, s store.Scope, document int64, title string, from int, part []store.Chunk) error {
	headings, texts, vectors := make([]string, len(part)), make([]string, len(part)), make([]store.Vector, len(part))
	for i, c := range part {
		headings[i], texts[i], vectors[i] = plain(c.Heading), plain(c.Text), c.Vector
	}
	models, sizes, kept := db.vectors.columns(vectors)
	found, said := make([]int64, len(part)), make([]string, len(part))
	scan := func(r pgx.Rows) (place int, err error) {
		var n int64
		if err = r.Scan(&n, &place); err == nil {
			i := place - from
			found[i], said[i] = n, title+"\n"+headings[i]+"\n"+texts[i]
		}
		return place, err
	}
	if _, err := list(ctx, tx, scan, `insert into chunks (document, tenant, userid, thread, place, heading, body, model, dimensions, vector)
		select $1, $2, $3, $4, $5 + i - 1, heading, body, model, dimensions, vector::`+db.vectors.column()+`
		from unnest($6::text[], $7::text[], $8::text[], $9::int[], $10::`+db.vectors.param()+`[]) with ordinality as x (heading, body, model, dimensions, vector, i) returning n, place`,
		document, s.Tenant, s.User, s.Thread, from, headings, texts, models, sizes, kept); err != nil {
		return err
	}
	return putWords(ctx, tx, chunks, s, found, said)
}

// Document returns a document without its chunks.
func (db *DB) Document(ctx context.Context, s store.Scope, id string) (store.Document, error) {
	if err := valid(s, id); err != nil {
		return store.Document{}, err
	}
	return one(ctx, db.pool, "document "+id, scanDocument, "select "+documentColumns+ofDocument, s.Tenant, s.User, s.Thread, id)
}

// Documents lists documents by ID.
func (db *DB) Documents(ctx context.Context, s store.Scope, p store.Page) ([]store.Document, error) {
	if err := valid(s); err != nil {
		return nil, err
	}
	return list(ctx, db.pool, scanDocument, "select "+documentColumns+" from documents where tenant = $1 and userid = $2 and thread = $3 and id > $4 order by id limit $5",
		s.Tenant, s.User, s.Thread, plain(p.After), p.Size())
}

// DeleteDocument deletes a document.
func (db *DB) DeleteDocument(ctx context.Context, s store.Scope, id string) error {
	if err := valid(s, id); err != nil {
		return err
	}
	return db.remove(ctx, "document "+id, "delete"+ofDocument, s.Tenant, s.User, s.Thread, id)
}

// chunkColumns returns the columns that scanHit reads, and one more: whether the chunk belongs to
// another scope.
func (db *DB) chunkColumns() string {
	return "t.n, d.id, t.place, t.heading, t.body, t.model, " + db.vectors.read() + ", d.title, d.source"
}

func (db *DB) scanHit(r pgx.Rows) (n int64, h store.ChunkHit, err error) {
	v := vectorField{kind: db.vectors}
	fields := append([]any{&n, &h.Document, &h.Index, &h.Heading, &h.Text}, v.fields()...)
	if err = r.Scan(append(fields, &h.Title, &h.Source, &h.Shared)...); err != nil {
		return n, h, err
	}
	h.Vector, err = v.vector()
	return n, h, err
}

// Chunks returns chunks of a document, in order.
func (db *DB) Chunks(ctx context.Context, s store.Scope, id string, from, limit int) ([]store.Chunk, error) {
	if _, err := db.Document(ctx, s, id); err != nil {
		return nil, err
	}
	scan := func(r pgx.Rows) (store.Chunk, error) {
		_, h, err := db.scanHit(r)
		return h.Chunk, err
	}
	return list(ctx, db.pool, scan, "select "+db.chunkColumns()+`, false from chunks t join documents d on d.n = t.document
		where d.tenant = $1 and d.userid = $2 and d.thread = $3 and d.id = $4 and t.place >= $5 order by t.place limit $6`, s.Tenant, s.User, s.Thread, id, from, rowsOf(limit))
}

var chunks = searched{table: "chunks", id: "d.id || ' ' || to_char(t.place, 'FM00000000')", from: "join documents d on d.n = t.document"}

// SearchChunks finds chunks, the best first.
func (db *DB) SearchChunks(ctx context.Context, s store.Scope, q store.Query) ([]store.ChunkHit, error) {
	found, err := db.find(ctx, chunks, s, q)
	return load(ctx, db, s, q, found, err, db.scanHit, func(h store.ChunkHit, score float64) store.ChunkHit {
		h.Score = score
		return h
	}, chunks.in("select "+db.chunkColumns()+", not (t.userid = $3 and ($4 = '' or t.thread = $4)) from chunks t join documents d on d.n = t.document where t.n = any($6) and WHOSE"))
}
