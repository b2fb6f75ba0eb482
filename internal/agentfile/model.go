package agentfile

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/demomodel"
	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/leak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/react"
	"github.com/pawl-go/pawl/script"
)

// scripted is the provider name of written turns.
const scripted = "script:"

// local reports whether a model's name is one of a script or of a demo, which no provider opens.
func local(name string) bool {
	return strings.HasPrefix(name, scripted) || strings.HasPrefix(name, demomodel.Prefix)
}

// modelHint says what a model's name looks like.
const modelHint = "such as openai:gpt-6.1-terra, anthropic:claude-sonnet-5-5 or ollama:qwen3:4b; " +
	"demo:minimal needs no model; pawl models list has more"

// agentModel is the model of an agent. It is empty for an agent without a model.
type agentModel struct {
	opened llm.Model         // as its provider has it, which knows its price
	driven llm.Model         // inside its driver, as the agent asks it
	layers []pawl.Middleware // around it
}

// openModel opens the model of the agent, with its fallbacks and its driver.
func (b *builder) openModel() (m agentModel, err error) {
	if len(b.agent.Model) == 0 && b.opts.Bare {
		return m, nil
	}
	m.opened, m.layers, err = b.models()
	if err != nil {
		return m, err
	}
	driven, more, err := b.driven(m.opened)
	m.driven = driven
	m.layers = append(m.layers, more...)
	return m, err
}

// models returns the first model, and the layer with its fallbacks.
func (b *builder) models() (llm.Model, []pawl.Middleware, error) {
	if len(b.agent.Model) == 0 {
		return nil, nil, finding(CodeMissingKey, "model", modelHint, "no model is named")
	}
	var all []llm.Model
	for i, m := range b.agent.Model {
		path := index("model", i)
		opened, err := b.model(m, path)
		if err != nil {
			return nil, nil, err
		}
		b.question(m)
		all = append(all, opened)
	}
	if len(all) == 1 {
		return all[0], nil, nil
	}
	return all[0], []pawl.Middleware{policy.Fallback{Models: all[1:]}.Middleware()}, nil
}

// question reports a name that is close to a known one, and not another version of it.
func (b *builder) question(m Model) {
	prefix, id, _ := strings.Cut(m.Name, ":")
	if _, known := b.known.Find(prefix, id); known || m.BaseURL != "" {
		return
	}
	var lasting, ending []string
	for _, k := range b.known.Models(prefix) {
		name := prefix + ":" + k.ID
		if k.Ends == "" {
			lasting = append(lasting, name)
		} else {
			ending = append(ending, name)
		}
	}

	if near := similar(m.Name, lasting); near != "" {
		b.notice(fmt.Sprintf("the catalogue has no model %s; did you mean %s?", m.Name, near))
		return
	}
	if near := similar(m.Name, ending); near != "" {
		known, _ := b.known.Lookup(near)
		b.notice(fmt.Sprintf("the catalogue has no model %s; did you mean %s, which ends on %s?", m.Name, near, known.Ends))
	}
}

// similar returns the name that may have been meant by s. Empty means none. A name with other
// digits is another version, which the catalogue may not know yet.
func similar(s string, names []string) string {
	near := nearest.Word(s, names)
	notDigit := func(r rune) bool { return !unicode.IsDigit(r) }
	if slices.Equal(strings.FieldsFunc(near, notDigit), strings.FieldsFunc(s, notDigit)) {
		return near
	}
	return reordered(s, names)
}

// reordered returns the first name that has all the parts of s, of which there are at least three,
// in another order: claude-sonnet-5-5 for claude-5-sonnet.
func reordered(s string, names []string) string {
	parts := func(s string) []string {
		return strings.FieldsFunc(s, func(r rune) bool { return r == '-' || r == ':' })
	}
	wanted := parts(s)
	if len(wanted) < 4 {
		return "" // the provider and two more
	}
	for _, name := range names {
		have := parts(name)
		lacks := func(p string) bool { return !slices.Contains(have, p) }
		if !slices.ContainsFunc(wanted, lacks) && !strings.HasPrefix(name, s) {
			return name
		}
	}
	return ""
}

// model opens the model that is named at path.
func (b *builder) model(m Model, path string) (llm.Model, error) {
	if m.made != nil {
		return m.made, nil
	}
	if name, ok := strings.CutPrefix(m.Name, scripted); ok {
		return b.scripted(name, path)
	}
	if name, ok := strings.CutPrefix(m.Name, demomodel.Prefix); ok {
		return b.demo(name, path)
	}

	key, err := b.key(m.KeyEnv, path+".key_env")
	if err != nil {
		return nil, err
	}
	if key == "" && b.opts.Dry && b.opts.HTTP != nil {
		key = "none" // nothing is sent
	}
	if at, stated := b.addressPath(path); stated && strings.TrimSpace(m.BaseURL) == "" {
		return nil, finding(CodeBadValue, at, "leave the key out for the provider's own address",
			"the address is empty")
	}
	if m.BaseURL == "" && key != "" { // the file names no address, so the key is the provider's
		name, _, _ := strings.Cut(m.Name, ":")
		p, _ := provider.Find(name)
		m.BaseURL = cmp.Or(strings.TrimSpace(b.env(p.BaseEnv)), p.BaseURL)
	}

	opened, err := provider.Open(m.Name, &provider.Options{
		BaseURL:    m.BaseURL,
		Key:        key,
		Catalog:    b.known,
		HTTP:       b.opts.HTTP,
		Background: m.Background,
		CacheKey:   m.Cache.Key,
		CacheTTL:   time.Duration(m.Cache.TTL),
	})
	if err != nil {
		return nil, finding(CodeUnknownModel, path, modelHint, "%v", err)
	}
	return opened, nil
}

// addressPath returns the path of the address of the model at path, and whether the file states
// one. The first model of the key model may stand without a list.
func (b *builder) addressPath(path string) (at string, stated bool) {
	at = path + ".base_url"
	if _, stated = b.agent.at[at]; stated {
		return at, true
	}
	at = strings.TrimSuffix(path, "[0]") + ".base_url"
	_, stated = b.agent.at[at]
	return at, stated
}

// scriptHint says what a model of the provider script names.
const scriptHint = "script: takes a file with turns, as script.Model has them in JSON"

// none is the model of Side that gives empty answers.
const none = "none"

// AllowsSide returns Side.Allow, with its default.
func (a *Agent) AllowsSide() string {
	if a.Side == nil {
		return "none"
	}
	return cmp.Or(a.Side.Allow, "known")
}

// side returns the model for side requests. own is the agent's.
func (b *builder) side(own llm.Model) (llm.Model, error) {
	var named *Model
	if b.agent.Side != nil {
		named = b.agent.Side.Model
	}
	switch {
	case named != nil && named.Name != none:
		return b.model(*named, "side.model")
	case named != nil, len(b.agent.Model) > 0 && b.agent.Model[0].made != nil:
		return silent{}, nil
	}
	return own, nil
}

// silent is a model with empty answers. It sends no request, so that an empty answer is no fault.
type silent struct{}

func (silent) Stream(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		yield(llm.Delta{Requests: -1, Finish: llm.FinishReasonStop}, nil)
	}
}

// scripted reads a model that plays written turns, so that an agent can be tried without a key.
func (b *builder) scripted(name, path string) (llm.Model, error) {
	text, err := os.ReadFile(b.agent.relative(path, name))
	if err != nil {
		return nil, finding(CodeBadFile, path, scriptHint, "%s", plain(err))
	}
	m := new(script.Model)
	b.script = cmp.Or(b.script, m)
	if err := json.Unmarshal(text, m); err != nil {
		return nil, finding(CodeBadFile, path, scriptHint, "%s: %v", name, err)
	}
	return m, nil
}

// demo opens a model that follows the rules of a template.
func (b *builder) demo(name, path string) (llm.Model, error) {
	m, err := demomodel.Open(name)
	if err != nil {
		return nil, finding(CodeUnknownModel, path, modelHint, "%v", err)
	}
	b.script = cmp.Or(b.script, m)
	// An answer in text says it itself.
	if b.agent.Output != nil {
		b.notice(demomodel.Prefix + name + " follows rules and is no language model")
	}
	return m, nil
}

// key reads the variable that key_env names. A key itself has no place in a file or on a command
// line, where others can see it; an error does not repeat it.
func (b *builder) key(name, path string) (string, error) {
	if b.opts.Offline {
		return "none", nil
	}
	if name == "" {
		return "", nil
	}
	if key := strings.TrimSpace(b.env(name)); key != "" {
		b.hidden = append(b.hidden, key)
		return key, nil
	}

	what := name + ": "
	hint := "set it to the key, or name another variable"
	if strings.ContainsFunc(name, unlikeVariable) {
		what = "" // it may be the key itself
		hint = "the name of a variable belongs here, not a key, as in MY_KEY"
	}
	return "", finding(CodeMissingVariable, path, hint, "%sthere is no such environment variable, or it is empty", what)
}

// unlikeVariable reports whether the name of an environment variable seldom has c.
func unlikeVariable(c rune) bool {
	return c != '_' && !unicode.IsUpper(c) && !unicode.IsDigit(c)
}

// ReadCatalog reads a file with a catalogue of models. An empty name means the built-in catalogue.
// The error is a *Finding.
func ReadCatalog(name string) (*catalog.Catalog, error) {
	if name == "" {
		return catalog.Default(), nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, finding(CodeBadFile, "catalog", "", "%s", plain(err))
	}
	c, err := catalog.Parse(text)
	if err != nil {
		return nil, finding(CodeBadFile, "catalog", "pawl models list --json prints a valid one", "%s: %v", name, err)
	}
	return c, nil
}

// NoticeDriver is the code of the notice that says what driver auto took.
const NoticeDriver = "driver"

// driven wraps the model in its driver. The choice of auto is reported at once, and as a notice of
// the first request.
func (b *builder) driven(model llm.Model) (llm.Model, []pawl.Middleware, error) {
	a := b.agent
	driver := cmp.Or(a.Driver, "native")
	if driver == "native" && a.React != nil {
		return nil, nil, reactUnused(a.React)
	}

	var layers []pawl.Middleware
	name := a.Model[0].Name
	if driver == "auto" {
		var why string
		driver, why = pick(b.known, name)
		text := driver + ", since " + why
		b.notice("driver: " + text)
		layers = append(layers, withNotice(llm.Notice{Code: NoticeDriver, Text: text}))
	}

	switch driver {
	case "react":
		return react.New(model, a.React.options()), layers, nil
	case "native":
		if leaks(a.Leaks, name) {
			layers = append(layers, leak.Calls())
		}
		return model, layers, nil
	}
	return nil, nil, finding(CodeBadValue, "driver", "native, react or auto", "there is no driver %q", driver)
}

// reactUnused returns the finding for settings of driver react with the driver native.
func reactUnused(r *React) error {
	const hint = "take driver react, or leave it out"
	if r.Format != "" {
		return finding(CodeConflict, "react.format", hint, "a format of decisions is about driver react, not native")
	}
	return finding(CodeConflict, "react", hint, "these are about driver react, not native")
}

// options returns the options of package react. Nil means the defaults.
func (r *React) options() *react.Options {
	r = cmp.Or(r, new(React))
	o := &react.Options{Format: react.Format(r.Format), Parallel: r.Parallel, Lenient: r.Lenient}
	if r.Retries != nil {
		o.MaxRetries = *r.Retries
		if *r.Retries == 0 { // for package react 0 means the default
			o.MaxRetries = -1
		}
	}
	return o
}

// leaks reports whether calls are looked for in the text of a model with native calling.
func leaks(said, model string) bool {
	if said != "" && said != "auto" {
		return said == "on"
	}
	name, _, _ := strings.Cut(model, ":")
	p, _ := provider.Find(name)
	return !p.CleanCalls && !local(model)
}

// pick chooses the driver for a model, and says why.
func pick(known *catalog.Catalog, name string) (driver, why string) {
	m, assumed := known.Lookup(name)
	list := strings.Join(assumed, "; ")
	switch {
	case !*m.Calling && list == "":
		return "react", "the catalogue says that " + name + " does not call tools"
	case !*m.Calling:
		return "react", "the catalogue says that it does not call tools: " + list
	case list == "":
		return "native", "the catalogue says that " + name + " calls tools"
	}
	return "native", list + "; --driver react is for models that do not call tools"
}

// withNotice returns a middleware that emits a notice before the first reply.
func withNotice(n llm.Notice) pawl.Middleware {
	return pawl.Middleware{Model: func(m llm.Model) llm.Model { return &announcing{m, n} }}
}

// announcing is a model that emits a notice before its first reply. Each run has its own.
type announcing struct {
	llm.Model
	notice llm.Notice // empty after it was emitted
}

// Unwrap returns the wrapped model.
func (a *announcing) Unwrap() llm.Model { return a.Model }

// Stream emits the notice, then the reply.
func (a *announcing) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		if n := a.notice; n.Code != "" {
			a.notice = llm.Notice{}
			if !yield(llm.Delta{Notice: &n}, nil) {
				return
			}
		}
		a.Model.Stream(ctx, req)(yield)
	}
}
