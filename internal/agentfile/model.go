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

// modelHint says what a model's name looks like.
const modelHint = "such as openai:gpt-6.1-terra, anthropic:claude-sonnet-5-5 or ollama:qwen3:4b; pawl models list has more"

// asked returns the model, and the model behind its driver, which is asked.
func (b *builder) asked() (model, driven llm.Model, layers []pawl.Middleware, err error) {
	if len(b.agent.Model) == 0 && b.opts.Bare {
		return nil, nil, nil, nil
	}
	model, layers, err = b.models()
	if err != nil {
		return nil, nil, nil, err
	}
	driven, more, err := b.driven(model)
	return model, driven, append(layers, more...), err
}

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
	var names []string
	for _, k := range b.known.Models(prefix) {
		if k.Ends == "" {
			names = append(names, prefix+":"+k.ID)
		}
	}
	near := nearest.Word(m.Name, names)
	letters := func(r rune) bool { return !unicode.IsDigit(r) }
	if !slices.Equal(strings.FieldsFunc(near, letters), strings.FieldsFunc(m.Name, letters)) {
		near = reordered(m.Name, names)
	}
	if near != "" {
		b.tell(fmt.Sprintf("the catalogue has no model %s; did you mean %s?", m.Name, near))
	}
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

func (b *builder) model(m Model, path string) (llm.Model, error) {
	if m.made != nil {
		return m.made, nil
	}
	if name, ok := strings.CutPrefix(m.Name, scripted); ok {
		return b.scripted(name, path)
	}
	key, err := b.key(m.KeyEnv, path+".key_env")
	if err != nil {
		return nil, err
	}
	if key == "" && b.opts.Dry && b.opts.HTTP != nil {
		key = "none" // nothing is sent
	}
	at := path + ".base_url"
	if _, given := b.agent.at[at]; !given {
		at = strings.TrimSuffix(path, "[0]") + ".base_url"
	}
	if _, given := b.agent.at[at]; given && strings.TrimSpace(m.BaseURL) == "" {
		return nil, finding(CodeBadValue, at, "leave the key out for the provider's own address", "the address is empty")
	}
	if m.BaseURL == "" && key != "" { // the file names no address, so the key is the provider's
		name, _, _ := strings.Cut(m.Name, ":")
		p, _ := provider.Find(name)
		m.BaseURL = cmp.Or(strings.TrimSpace(b.env(p.BaseEnv)), p.BaseURL)
	}
	opened, err := provider.Open(m.Name, &provider.Options{BaseURL: m.BaseURL, Key: key, Catalog: b.known,
		HTTP: b.opts.HTTP, Background: m.Background,
		CacheKey: m.Cache.Key, CacheTTL: time.Duration(m.Cache.TTL)})
	if err != nil {
		return nil, finding(CodeUnknownModel, path, modelHint, "%v", err)
	}
	return opened, nil
}

// none is the side model of an agent that answers side requests with an empty text.
const none = "none"

// side returns the model for requests that need no tools. own is the agent's.
func (b *builder) side(own llm.Model) (llm.Model, error) {
	m := b.agent.Side
	switch {
	case m != nil && m.Name != none:
		return b.model(*m, "side_model")
	case m != nil, len(b.agent.Model) > 0 && b.agent.Model[0].made != nil:
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
		return nil, finding(CodeBadFile, path, "script: takes a file with turns, as script.Model has them in JSON", "%s", plain(err))
	}
	m := new(script.Model)
	b.script = cmp.Or(b.script, m)
	if err := json.Unmarshal(text, m); err != nil {
		return nil, finding(CodeBadFile, path, "script: takes a file with turns, as script.Model has them in JSON", "%s: %v", name, err)
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
	if strings.ContainsFunc(name, func(c rune) bool { return c != '_' && !unicode.IsUpper(c) && !unicode.IsDigit(c) }) {
		what = ""
		hint = "the name of a variable belongs here, not a key, as in MY_KEY"
	}
	return "", finding(CodeMissingVariable, path, hint, "%sthere is no such environment variable, or it is empty", what)
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
	driver := b.agent.Driver
	o := b.agent.React
	driver = cmp.Or(driver, "native")
	if driver == "native" && o != nil {
		if o.Format != "" {
			return nil, nil, finding(CodeConflict, "react.format", "take driver react, or leave it out", "a format of decisions is about driver react, not native")
		}
		return nil, nil, finding(CodeConflict, "react", "take driver react, or leave it out", "these are about driver react, not native")
	}
	var layers []pawl.Middleware
	name := a.Model[0].Name
	if driver == "auto" {
		var why string
		driver, why = pick(b.known, name)
		text := driver + ", since " + why
		b.tell("driver: " + text)
		layers = append(layers, withNotice(llm.Notice{Code: NoticeDriver, Text: text}))
	}
	switch driver {
	case "react":
		o = cmp.Or(o, new(React))
		options := &react.Options{Format: react.Format(o.Format), Parallel: o.Parallel, Lenient: o.Lenient}
		if o.Retries != nil {
			options.MaxRetries = *o.Retries
			if *o.Retries == 0 {
				options.MaxRetries = -1
			}
		}
		return react.New(model, options), layers, nil
	case "native":
		if leaks(a.Leaks, name) {
			layers = append(layers, leak.Calls())
		}
		return model, layers, nil
	}
	return nil, nil, finding(CodeBadValue, "driver", "native, react or auto", "there is no driver %q", driver)
}

// leaks reports whether calls are looked for in the text of a model with native calling.
func leaks(said, model string) bool {
	if said != "" && said != "auto" {
		return said == "on"
	}
	name, _, _ := strings.Cut(model, ":")
	p, _ := provider.Find(name)
	return !p.CleanCalls && name+":" != scripted
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
	return pawl.Middleware{Model: func(m llm.Model) llm.Model { return &telling{m, n} }}
}

// telling emits the notice. Each run has its own.
type telling struct {
	llm.Model
	notice llm.Notice
}

// Unwrap returns the wrapped model.
func (t *telling) Unwrap() llm.Model { return t.Model }

// Stream emits the notice, then the reply.
func (t *telling) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		if n := t.notice; n.Code != "" {
			t.notice = llm.Notice{}
			if !yield(llm.Delta{Notice: &n}, nil) {
				return
			}
		}
		t.Model.Stream(ctx, req)(yield)
	}
}
