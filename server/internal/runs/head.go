package runs

// head.go: what the head of a run in the journal says.

import (
	"encoding/json"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/store"
)

// isLeased reports whether a process executes the run now.
func isLeased(head store.JournalRun, now time.Time) bool {
	return head.Owner != "" && head.Until.After(now)
}

// isOver reports whether a run needs no more work by any process.
func isOver(head store.JournalRun) bool { return head.State == store.JournalOver }

// summaryOf returns the summary in a journal entry. False means that there is none.
func summaryOf(head store.JournalRun) (sum durable.Summary, ok bool) {
	return sum, len(head.Summary) > 0 && json.Unmarshal(head.Summary, &sum) == nil
}

// SpentOf returns what a run had used when it stopped last. Zero means that it has not stopped.
func SpentOf(head store.JournalRun) pawl.Spent {
	sum, ok := summaryOf(head)
	if !ok {
		return pawl.Spent{}
	}
	return sum.Spent
}

// outageIn returns for what an open run waits. Nil means that it does not, or that a process asks
// its provider again.
func outageIn(head store.JournalRun) *durable.Waiting {
	if head.State != store.JournalOpen || isLeased(head, time.Now()) {
		return nil
	}
	sum, _ := summaryOf(head)
	return sum.Waiting
}
