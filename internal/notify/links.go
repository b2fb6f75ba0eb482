package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/store"
)

// links.go: approval links. A link leads to a page with one question and two buttons. It is signed,
// and it counts until its time is over, for the question that it was made for, once. To open the
// page decides nothing: mail programs and chats open links to show a preview.

// Links makes approval links and handles their requests.
type Links struct {
	Key     []byte           // signs the links; all servers of a database have the same
	Time    time.Duration    // how long a link counts
	Secrets *redact.Redactor // redacted in the page; nil means none
	Journal store.Journal    // records which links were used

	// Pending returns the open questions of a run in the scope of its context.
	Pending func(ctx context.Context, id string) ([]pawl.PendingCall, error)
	// Decide answers a question. by is the link.
	Decide func(ctx context.Context, scope store.Scope, run, by string, d llm.Decision) error
}

// LinkPath is the path of the pages. The token of a link follows it.
const LinkPath = "/hooks/approve/"

// MinLinkKey is the length of the shortest key in bytes.
const MinLinkKey = 32

// ticket is what a link says. Its JSON form is in links that were sent.
type ticket struct {
	Tenant  string  `json:"t,omitzero"`
	User    string  `json:"u,omitzero"`
	Agent   string  `json:"a"`
	Run     string  `json:"r"`
	Key     llm.Key `json:"k"`
	Digest  string  `json:"d"`
	By      string  `json:"b"` // recorded with the decision
	Expires int64   `json:"e"` // in seconds since 1970
}

// Path returns the path of a link for the question of an event. The decision is recorded as "link"
// and where the link was sent.
func (l *Links) Path(e *Event, where string) string {
	body, _ := json.Marshal(ticket{ // text and numbers always marshal
		Tenant:  e.Tenant,
		User:    e.User,
		Agent:   e.Agent,
		Run:     e.Run,
		Key:     e.Question.Key,
		Digest:  e.Question.Digest,
		By:      "link " + where,
		Expires: time.Now().Add(l.Time).Unix(),
	})
	return LinkPath + coded(body) + "." + coded(l.sign(body))
}

// coded returns bytes in a form for an address.
func coded(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// sign returns the signature of a ticket. Its text keeps signatures of other uses of the key apart.
func (l *Links) sign(body []byte) []byte {
	mac := hmac.New(sha256.New, l.Key)
	mac.Write([]byte("pawl approval link\x00"))
	mac.Write(body)
	return mac.Sum(nil)
}

// errLink is the error of a link that is none of ours, or whose time is over. It does not say
// which.
var errLink = errors.New("the link is wrong, or its time is over")

// open returns the ticket of a token, if it counts at a time.
func (l *Links) open(token string, now time.Time) (t ticket, err error) {
	text, signature, _ := strings.Cut(token, ".")
	body, errBody := base64.RawURLEncoding.DecodeString(text)
	mac, errMAC := base64.RawURLEncoding.DecodeString(signature)
	signed := errBody == nil && errMAC == nil && hmac.Equal(mac, l.sign(body))
	if !signed || json.Unmarshal(body, &t) != nil || now.Unix() >= t.Expires {
		return ticket{}, errLink
	}
	return t, nil
}

// scope returns the owner of the run.
func (t *ticket) scope() store.Scope { return store.Scope{Tenant: t.Tenant, User: t.User} }

// errAnswered is the error of a link whose question is not open any more.
var errAnswered = errors.New("the question was answered, or it has changed")

// question returns the question of a ticket, if it is open and unchanged.
func (l *Links) question(ctx context.Context, t *ticket) (*pawl.PendingCall, error) {
	open, err := l.Pending(store.WithScope(ctx, t.scope()), t.Run)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	i := slices.IndexFunc(open, func(p pawl.PendingCall) bool { return p.Key == t.Key && p.Digest == t.Digest })
	if i < 0 {
		return nil, errAnswered
	}
	return &open[i], nil
}

// errUsed is the error of a link that was used before.
var errUsed = errors.New("the link was used before")

// mark returns the ID of the mark of a used ticket in the journal: see marks.go. The links that
// several channels send about a question have tickets of their own.
func (t *ticket) mark() string {
	text, _ := json.Marshal(t) // text and numbers always marshal
	sum := sha256.Sum256(text)
	return "link-" + hex.EncodeToString(sum[:])
}

// use records that a ticket is used. Of several uses, also on several servers, one succeeds.
func (l *Links) use(ctx context.Context, t *ticket) error {
	first, err := writeMark(ctx, l.Journal, t.mark())
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	case !first:
		return errUsed
	}
	return nil
}

// unused returns an error if a ticket was used.
func (l *Links) unused(ctx context.Context, t *ticket) error {
	at, err := readMark(ctx, l.Journal, t.mark())
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	case !at.IsZero():
		return errUsed
	}
	return nil
}

// ServeHTTP shows the page of a link for GET, and answers its question for POST.
func (l *Links) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	t, err := l.open(strings.TrimPrefix(r.URL.Path, LinkPath), time.Now())
	if err != nil {
		refuse(w, err)
		return
	}
	if err := l.unused(ctx, &t); err != nil {
		refuse(w, err)
		return
	}
	q, err := l.question(ctx, &t)
	if err != nil {
		refuse(w, err)
		return
	}

	if r.Method != http.MethodPost {
		l.show(w, &t, q)
		return
	}
	l.answer(w, r, &t, q)
}

// maxForm limits the body of the form.
const maxForm = 16 << 10

// answer answers the question of a ticket with the button that was pressed.
func (l *Links) answer(w http.ResponseWriter, r *http.Request, t *ticket, q *pawl.PendingCall) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		refuse(w, errors.New("the form cannot be read"))
		return
	}
	_, whole := l.shown(q)
	d := llm.Decision{Key: t.Key, Digest: t.Digest}
	said := "The call was denied."
	pressed := r.PostForm.Get("answer")
	switch {
	case pressed == "approve" && !whole:
		refuse(w, errLong)
		return
	case pressed == "approve":
		d.Approve = true
		said = "The call was approved."
	case pressed == "deny":
		d.Reason = strings.TrimSpace(r.PostForm.Get("reason"))
	default:
		refuse(w, errors.New("no button was pressed"))
		return
	}

	// The link is used first: if it is used twice at once, one of both decides.
	ctx := context.WithoutCancel(r.Context())
	err := l.use(ctx, t)
	if err == nil {
		err = l.Decide(ctx, t.scope(), t.Run, t.By, d)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	writePage(w, http.StatusOK, page{Title: said})
}
