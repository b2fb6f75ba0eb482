package agentfile

import (
	"cmp"
	"time"

	"github.com/pawl-go/pawl/provider/catalog"
)

// ending.go: the models of an agent that their providers have ended, or will end soon.

// Endings returns a warning for each model of a that its provider has ended or ends within
// catalog.EndNotice. A model at an address of the file's own is left out, because another server
// may use the name for something else. Workers are agents of their own. A catalogue that cannot be
// read is a fault, which Check returns. Now and Catalog of o are used; o may be nil.
func (a *Agent) Endings(o *Options) Findings {
	o = cmp.Or(o, new(Options))
	known, err := a.catalog(o)
	if err != nil {
		return nil
	}
	return a.endings(known, o.now())
}

func (a *Agent) endings(known *catalog.Catalog, now time.Time) (all Findings) {
	seen := map[string]bool{}
	for _, m := range a.named() {
		if m.made != nil || m.BaseURL != "" || seen[m.Name] {
			continue
		}
		seen[m.Name] = true
		if e, ok := known.Ending(m.Name, now); ok {
			all = append(all, a.found(finding(CodeReported, m.path, e.Hint(), "%s", e.Text())))
		}
	}
	return all
}

// namedModel is a model and the path of the key that names it.
type namedModel struct {
	Model
	path string
}

// named returns the models that a names, in the order of its keys.
func (a *Agent) named() (all []namedModel) {
	for i, m := range a.Model {
		all = append(all, namedModel{m, index("model", i)})
	}
	if a.Side != nil && a.Side.Model != nil {
		all = append(all, namedModel{*a.Side.Model, "side.model"})
	}
	for i, g := range a.Guards {
		if g.Model != nil {
			all = append(all, namedModel{*g.Model, index("guards", i) + ".model"})
		}
	}
	return all
}

// catalog returns the catalogue that a names, else the one in the options, else the built-in one.
func (a *Agent) catalog(o *Options) (*catalog.Catalog, error) {
	if a.Catalog == "" && o.Catalog != nil {
		return o.Catalog, nil
	}
	return ReadCatalog(a.relative("catalog", a.Catalog))
}

// now returns the time that the ends of models are compared with.
func (o *Options) now() time.Time {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}

// warnEndings reports the models of b's agent that end. Agents of a team report a model once.
func (b *builder) warnEndings() {
	if b.opts.Dry {
		return // Endings returns them
	}
	for _, f := range b.agent.endings(b.known, b.opts.now()) {
		text := f.Message + "; " + f.Hint
		if !b.opts.Warned[text] {
			b.opts.Warned[text] = true
			b.notice(text)
		}
	}
}
