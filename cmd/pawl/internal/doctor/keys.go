package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider"
)

// setting is a variable that providers and tools read. Its value is not shown, because it may be a
// key.
type setting struct {
	Name string `json:"name"`
	For  string `json:"for"`
	Set  bool   `json:"set"`
}

// otherSettings are the variables other than the keys of providers.
var otherSettings = []setting{
	{Name: "BRAVE_API_KEY", For: "--tools search"},
	{Name: "TAVILY_API_KEY", For: "--tools search"},
	{Name: "SEARXNG_URL", For: "--tools search"},
	{Name: "OPENAI_BASE_URL", For: "an address of another server for openai: and openai-chat:"},
	{Name: "ANTHROPIC_BASE_URL", For: "another address for anthropic:"},
	{Name: "GEMINI_BASE_URL", For: "another address for gemini:"},
	{Name: "HTTPS_PROXY", For: "requests to providers and pages"},
}

// keyless are the providers on this machine. They need no key.
var keyless = map[string]bool{"ollama": true, "vllm": true, "llamacpp": true, "lmstudio": true}

// misnamed maps names that people set by mistake to the right names.
var misnamed = map[string]string{
	"OPENAI_KEY":            "OPENAI_API_KEY",
	"OPEN_AI_KEY":           "OPENAI_API_KEY",
	"OPENAI_APIKEY":         "OPENAI_API_KEY",
	"OPENAI_TOKEN":          "OPENAI_API_KEY",
	"OPENAI_API_TOKEN":      "OPENAI_API_KEY",
	"ANTHROPIC_KEY":         "ANTHROPIC_API_KEY",
	"ANTHROPIC_APIKEY":      "ANTHROPIC_API_KEY",
	"CLAUDE_API_KEY":        "ANTHROPIC_API_KEY",
	"CLAUDE_KEY":            "ANTHROPIC_API_KEY",
	"GEMINI_KEY":            "GEMINI_API_KEY",
	"GOOGLE_KEY":            "GEMINI_API_KEY",
	"GOOGLE_GEMINI_API_KEY": "GEMINI_API_KEY",
	"MISTRAL_KEY":           "MISTRAL_API_KEY",
	"GROQ_KEY":              "GROQ_API_KEY",
}

// marks are the beginnings of keys that identify their provider, the longer ones first.
var marks = []struct{ begins, variable string }{
	{"sk-ant-", "ANTHROPIC_API_KEY"},
	{"sk-or-", "OPENROUTER_API_KEY"},
	{"sk-proj-", "OPENAI_API_KEY"},
	{"gsk_", "GROQ_API_KEY"},
	{"xai-", "XAI_API_KEY"},
	{"AIza", "GEMINI_API_KEY"},
	{"tvly-", "TAVILY_API_KEY"},
}

// keys reports which variables are set, and faults of their values.
func (x *examination) keys() []setting {
	x.in("keys")
	all := keySettings()
	keys := len(all)
	all = append(all, otherSettings...)
	anyKey := false
	for i := range all {
		s := &all[i]
		value := x.sys.Env(s.Name)
		s.Set = value != ""
		if !s.Set {
			continue
		}
		anyKey = anyKey || i < keys
		if wrong, next := x.misshapen(s.Name, value); wrong != "" {
			x.say(checkFail, next, "%s %s", s.Name, wrong)
		} else {
			x.ok("%s: %s", s.Name, s.For)
		}
	}

	// A wrong name in addition to the right one may be meant for another program.
	for _, name := range slices.Sorted(maps.Keys(misnamed)) {
		if right := misnamed[name]; x.sys.Env(name) != "" && x.sys.Env(right) == "" {
			x.say(checkWarn, "export "+right+`="$`+name+`"`,
				"%s is set, but no program reads it; the key belongs in %s", name, right)
		}
	}
	if !anyKey {
		x.say(checkWarn, "export OPENAI_API_KEY=… (or ANTHROPIC_API_KEY, GEMINI_API_KEY); "+
			"a model on this machine needs none: --model ollama:NAME", "no key of a provider of models is set")
	}
	return all
}

// keySettings returns the variables with keys of providers, each once, with the providers that read
// it.
func keySettings() []setting {
	var all []setting
	owners := map[string][]string{}
	for _, p := range provider.Names() {
		for _, v := range provider.KeyVariables(p) {
			if owners[v] == nil {
				all = append(all, setting{Name: v})
			}
			owners[v] = append(owners[v], p+":…")
		}
	}
	for i := range all {
		all[i].For = "models " + strings.Join(owners[all[i].Name], " and ")
	}
	return all
}

// misshapen returns the fault of a value, without the value. Empty means no fault.
func (x *examination) misshapen(name, value string) (wrong, next string) {
	isAddress := strings.HasSuffix(name, "_URL") || strings.HasSuffix(name, "_PROXY")
	switch {
	case isAddress && !isURL(value):
		return "is not an address", "set the whole address, with http:// or https:// at the start"
	case isAddress:
		return "", ""
	case strings.TrimSpace(value) != value || strings.ContainsAny(value, " \t\r\n"):
		return "contains white space", "set it again, in one line, without spaces around it"
	case strings.ContainsAny(value, "\"'“”‘’"):
		return "contains quotes", "set it again: a shell removes its quotes, but quotes in an .env file may stay"
	case isPlaceholder(value):
		return "is a placeholder and not a key", "set the key itself"

	// Another server may use any key.
	case name == "OPENAI_API_KEY" && x.sys.Env("OPENAI_BASE_URL") != "":
		return "", ""
	}

	for _, m := range marks {
		if strings.HasPrefix(value, m.begins) && !holds(name, m.variable) {
			return "has a key that looks like a key of another provider", "export " + m.variable + "=… instead"
		}
	}
	return "", ""
}

// isURL reports whether value is an address with a scheme and a host.
func isURL(value string) bool {
	u, err := url.Parse(value)
	return err == nil && u.Host != "" && u.Scheme != ""
}

// isPlaceholder reports whether value is what instructions write in place of a key.
func isPlaceholder(value string) bool {
	low := strings.ToLower(value)
	for _, begin := range []string{"your", "<"} {
		if strings.HasPrefix(low, begin) {
			return true
		}
	}
	return strings.Contains(low, "changeme") || strings.HasSuffix(value, "...") || strings.HasSuffix(value, "…")
}

// holds reports whether the variable name may hold a key whose own variable is another.
func holds(name, own string) bool {
	return name == own || name == "GOOGLE_API_KEY" && own == "GEMINI_API_KEY"
}

// endpoints asks the model servers on this machine, and with --online the providers whose keys are
// set.
func (x *examination) endpoints(ctx context.Context) {
	x.in("models")
	for _, p := range provider.Names() {
		set := slices.ContainsFunc(provider.KeyVariables(p), func(v string) bool { return x.sys.Env(v) != "" })
		switch {
		// these have a port of their own; on the ports of others any program may listen
		case p == "ollama" || p == "lmstudio":
			if l, err := reach(ctx, p, time.Second/2); err == nil {
				x.ok("%s is on this machine: %s", p, l.models())
			}
		case keyless[p] || !set || p == "openai-chat":
		case !x.online:
			x.ok("%s: its key is set; --online checks it", p)
		default:
			l, err := reach(ctx, p, patience)
			x.answered(p, l, err)
			if err == nil {
				x.announced(p, l)
			}
		}
	}
}

// answered reports the answer of a provider.
func (x *examination) answered(p string, l *lister, err error) {
	switch {
	case err == nil:
		x.ok("%s accepts the key: %s", p, l.models())
	case l.status == http.StatusUnauthorized || l.status == http.StatusForbidden:
		x.say(checkFail, "set a valid key in "+strings.Join(provider.KeyVariables(p), " or "),
			"%s rejects the key: %v", p, err)
	case l.status == http.StatusNotFound:
		x.say(checkWarn, "pawl run --model "+p+":NAME tries it", "%s has no list of models to check the key with", p)
	default:
		x.say(checkFail, "check the address and the network", "%s cannot be reached: %v", p, err)
	}
	// The answer has the clock of the provider for free.
	if d := time.Since(l.date).Abs(); !l.date.IsZero() && d > 5*time.Minute {
		x.say(checkWarn, "set the clock: approvals, leases and schedules depend on it",
			"the clock differs from the clock of %s by %s", p, d.Round(time.Minute))
	}
}

// reach asks a provider for its list of models. The adapter provides the address and the key: its
// request to a model becomes a request for the list.
func reach(ctx context.Context, name string, wait time.Duration) (*lister, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	l := &lister{next: provider.Transport()}
	m, err := provider.Open(name+":x", &provider.Options{HTTP: l, Retries: -1})
	if err != nil {
		return l, err
	}

	// The error is always errListed or a consequence of it: what happened is in l.
	_, err = llm.Complete(ctx, m, &llm.Request{Messages: []llm.Message{llm.User("x")}, Whole: true})
	switch {
	case l.failed != nil:
		return l, l.failed
	case l.status == 0: // it was not asked at all
		return l, err
	case l.status != http.StatusOK:
		return l, fmt.Errorf("status %d %s", l.status, http.StatusText(l.status))
	}
	return l, nil
}

// lister is a RoundTripper that requests the list of models in place of each request.
type lister struct {
	next   http.RoundTripper
	status int // 0 means no answer
	date   time.Time
	body   []byte
	failed error
}

var errListed = errors.New("only the list of models was wanted")

// mostList limits the size of a list.
const mostList = 4 << 20

// RoundTrip always fails, so that the adapter does not read the list as a reply.
func (l *lister) RoundTrip(req *http.Request) (*http.Response, error) {
	ask, err := http.NewRequestWithContext(req.Context(), http.MethodGet, listURL(*req.URL), nil)
	if err != nil {
		l.failed = err
		return nil, errListed
	}
	// The adapter has set its authentication, which differs between providers.
	ask.Header = req.Header.Clone()
	ask.Header.Del("Content-Type")
	res, err := l.next.RoundTrip(ask)
	if err != nil {
		l.failed = err
		return nil, errListed
	}
	defer res.Body.Close()
	l.status = res.StatusCode
	l.date, _ = http.ParseTime(res.Header.Get("Date"))
	l.body, l.failed = io.ReadAll(io.LimitReader(res.Body, mostList))
	return nil, errListed
}

// listURL returns the address of the list of models, from the address of a request to a model.
func listURL(u url.URL) string {
	query := u.Query()
	query.Del("alt") // Gemini's switch to a stream
	if strings.HasSuffix(u.Path, "/messages") {
		query.Set("limit", "1000") // Anthropic's pages have 20 models otherwise
	}

	for _, last := range []string{"/chat/completions", "/responses", "/messages"} {
		if before, found := strings.CutSuffix(u.Path, last); found {
			u.Path = before + "/models"
		}
	}
	if before, _, found := strings.Cut(u.Path, "/models/"); found {
		u.Path = before + "/models"
	}
	u.RawPath = ""
	u.RawQuery = query.Encode()
	return u.String()
}

// models returns the number and the first names of the models, in a line.
func (l *lister) models() string {
	all, ok := l.list()
	if !ok {
		return "it answers"
	}
	if len(all) == 0 {
		return "no model is there yet"
	}
	var names []string
	for _, m := range all {
		names = append(names, m.id)
	}
	return fmt.Sprintf("%s, %s", cli.Count(len(names), "model"), cli.Line(strings.Join(names, ", "), 60))
}
