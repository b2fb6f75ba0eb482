package store_test

import (
	"testing"

	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/storetest"
)

func TestMemoryJournal(t *testing.T) {
	storetest.TestJournal(t, func(t *testing.T) store.Journal { return new(store.MemoryJournal) })
}
