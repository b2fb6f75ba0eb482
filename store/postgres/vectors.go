package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/internal/relational"
)

// vectorKind is the way in which vectors are stored and compared.
type vectorKind struct {
	column string // type of the column
	param  string // type as which a vector is sent
	read   string // the column in the form in which it is received
	says   string // for people
}

var (
	// little-endian numbers of 4 bytes, compared by this program
	asBytes = vectorKind{"bytea", "bytea", "t.vector",
		"without the extension vector, so vectors are compared outside the database"}

	// type of the extension vector, compared by the database
	asVector = vectorKind{"vector", "text", "t.vector::text", "vectors are compared by its extension vector"}
)

// widest is the maximum number of values of a vector of the extension; see its documentation,
// "Vector Type".
const widest = 16_000

// vectorKindOf returns how the tables of schema store vectors, or how new tables can.
func vectorKindOf(ctx context.Context, tx pgx.Tx, schema string, fresh bool) (vectorKind, error) {
	var kind string
	if !fresh {
		err := tx.QueryRow(ctx, "select format_type(atttypid, null) from pg_attribute where attrelid = $1::regclass and attname = 'vector'",
			pgx.Identifier{schema, "chunks"}.Sanitize()).Scan(&kind)
		if err == nil && kind != "bytea" {
			return asVector, nil
		}
		return asBytes, err
	}
	var there, known bool
	if err := tx.QueryRow(ctx, "select exists (select from pg_available_extensions where name = 'vector'), "+
		"to_regtype('vector') is not null").Scan(&there, &known); err != nil {
		return asBytes, err
	}
	if there && !known {
		// Without the right to create the extension, vectors are stored as bytes.
		if err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "create extension if not exists vector with schema public")
			return err
		}); err != nil {
			return asBytes, ctx.Err()
		}
		if err := tx.QueryRow(ctx, "select to_regtype('vector') is not null").Scan(&known); err != nil {
			return asBytes, err
		}
	}
	if known {
		return asVector, nil
	}
	return asBytes, nil
}

// check returns an error for a vector that cannot be stored.
func (k vectorKind) check(v store.Vector) error {
	if k == asVector && len(v.Values) > widest {
		return fmt.Errorf("a vector by %s has %d values; the extension vector stores at most %d", v.Model, len(v.Values), widest)
	}
	return v.Check()
}

// keep returns a vector in the form in which it is sent. Nil means no vector.
func (k vectorKind) keep(v store.Vector) any {
	switch {
	case v.Model == "":
		return nil
	case k == asVector:
		b := []byte{'['}
		for i, x := range v.Values {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendFloat(b, float64(x), 'g', -1, 32)
		}
		return string(append(b, ']'))
	}
	return relational.Bytes(v)
}

// vector returns the vector that was received as b.
func (k vectorKind) vector(model string, b []byte) (store.Vector, error) {
	v := store.Vector{Model: model}
	if k == asBytes {
		v.Values = relational.Values(b)
		return v, nil
	}
	for s := range strings.SplitSeq(strings.Trim(string(b), "[]"), ",") {
		x, err := strconv.ParseFloat(s, 32)
		if err != nil {
			return v, err
		}
		v.Values = append(v.Values, float32(x))
	}
	return v, nil
}

// ofVectors selects the rows of a kind whose vectors are comparable with a given one.
const ofVectors = " from TABLE t where WHOSE and t.model = ? and t.dimensions = ? ALSO"

// Nearest returns the rows whose vectors are nearest to the vector of q, the nearest first.
func (b *backend) Nearest(ctx context.Context, k relational.Kind, s store.Scope, q store.Query,
	limit int) ([]relational.Near, error) {
	v := q.Vector
	args := append(relational.Seen(s, q.Shared), v.Model, len(v.Values))
	if b.vectors == asVector {
		return relational.List(ctx, b.Read(), relational.ScanNear, k.In("select t.n, t.vector <=> ?::text::vector"+ofVectors+" order by 2, 1 limit ?"),
			append(append([]any{b.vectors.keep(v)}, args...), limit)...)
	}

	// Without pgvector, vectors are bytes that only this process can compare.
	rows, err := b.Read().Query(ctx, k.In("select t.n, t.vector"+ofVectors), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var best []relational.Near
	for rows.Next() {
		var n int64
		var bytes pgtype.DriverBytes // used without a copy
		if err := rows.Scan(&n, &bytes); err != nil {
			return nil, err
		}
		best = append(best, relational.Near{N: n, Distance: distance(v.Values, bytes)})
	}
	slices.SortFunc(best, relational.Nearer)
	return best[:min(len(best), limit)], rows.Err()
}

// distance returns 1 minus the cosine of the angle between v and the vector stored as b.
func distance(v []float32, b []byte) float64 {
	var dot, vv, bb float64
	for i, x := range v {
		y := float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
		x := float64(x)
		dot, vv, bb = dot+x*y, vv+x*x, bb+y*y
	}
	return 1 - dot/math.Sqrt(vv*bb)
}
