package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

// together groups changes that arrive during a sync, so that they share the next sync: one
// transaction contains all waiting changes, each rolled back separately if it fails. A change
// returns after its transaction is on disk.
type together struct {
	mu      sync.Mutex
	waiting []*waitingChange
	busy    bool
}

type waitingChange struct {
	ctx  context.Context
	fn   func(tx *sql.Tx) error
	err  error
	done chan struct{}
}

// changeTogether is change with a sync that may be shared. fn may run on another goroutine.
func (b *backend) changeTogether(ctx context.Context, fn func(tx *sql.Tx) error) error {
	c := &waitingChange{ctx: ctx, fn: fn, done: make(chan struct{})}
	t := &b.together
	t.mu.Lock()
	t.waiting = append(t.waiting, c)
	leads := !t.busy
	t.busy = true
	t.mu.Unlock()
	if leads {
		b.lead()
	}
	<-c.done
	return available(c.err)
}

// lead executes the waiting changes in one transaction. Changes that arrive meanwhile are led by
// another goroutine, so that no caller works for others forever.
func (b *backend) lead() {
	t := &b.together
	t.mu.Lock()
	batch := t.waiting
	t.waiting = nil
	t.mu.Unlock()
	err := b.change(context.Background(), func(tx *sql.Tx) error {
		if len(batch) == 1 { // it is rolled back with the transaction
			return batch[0].alone(tx)
		}
		for _, c := range batch {
			if err := c.within(tx); err != nil {
				return err
			}
		}
		return nil
	})
	t.mu.Lock()
	t.busy = len(t.waiting) > 0
	if t.busy {
		go b.lead()
	}
	t.mu.Unlock()
	for _, c := range batch {
		if err != nil {
			c.err = errors.Join(c.err, err) // even without an error of its own it is not on disk
		}
		close(c.done)
	}
}

// alone makes the change as the only one of tx.
func (c *waitingChange) alone(tx *sql.Tx) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	return c.fn(tx)
}

// within makes the change inside tx, or rolls it back completely. The returned error concerns tx.
func (c *waitingChange) within(tx *sql.Tx) error {
	if _, err := tx.Exec("savepoint one"); err != nil {
		return err
	}
	c.err = c.alone(tx)
	if c.err != nil {
		if _, err := tx.Exec("rollback to one"); err != nil { // a full disk has ended tx itself
			return errors.Join(c.err, err)
		}
	}
	_, err := tx.Exec("release one")
	return err
}
