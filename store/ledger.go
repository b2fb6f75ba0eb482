package store

// ledger.go: Ledger, what protects journals from a person who can write to their database: seals of
// heads, signatures, and anchors outside of the database.

import (
	"bufio"
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// ErrCorrupt is wrapped by errors about a journal that differs from what was written.
var ErrCorrupt = errors.New("the journal is damaged")

// Ledger signs and anchors the runs of a journal. Nil and the zero value do neither.
type Ledger struct {
	// Key is an ed25519 key. It signs the head of a run at each change, and each record that is
	// written without a lease, such as a decision. Nil means no signature; the journal then refuses
	// to change a run whose head is signed.
	Key crypto.Signer
	// Anchor stores a head where a person who can write to the database cannot change it. It is
	// called after each change of a run, except the renewal and the release of a lease. The method
	// that made the change returns its error; the change stays in the database. Nil means no
	// anchors.
	Anchor func(ctx context.Context, a Anchor) error
}

// Anchor is a head of a run, for a place outside of the database. It has no text of a user.
type Anchor struct {
	Scope   Scope     `json:"scope,omitzero"` // of the run
	Run     string    `json:"run"`            // the ID of the run
	Records int64     `json:"records"`        // JournalRun.Records
	Fence   int64     `json:"fence"`          // JournalRun.Fence
	Head    string    `json:"head"`           // JournalRun.Head
	Digest  string    `json:"digest"`         // of all columns of the head, except owner and until
	At      time.Time `json:"at"`             // JournalRun.Updated
	// Gone means that the run was deleted.
	Gone      bool   `json:"gone,omitzero"`
	Signature string `json:"signature,omitzero"` // of all other fields; empty means unsigned
}

// ReadAnchors reads anchors, one JSON object a line.
func ReadAnchors(r io.Reader) (all []Anchor, err error) {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		var a Anchor
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.DisallowUnknownFields()
		if err := d.Decode(&a); err != nil {
			return nil, fmt.Errorf("line %d is no anchor: %w", n, err)
		}
		all = append(all, a)
	}
	return all, lines.Err()
}

// columns returns the names and the values of the columns of a head that its seal covers: all but
// the seal.
func (r *JournalRun) columns() [][2]string {
	at := func(t time.Time) string {
		if t.IsZero() {
			return "0"
		}
		return strconv.FormatInt(t.UnixNano(), 10)
	}
	all := [][2]string{
		{"tenant", r.Scope.Tenant},
		{"user", r.Scope.User},
		{"thread", r.Scope.Thread},
		{"id", r.ID},
		{"agent", r.Agent},
		{"task", r.Task},
		{"state", r.State},
		{"summary", string(r.Summary)},
		{"owner", r.Owner},
		{"fence", strconv.FormatInt(r.Fence, 10)},
		{"until", at(r.Until)},
		{"records", strconv.FormatInt(r.Records, 10)},
		{"head", r.Head},
		{"created", at(r.Created)},
		{"updated", at(r.Updated)},
	}

	// Heads from before these columns have neither. A value has the name of its column, so that no
	// two heads have the same parts.
	if !r.Next.IsZero() {
		all = append(all, [2]string{"next", "next " + at(r.Next)})
	}
	if r.Lapses != 0 {
		all = append(all, [2]string{"lapses", "lapses " + strconv.FormatInt(r.Lapses, 10)})
	}
	return all
}

// seal returns the digest of a head, and the short digests of its columns, which name the column
// that was changed.
func (r *JournalRun) seal() string {
	var all, each []byte
	for _, c := range r.columns() {
		all = appendPart(all, c[1])
		one := sha256.Sum256([]byte(c[1]))
		each = append(each, one[:4]...)
	}

	seal := append(make([]byte, 0, 256), "1."...)
	sum := sha256.Sum256(all)
	seal = hex.AppendEncode(seal, sum[:])
	seal = append(seal, '.')
	return string(hex.AppendEncode(seal, each))
}

// appendPart appends a part of a text that is hashed: its length, and the part.
func appendPart(b []byte, part string) []byte {
	b = strconv.AppendInt(b, int64(len(part)), 10)
	b = append(b, ':')
	return append(b, part...)
}

// sealParts returns the digests and the signature of a seal.
func sealParts(seal string) (digests, signature string) {
	parts := strings.SplitN(seal, ".", 4)
	if len(parts) == 4 {
		signature = parts[3]
	}
	return strings.Join(parts[:min(3, len(parts))], "."), signature
}

// CheckSeal returns an ErrCorrupt that names the columns in which a head differs from its seal. A
// head without a seal, from before there were any, is valid.
func (r JournalRun) CheckSeal() error {
	was, _ := sealParts(r.Seal)
	now := r.seal()
	if r.Seal == "" || was == now {
		return nil
	}

	// The last part of a seal has eight digits for each column, so that the changed ones can be
	// named.
	var changed []string
	a, b := strings.Split(was, "."), strings.Split(now, ".")
	switch {
	case len(a) != 3:
	case len(a[2]) != len(b[2]): // only these columns may be absent
		changed = []string{"next or lapses"}
	default:
		for i, c := range r.columns() {
			if a[2][8*i:8*i+8] != b[2][8*i:8*i+8] {
				changed = append(changed, c[0])
			}
		}
	}
	if changed == nil {
		changed = []string{"seal"}
	}
	return fmt.Errorf("run %s: %w: changed in its head: %s", r.ID, ErrCorrupt, strings.Join(changed, ", "))
}

// Seal returns the seal of a head before it is stored. r.Seal is the previous one.
func (l *Ledger) Seal(r JournalRun) (string, error) {
	if _, signed := sealParts(r.Seal); signed != "" && (l == nil || l.Key == nil) {
		return "", fmt.Errorf("run %s: its head is signed, and this process has no key to sign it", r.ID)
	}
	seal := r.seal()
	signature, err := l.sign("head", seal)
	if signature != "" {
		seal += "." + signature
	}
	return seal, err
}

// SignRecord returns the signature of a record with its Hash. It is empty without a key, and for a
// record under a lease, which the signature of the head covers.
func (l *Ledger) SignRecord(r Record) (string, error) {
	if r.Fence != 0 {
		return "", nil
	}
	return l.sign("record", r.Hash)
}

func (l *Ledger) sign(what, text string) (string, error) {
	if l == nil || l.Key == nil {
		return "", nil
	}
	b, err := l.Key.Sign(rand.Reader, signedText(what, text), crypto.Hash(0))
	return base64.RawStdEncoding.EncodeToString(b), err
}

func signedText(what, text string) []byte { return []byte("pawl " + what + "\n" + text) }

func signedBy(keys []ed25519.PublicKey, what, text, signature string) bool {
	b, err := base64.RawStdEncoding.DecodeString(signature)
	if err != nil {
		return false
	}
	for _, k := range keys {
		if len(k) == ed25519.PublicKeySize && ed25519.Verify(k, signedText(what, text), b) {
			return true
		}
	}
	return false
}

// SignedBy reports whether one of the keys signed the head.
func (r JournalRun) SignedBy(keys []ed25519.PublicKey) bool {
	digests, signature := sealParts(r.Seal)
	return signedBy(keys, "head", digests, signature)
}

// SignedBy reports whether one of the keys signed the record.
func (r Record) SignedBy(keys []ed25519.PublicKey) bool {
	return signedBy(keys, "record", r.Hash, r.Signature)
}

// SignedBy reports whether one of the keys signed the anchor.
func (a Anchor) SignedBy(keys []ed25519.PublicKey) bool {
	return signedBy(keys, "anchor", a.text(), a.Signature)
}

func (a Anchor) text() string {
	a.Signature = ""
	b, _ := json.Marshal(a) // texts, numbers and a time
	return string(b)
}

// Anchor returns the unsigned anchor of a head.
func (r JournalRun) Anchor() Anchor {
	a := Anchor{Scope: r.Scope, Run: r.ID, Records: r.Records, Fence: r.Fence, Head: r.Head, At: r.Updated.UTC()}
	r.Owner = ""
	r.Until = time.Time{}
	a.Digest = strings.Split(r.seal(), ".")[1]
	return a
}

// Store anchors a head that was stored, or a run that was deleted.
func (l *Ledger) Store(ctx context.Context, r JournalRun, gone bool) (err error) {
	if l == nil || l.Anchor == nil {
		return nil
	}
	a := r.Anchor()
	a.Gone = gone
	a.Signature, err = l.sign("anchor", a.text())
	if err == nil {
		err = l.Anchor(ctx, a)
	}
	if err != nil {
		return fmt.Errorf("run %s was changed, and is not anchored: %w", r.ID, err)
	}
	return nil
}
