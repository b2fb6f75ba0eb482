package serve

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"strings"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/notify"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/store"
)

// notify.go: the key notify of the agents' files.

// notifier notifies people of runs. The zero value notifies no one.
type notifier struct {
	watcher *notify.Watcher
	address string // of the pages; "" means the address that the server listens on
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// notify returns what the files say about notifications, and adds to the options of the server what
// it needs of it. key signs approval links; nil means that there are none.
func (c *Cmd) notify(all *served, db store.Store, o *server.Options, key []byte, s func() *server.Server) *notifier {
	t := &notifier{address: strings.TrimSuffix(c.PublicURL, "/")}
	engine := &durable.Engine{Journal: db}
	decide := func(ctx context.Context, scope store.Scope, run, by string, d llm.Decision) error {
		r := s().Runner(server.RunnerOptions{ID: run, By: by})
		return r.Decide(store.WithScope(ctx, scope), d)
	}
	var links *notify.Links
	hooks := http.NewServeMux()
	if key != nil {
		links = &notify.Links{
			Key:     key,
			Time:    c.LinkTime,
			Secrets: all.secrets,
			Journal: db,
			Pending: engine.Pending,
			Decide:  decide,
		}
		o.Front.ApprovalLink = t.linkOf(links)
		hooks.Handle("GET "+notify.LinkPath, links)
		hooks.Handle("POST "+notify.LinkPath, links)
		o.Hooks = hooks
	}

	channels := map[string][]notify.Channel{}
	var apps []*notify.SlackApp
	for i, built := range all.built {
		if len(built.Channels) > 0 {
			channels[all.agents[i].Name] = built.Channels
		}
		apps = append(apps, built.Apps...)
	}
	if len(channels) == 0 {
		return t
	}

	t.watcher = notify.New(db, engine.Pending, channels)
	t.watcher.Secrets = all.secrets
	t.watcher.Links = links
	inner := o.Around
	o.Around = func(id, agent string, r pawl.Runner) pawl.Runner {
		if inner != nil {
			r = inner(id, agent, r)
		}
		return &observed{r, t.watcher, id, agent}
	}
	if len(apps) > 0 {
		hooks.Handle("POST /hooks/slack", &notify.Callback{Apps: apps, Decide: decide})
		o.Hooks = hooks
	}
	return t
}

// linkOf returns the function that makes approval links for replies: paths, or with --public-url
// addresses.
func (t *notifier) linkOf(links *notify.Links) func(store.Scope, string, string, pawl.PendingCall) string {
	return func(owner store.Scope, agent, run string, call pawl.PendingCall) string {
		return t.address + links.Path(&notify.Event{
			Agent:    agent,
			Run:      run,
			Tenant:   owner.Tenant,
			User:     owner.User,
			Question: &notify.Question{Key: call.Key, Digest: call.Digest},
		}, "reply")
	}
}

// linkKey returns the key of approval links. Nil means that there are none.
func (c *Cmd) linkKey(sys *cli.System) ([]byte, error) {
	if c.LinkKey == "" {
		return nil, nil
	}
	key := sys.Env(c.LinkKey)
	if len(key) < notify.MinLinkKey {
		return nil, cli.Usage("a random text of 32 characters and more, such as from openssl rand -hex 32",
			"--link-key-env: the variable %s has %d characters", c.LinkKey, len(key))
	}
	return []byte(key), nil
}

// start begins to notify, until wait. listens is the address that the server listens on.
func (t *notifier) start(listens string, report func(error)) {
	if t.watcher == nil {
		return
	}
	t.watcher.Address = cmp.Or(t.address, listens)
	t.watcher.Report = report
	ctx, stop := context.WithCancel(context.Background())
	t.stop = stop
	t.done.Go(func() { t.watcher.Run(ctx) })
}

// wait ends what start began, and waits for it. It is called after the last run has stopped, so
// that the ends of the last runs are sent, too.
func (t *notifier) wait() {
	if t.stop != nil {
		t.stop()
	}
	t.done.Wait()
}

// observed is a Runner whose stops are reported to a Watcher.
type observed struct {
	pawl.Runner
	watcher   *notify.Watcher
	id, agent string
}

// Stream yields the events of the run.
func (r *observed) Stream(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		scope, _ := store.ScopeFrom(ctx)
		var res *pawl.Result
		// The run is stored as stopped only when its events have ended.
		defer func() {
			if res != nil {
				r.watcher.Observe(scope, r.id, r.agent, res)
			}
		}()
		for ev, err := range r.Runner.Stream(ctx, msgs...) {
			if ev.Kind == pawl.EventRunEnded && ev.Run == "run" {
				res = ev.Result
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}
