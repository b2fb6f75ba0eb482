package durable

// outage.go: runs that wait for the provider of a model.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/llm"
)

const (
	// defaultOutage is what Engine.Outage of 0 means.
	defaultOutage = 24 * time.Hour

	// firstWait is the time before a run asks a provider again that was away. It doubles up to
	// longestWait. A provider that states a longer time gets it.
	firstWait   = 15 * time.Second
	longestWait = 5 * time.Minute
)

// Waiting says for what an open run waits, and until when.
type Waiting struct {
	// Provider is the name of the provider, such as "openai". "" means unknown.
	Provider string `json:"provider,omitzero"`
	// Since is the time of the first request that failed.
	Since time.Time `json:"since"`
	// Next is the time from which the run is due again.
	Next time.Time `json:"next"`
	// Tries is the number of attempts since then.
	Tries int `json:"tries"`
}

// String returns "waiting for openai since 09:14, next try 09:20".
func (w *Waiting) String() string {
	const clock = "15:04"
	return fmt.Sprintf("waiting for %s since %s, next try %s", cmp.Or(w.Provider, "the model"),
		w.Since.Format(clock), w.Next.Format(clock))
}

// outage is what a session knows of the provider of its model.
type outage struct {
	replied bool               // a reply was added to the journal
	away    *llm.ProviderError // the temporary error of the last request; nil means none
}

// note records the temporary error of a request, if it has one.
func (o *outage) note(ctx context.Context, resp *llm.Response, err error) {
	o.away = nil
	var away *llm.ProviderError
	temporary := errors.As(cmp.Or(err, resp.Err()), &away) && away.Retryable
	if temporary && ctx.Err() == nil {
		o.away = away
	}
}

// waiting returns for what the run waits that has stopped with res. Nil means that it does not: it
// has not failed, or for another reason than a temporary error of a provider, or its time is over.
// end is the last stop before; nil means none. limit is Engine.outage.
func (o *outage) waiting(res *pawl.Result, end *record.End, now time.Time, limit time.Duration) *Waiting {
	if o.away == nil || res.Stop != pawl.StopFailed || limit < 0 {
		return nil
	}

	w := &Waiting{Provider: o.away.Provider, Since: now, Tries: 1}

	// The outage goes on if the run has got no reply since its last attempt.
	if end != nil && end.Waiting != nil && !o.replied {
		w.Since = end.Waiting.Since
		w.Tries = end.Waiting.Tries + 1
	}

	pause := min(firstWait<<min(w.Tries-1, 8), longestWait)
	pause += rand.N(pause / 5) // so that the runs of an outage do not return at the same moment
	w.Next = now.Add(max(pause, o.away.RetryAfter))
	if w.Next.Sub(w.Since) > limit {
		return nil
	}
	return w
}
