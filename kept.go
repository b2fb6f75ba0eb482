package pawl

import (
	"context"
	"slices"
	"sync"
)

// kept is what Models keep between the requests of one run.
type kept struct {
	mu sync.Mutex
	by []keptBy
}

type keptBy struct{ owner, value any }

// Keep keeps value until owner's next request of the run that ctx belongs to: what a Model made of messages that will be sent again. It reports whether there
// is such a run; outside of one nothing is kept. owner is compared with ==, and is most often a pointer to the Model. A value with a method Release() is told when the
// run is over, and nobody has it then.
func Keep(ctx context.Context, owner, value any) bool {
	p, ok := ctx.Value(proofKey{}).(*proof)
	if !ok {
		return false
	}
	p.kept.mu.Lock()
	defer p.kept.mu.Unlock()
	for i := range p.kept.by {
		if k := &p.kept.by[i]; k.owner == owner {
			k.value = value
			return true
		}
	}
	p.kept.by = append(p.kept.by, keptBy{owner, value})
	return true
}

// Kept returns what owner has kept in the run that ctx belongs to, and forgets it, so that of two requests at once one has it; nil: there is nothing.
func Kept(ctx context.Context, owner any) any {
	p, ok := ctx.Value(proofKey{}).(*proof)
	if !ok {
		return nil
	}
	p.kept.mu.Lock()
	defer p.kept.mu.Unlock()
	for i := range p.kept.by {
		if k := p.kept.by[i]; k.owner == owner {
			p.kept.by = slices.Delete(p.kept.by, i, i+1)
			return k.value
		}
	}
	return nil
}

// release tells what is kept that the run is over.
func (k *kept) release() {
	k.mu.Lock()
	by := k.by
	k.by = nil
	k.mu.Unlock()
	for _, v := range by {
		if r, ok := v.value.(interface{ Release() }); ok {
			r.Release()
		}
	}
}
