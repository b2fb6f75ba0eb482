package durable

// verify.go: checks that the journal of a run was not changed.

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"

	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/store"
)

// Verified is the valid part of a journal.
type Verified struct {
	// Records is the number of records of the run.
	Records int64
	// Head is the hash of the last record. A copy of it elsewhere can prove later that the journal
	// was truncated.
	Head string
	// Sealed means that the seal covers the columns of the run's head. It is false for a run that
	// was last written before there were seals.
	Sealed bool
	// Unanchored is the number of records after the last anchor. Without anchors it is all.
	Unanchored int64
}

// VerifyOptions are what Verify compares a journal with: data from outside of its database. Nil and
// the zero value compare with nothing. A journal that was rewritten as a whole, truncated, or
// replaced by an older copy is then not found.
type VerifyOptions struct {
	// Heads are earlier heads of the run. They must be in the chain.
	Heads []string
	// Keys are the public keys of store.Ledger. One of them must have signed the head, each record
	// from outside and each anchor.
	Keys []ed25519.PublicKey
	// Anchors are the anchors of store.Ledger, in the order in which they were written; anchors of
	// other runs are ignored. The journal must have all that they have.
	Anchors []store.Anchor
}

// Verify reads the whole journal of a run. It checks that each record is unchanged and in its
// place, that none is missing at the end, and that the head fits its seal. Otherwise the error is
// ErrCorrupt, and names the record or the column. A nil o compares with nothing else.
func (e *Engine) Verify(ctx context.Context, id string, o *VerifyOptions) (Verified, error) {
	o = cmp.Or(o, new(VerifyOptions))
	bad := func(format string, args ...any) error {
		return fmt.Errorf("run %s: %w: %w", id, ErrCorrupt, fmt.Errorf(format, args...))
	}
	anchors, err := o.anchorsOf(scope(ctx), id)
	if err != nil {
		return Verified{}, bad("%w", err)
	}

	head, err := e.Journal.JournalRun(ctx, scope(ctx), id)
	switch {
	case errors.Is(err, store.ErrNotFound) && len(anchors) > 0:
		return Verified{}, bad("it is anchored and not there: it was deleted, or this is an older copy of the database")
	case err != nil:
		return Verified{}, err
	}
	h, err := e.history(ctx, scope(ctx), id)
	if err != nil {
		return Verified{}, err
	}

	// The head was read first, so that a run in progress may have more records by now.
	n := int64(len(h.Records))
	changed := n == head.Records && h.Head != head.Head
	if n < head.Records || changed {
		return Verified{}, bad("it ends with record %d, and its head says %d (%s)", n, head.Records, head.Head)
	}
	if err := head.CheckSeal(); err != nil {
		return Verified{}, err
	}
	for _, head := range o.Heads {
		if !slices.ContainsFunc(h.Records, func(r store.Record) bool { return r.Hash == head }) {
			return Verified{}, bad("the record with the hash %s is not there any more", head)
		}
	}
	if err := o.signed(head, h); err != nil {
		return Verified{}, bad("%w", err)
	}

	v := Verified{Records: n, Head: h.Head, Sealed: head.Seal != "", Unanchored: n}
	for i, a := range anchors {
		if err := anchored(a, head, h, i == len(anchors)-1); err != nil {
			return Verified{}, bad("%w", err)
		}
		v.Unanchored = min(v.Unanchored, n-a.Records)
	}
	return v, nil
}

// anchorsOf returns the anchors of a run since it was last deleted.
func (o *VerifyOptions) anchorsOf(who store.Scope, id string) (all []store.Anchor, err error) {
	for i, a := range o.Anchors {
		switch {
		case a.Run != id || a.Scope != who:
		case o.Keys != nil && !a.SignedBy(o.Keys):
			return nil, fmt.Errorf("none of the keys signed anchor %d", i+1)
		case a.Gone:
			all = nil
		default:
			all = append(all, a)
		}
	}
	return all, nil
}

// signed returns an error if the head or a record from outside is not signed by one of the keys.
func (o *VerifyOptions) signed(head store.JournalRun, h *record.History) error {
	if o.Keys == nil {
		return nil
	}
	for _, r := range h.Records {
		if r.Fence == 0 && !r.SignedBy(o.Keys) {
			return fmt.Errorf("none of the keys signed record %d (%s)", r.Seq, r.Key)
		}
	}
	if !head.SignedBy(o.Keys) {
		return errors.New("none of the keys signed its head")
	}
	return nil
}

// anchored returns an error if the run does not have what was anchored. last says that the head was
// not anchored later.
func anchored(a store.Anchor, head store.JournalRun, h *record.History, last bool) error {
	now := head.Anchor()
	n := int64(len(h.Records))
	sameClaim := now.Records == a.Records && now.Fence == a.Fence
	switch {
	case n < a.Records || head.Fence < a.Fence:
		return fmt.Errorf("it has %d records and claim %d, and had %d and %d: it was truncated, or this is an older "+
			"copy of the database", n, head.Fence, a.Records, a.Fence)
	case a.Records > 0 && h.Records[a.Records-1].Hash != a.Head:
		return fmt.Errorf("record %d is not the anchored one: the chain was written anew, or an older copy of "+
			"the database went on", a.Records)
	case last && sameClaim && now.Digest != a.Digest:
		return errors.New("its head is not the anchored one")
	}
	return nil
}
