package server

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

// entry is an event of a feed as it is sent.
type entry struct {
	n    int64 // its place, from 1
	kind pawl.EventKind
	data []byte // JSON; nothing changes it
}

// kindError is the name of the event that says why a run could not go on here. It is none of the run's own.
const kindError pawl.EventKind = "error"

// droppable are the kinds of which only the last are kept, in the order of their numbers in feed.kinds.
var droppable = []pawl.EventKind{"", pawl.EventText, pawl.EventReasoning, pawl.EventCallDelta, pawl.EventProgress}

// feed is what happened in one attempt of a run. One goroutine puts, any number read, each from a place of its own.
type feed struct {
	epoch string // tells this feed from those of other attempts, and of other processes
	bound int    // of bytes in fragments

	mu        sync.Mutex
	kept      []entry // everything but fragments
	fragments []entry // the last ones
	kinds     []uint8 // of each place, an index of droppable; so that what was dropped can be counted for every reader
	size      int     // bytes in fragments
	whole     int     // bytes in kept
	ended     bool
	more      chan struct{} // closed when there is more to read
}

func newFeed(bound int) *feed {
	return &feed{epoch: rand.Text()[:12], bound: bound, more: make(chan struct{})}
}

// put adds an event.
func (f *feed) put(e pawl.Event) {
	data, err := json.Marshal(e)
	if err != nil { // a kind that has no JSON form: a Runner of the program's own made it up
		data, _ = json.Marshal(pawl.Event{Kind: pawl.EventNotice, Run: e.Run, Step: e.Step, Seq: e.Seq, Code: "unreadable", Text: "an event could not be written"})
		e.Kind = pawl.EventNotice
	}
	f.add(e.Kind, data)
}

func (f *feed) add(kind pawl.EventKind, data []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.Index(droppable, kind)
	if i < 0 {
		i = 0
	}
	f.kinds = append(f.kinds, uint8(i))
	e := entry{int64(len(f.kinds)), kind, data}
	if i == 0 {
		f.kept = append(f.kept, e)
		f.whole += len(data)
	} else {
		f.fragments = append(f.fragments, e)
		f.size += len(data)
		f.drop()
	}
	f.signal()
}

// drop lets the oldest fragments go until the others fit. What it leaves behind in memory is less than what it keeps.
func (f *feed) drop() {
	n := 0
	for ; f.size > f.bound && n < len(f.fragments)-1; n++ {
		f.size -= len(f.fragments[n].data)
		f.fragments[n].data = nil
	}
	f.fragments = f.fragments[n:] // append copies the rest to a new array when this one is full
}

func (f *feed) signal() {
	close(f.more)
	f.more = make(chan struct{})
}

// end says that nothing more comes.
func (f *feed) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ended {
		f.ended = true
		f.signal()
	}
}

// read returns what stands after a place, up to about max bytes: entries, and a gap where some were dropped; ended: nothing comes after them. With nothing to return, more
// is closed when there is.
func (f *feed) read(after int64, max int) (batch []entry, ended bool, more <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	total := int64(len(f.kinds))
	if after < 0 || after > total {
		after = 0
	}
	k, g := from(f.kept, after), from(f.fragments, after)
	for size := 0; size < max && after < total; {
		next := entry{n: total + 1}
		if k < len(f.kept) {
			next = f.kept[k]
		}
		if g < len(f.fragments) && f.fragments[g].n < next.n {
			next = f.fragments[g]
		}
		switch {
		case next.n > after+1: // what is between was dropped
			next = f.gap(after, next.n-1)
		case k < len(f.kept) && f.kept[k].n == next.n:
			k++
		default:
			g++
		}
		batch = append(batch, next)
		size += len(next.data)
		after = next.n
	}
	return batch, f.ended && after == total, f.more
}

// from is the index of the first entry after a place.
func from(list []entry, after int64) int {
	return sort.Search(len(list), func(i int) bool { return list[i].n > after })
}

// gap counts what was dropped after one place up to another, by kind.
func (f *feed) gap(after, to int64) entry {
	lost := map[pawl.EventKind]int{}
	for _, k := range f.kinds[after:to] {
		lost[droppable[k]]++
	}
	data, _ := json.Marshal(pawl.Event{Kind: pawl.EventGap, Run: "run", Lost: lost}) // names and numbers
	return entry{to, pawl.EventGap, data}
}

// last is the place of the last event.
func (f *feed) last() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int64(len(f.kinds))
}

// bytes is about what f holds.
func (f *feed) bytes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.whole + f.size + len(f.kinds)
}

// id names a place for clients: Last-Event-ID.
func (f *feed) id(n int64) string { return f.epoch + "-" + strconv.FormatInt(n, 10) }

// place is the place in f that an id names; 0 for one of another feed: then everything is told, beginning with the notice that says so.
func (f *feed) place(id string) int64 {
	epoch, n, ok := strings.Cut(id, "-")
	at, err := strconv.ParseInt(n, 10, 64)
	if !ok || epoch != f.epoch || err != nil || at < 0 || at > f.last() {
		return 0
	}
	return at
}
