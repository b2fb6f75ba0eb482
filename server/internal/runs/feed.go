package runs

// feed.go: feed, the events of a run, encoded once for all readers.

import (
	"crypto/rand"
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/pawl-go/pawl"
)

// Entry is an encoded event of a feed.
type Entry struct {
	Position int64 // from 1
	Kind     pawl.EventKind
	Data     []byte // immutable JSON
}

// kindError is the kind of the event that says why a run could not continue here. It is not an
// event of the run itself.
const kindError pawl.EventKind = "error"

// fragmentKinds are the kinds of fragments, of which only the latest are stored. Their indexes are
// the numbers in feed.kinds; 0 stands for every event that lasts.
var fragmentKinds = []pawl.EventKind{"", pawl.EventText, pawl.EventReasoning, pawl.EventCallDelta, pawl.EventProgress}

// feed holds the events of one attempt of a run. One goroutine calls append. Any number of
// goroutines read, each from its own position.
//
// An event has a position for ever, from 1, and is in one of two lists. Positions that neither list
// has are dropped fragments: a reader gets a gap in their place.
type feed struct {
	epoch string // distinguishes this feed from feeds of other attempts and other processes
	bound int    // limit for the bytes of fragments

	// mu guards these fields.
	mu            sync.Mutex
	lasting       []Entry // all events except fragments
	lastingBytes  int
	fragments     []Entry // the latest fragments
	fragmentBytes int
	kinds         []uint8 // an index in fragmentKinds for each position, to count dropped events
	ended         bool
	more          chan struct{} // closed when there is more to read
}

func newFeed(bound int) *feed {
	return &feed{epoch: rand.Text()[:12], bound: bound, more: make(chan struct{})}
}

// append adds an event.
func (f *feed) append(e pawl.Event) {
	// json.Marshal would read what MarshalJSON writes once more.
	data, err := e.MarshalJSON()
	if err != nil { // the kind has no JSON form: a custom Runner created it
		e = pawl.Event{
			Kind: pawl.EventNotice,
			Run:  e.Run,
			Step: e.Step,
			Seq:  e.Seq,
			Code: "unreadable",
			Text: "an event could not be written",
		}
		data, _ = json.Marshal(e) // its members always marshal
	}
	f.add(e.Kind, data)
}

// add adds an encoded event.
func (f *feed) add(kind pawl.EventKind, data []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := max(slices.Index(fragmentKinds, kind), 0)
	f.kinds = append(f.kinds, uint8(i))

	e := Entry{Position: int64(len(f.kinds)), Kind: kind, Data: data}
	if i == 0 {
		f.lasting = append(f.lasting, e)
		f.lastingBytes += len(data)
	} else {
		f.fragments = append(f.fragments, e)
		f.fragmentBytes += len(data)
		f.drop()
	}
	f.signal()
}

// drop drops the oldest fragments until the rest fits; the latest one stays.
func (f *feed) drop() {
	n := 0
	for ; f.fragmentBytes > f.bound && n < len(f.fragments)-1; n++ {
		f.fragmentBytes -= len(f.fragments[n].Data)
		f.fragments[n].Data = nil
	}
	f.fragments = f.fragments[n:] // append copies the rest to a new array when this one is full
}

// signal wakes the readers that wait for more.
func (f *feed) signal() {
	close(f.more)
	f.more = make(chan struct{})
}

// finish marks the end of the feed.
func (f *feed) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ended {
		f.ended = true
		f.signal()
	}
}

// read returns the events after a position, up to about max bytes: entries, and a gap where some
// were dropped. ended means that nothing follows them. If there is nothing to return, more is
// closed when there is.
func (f *feed) read(after int64, max int) (batch []Entry, ended bool, more <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	total := int64(len(f.kinds))
	if after < 0 || after > total {
		after = 0
	}

	// The two lists are merged by position.
	lasting := f.lasting[from(f.lasting, after):]
	fragments := f.fragments[from(f.fragments, after):]
	for size := 0; size < max && after < total; {
		next := Entry{Position: total + 1}
		lasts := len(lasting) > 0
		if lasts {
			next = lasting[0]
		}
		if len(fragments) > 0 && fragments[0].Position < next.Position {
			next = fragments[0]
			lasts = false
		}

		switch {
		case next.Position > after+1: // the events between were dropped
			next = f.gap(after, next.Position-1)
		case lasts:
			lasting = lasting[1:]
		default:
			fragments = fragments[1:]
		}
		batch = append(batch, next)
		size += len(next.Data)
		after = next.Position
	}
	return batch, f.ended && after == total, f.more
}

// from returns the index of the first entry after a position.
func from(list []Entry, after int64) int {
	return sort.Search(len(list), func(i int) bool { return list[i].Position > after })
}

// gap returns a gap event that counts, by kind, the events dropped between two positions.
func (f *feed) gap(after, to int64) Entry {
	lost := map[pawl.EventKind]int{}
	for _, k := range f.kinds[after:to] {
		lost[fragmentKinds[k]]++
	}
	data, _ := json.Marshal(pawl.Event{Kind: pawl.EventGap, Run: "run", Lost: lost}) // no error
	return Entry{to, pawl.EventGap, data}
}

// last returns the position of the last event.
func (f *feed) last() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int64(len(f.kinds))
}

// bytes returns the approximate size of f.
func (f *feed) bytes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lastingBytes + f.fragmentBytes + len(f.kinds)
}

// id returns the ID of a position for clients: Last-Event-ID.
func (f *feed) id(n int64) string { return f.epoch + "-" + strconv.FormatInt(n, 10) }

// position returns the position that an ID refers to. It returns 0 for an ID of another feed: the
// reader then gets all events, beginning with a notice about this.
func (f *feed) position(id string) int64 {
	number, ours := strings.CutPrefix(id, f.epoch+"-")
	if !ours {
		return 0
	}
	at, err := strconv.ParseInt(number, 10, 64)
	if err != nil || at < 0 || at > f.last() {
		return 0
	}
	return at
}
