package runs

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"iter"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
)

// Short returns a hash of texts that an ID can contain.
func Short(n int, texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:n])
}

// Events yields the events of a run. With wait they end with the run, else with the last event so
// far. While there are none, each tick calls beat. If the run continues in another process, the
// error is ErrElsewhere: the response must break off, since clients take its plain end for
// success.
func (l *Live) Events(ctx context.Context, wait bool, tick <-chan time.Time,
	beat func() bool) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		for after := int64(0); ; {
			batch, ended, more := l.Feed.Read(after, BatchBytes)
			for _, e := range batch {
				after = e.N
				if ev, err := e.event(); !yield(ev, err) || err != nil {
					return
				}
			}
			switch {
			case len(batch) > 0:
			case ended:
				yield(pawl.Event{}, ErrElsewhere)
				return
			case !wait && !l.story:
				return
			default:
				select {
				case <-more:
				case <-tick:
					beat()
				case <-ctx.Done():
					yield(pawl.Event{}, context.Cause(ctx))
					return
				}
			}
		}
	}
}
