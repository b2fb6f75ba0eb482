package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/internal/relational"
	"github.com/pawl-go/pawl/store/internal/words"
)

// maxIndexed limits the searchable part of a text. PostgreSQL refuses an index entry of 1 MiB, and
// in the worst case an entry is twice as long as its words.
const maxIndexed = 384 << 10

// folded returns the words of a text separated by single spaces, without accents, in lower case. It
// contains only letters and digits, so that PostgreSQL's parser finds no addresses, tags or paths
// in it.
func folded(text string) string {
	text = text[:min(len(text), 2*maxIndexed)]
	text = strings.ToLower(unaccented(words.Spaced(strings.ToValidUTF8(text, " "))))
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return !words.Part(r) }), " ")
	if len(text) > maxIndexed {
		text = strings.ToValidUTF8(text[:maxIndexed], "")
	}
	return text
}

// unaccented returns text without the accents of its letters.
func unaccented(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) {
		return text
	}
	text = strings.Map(func(r rune) rune {
		// combining diacritical marks; marks of other scripts are part of their words
		if r >= 0x0300 && r <= 0x036F {
			return -1
		}
		return r
	}, norm.NFD.String(text))
	return norm.NFC.String(text)
}

// mark returns a word that every text of a scope's user contains. It restricts the index to texts
// that are in the scope and contain the words. The result is checked against the columns as well.
func mark(s store.Scope) string {
	return "\x01" + hex.EncodeToString(digest(s.Tenant + "\x00" + s.User)[:16])
}

// digest stands for a text that is too long for an index.
func digest(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// PutWords stores the words by which the rows n are found, in place of the existing ones.
func (b *backend) PutWords(ctx context.Context, tx relational.Conn, k relational.Kind, s store.Scope, n []int64,
	texts []string) error {
	if len(n) == 0 {
		return nil
	}
	sizes := make([]int, len(texts))
	for i := range texts {
		texts[i] = folded(texts[i])
		sizes[i] = strings.Count(texts[i], " ") + min(1, len(texts[i]))
	}
	_, err := tx.Exec(ctx, k.In(`insert into WORDS (n, tenant, USER, thread, size, words)
		select n, ?, ?, ?, size, to_tsvector('words', text) || array_to_tsvector(array[?::text])
		from unnest(?::bigint[], ?::int[], ?::text[]) as x (n, size, text)
		on conflict (n) do update set size = excluded.size, words = excluded.words`), s.Tenant, s.User, s.Thread, mark(s), n, sizes, texts)
	return err
}
