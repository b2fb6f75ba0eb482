package conversation

// stream.go: sends the stream of a run to a front end.

import (
	"context"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/uistream"
)

// Respond begins or continues the run of a request and sends its stream.
func (c *Call) Respond(in *Request) error {
	release, err := c.AcquireStream()
	if err != nil {
		return err
	}
	defer release()

	begin := c.Start
	if in.Run != "" {
		begin = c.Continue
	}
	l, err := begin(in)
	if err != nil {
		return err
	}
	c.Send(l, in.Stream)
	return nil
}

// Send sends the stream of a run until it has ended or asks something. A run without a reader is
// cancelled, unless it is to go on.
func (c *Call) Send(l *runs.Live, o uistream.Options) {
	o.Beat = c.Beat
	o.Wait = c.Wait
	ctx := c.Request.Context()
	leave := l.AddReader()
	defer func() {
		last := leave() == 0
		if last && ctx.Err() != nil && c.DisconnectCancels(l.Agent()) {
			c.CancelLater(l.ID(), l, func() bool { return l.Readers() == 0 })
		}
	}()

	// the client has disconnected, or the journal has the error of the run
	_ = uistream.Write(c.Writer, events(ctx, l, c.Hold()), c.Options(l, o))
}

// Options returns o for a run.
func (c *Call) Options(l *runs.Live, o uistream.Options) uistream.Options {
	list, err := l.Tools(c.Context())
	if err != nil {
		c.Log.Warn("listing the tools of a run", "run", l.ID(), "error", err)
	}
	o.Run = l.ID()
	// what GET /v1/runs/{id} says, without secrets
	o.ErrorText = func(err error) string { return c.Secrets.String(runs.ToError(err).Message) }
	o.Agent = l.Agent()
	o.Passive = func(name string) bool {
		return slices.ContainsFunc(list, func(t *pawl.Tool) bool { return t.Name == name && t.Passive })
	}
	return o
}

// events yields the events of a run until it ends, and http.ErrAbortHandler in place of
// runs.ErrElsewhere: the response must break off, since clients take its plain end for success.
// hold is runs.Reading.Hold.
func events(ctx context.Context, l *runs.Live, hold time.Duration) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		for e, err := range l.Events(ctx, runs.Reading{Hold: hold}) {
			if err == runs.ErrElsewhere {
				err = http.ErrAbortHandler
			}
			ends := e.Kind == pawl.EventRunEnded && !strings.Contains(string(e.Run), "/")
			if !yield(e, err) || ends {
				return
			}
		}
	}
}
