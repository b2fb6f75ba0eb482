package doctor

import (
	"context"
	"sync"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/provider"
)

// models.go: the models that a new agent can use here.

// Found is a model that can be used here.
type Found struct {
	Name string // PROVIDER:NAME
	Why  string // how it was found, such as "since OPENAI_API_KEY is set"
}

// Models returns the models that can be used here: one of each provider whose key is set, in the
// order of the providers, then one of each model server on this machine that has a port of its own
// and has a model. Nothing leaves this machine.
func Models(ctx context.Context, sys *cli.System) []Found {
	var all []Found
	var local []provider.Info
	for _, p := range provider.All() {
		if p.Local && p.OwnPort {
			local = append(local, p)
		}
		if p.Local || p.Alias || p.BaseURL == "" {
			continue
		}
		for _, variable := range p.Keys {
			value := sys.Env(variable)
			if value != "" && !isPlaceholder(value) {
				all = append(all, Found{p.Name + ":" + p.Example, "since " + variable + " is set"})
				break
			}
		}
	}
	return append(all, onThisMachine(ctx, local)...)
}

// onThisMachine asks model servers for their models, all at once.
func onThisMachine(ctx context.Context, servers []provider.Info) []Found {
	answers := make([]Found, len(servers))
	var wait sync.WaitGroup
	for i, p := range servers {
		wait.Go(func() {
			l, err := reach(ctx, p.Name, time.Second/2)
			if err != nil {
				return
			}
			if all, ok := l.list(); ok && len(all) > 0 {
				answers[i] = Found{p.Name + ":" + all[0].id, "since " + p.Name + " is on this machine"}
			}
		})
	}
	wait.Wait()

	var found []Found
	for _, f := range answers {
		if f.Name != "" {
			found = append(found, f)
		}
	}
	return found
}
