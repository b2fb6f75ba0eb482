package provider_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/provider/catalog"
)

// transport answers every request and stores the last one.
type transport struct{ last *http.Request }

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.last = r
	body := `{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

var serverCases = []struct{ name, env, url, header string }{
	{"ollama", "OLLAMA_API_KEY", "http://localhost:11434/v1/chat/completions", "Authorization"},
	{"vllm", "VLLM_API_KEY", "http://localhost:8000/v1/chat/completions", "Authorization"},
	{"llamacpp", "LLAMA_API_KEY", "http://localhost:8080/v1/chat/completions", "Authorization"},
	{"lmstudio", "LM_API_TOKEN", "http://localhost:1234/v1/chat/completions", "Authorization"},
	{"openrouter", "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1/chat/completions", "Authorization"},
	{"groq", "GROQ_API_KEY", "https://api.groq.com/openai/v1/chat/completions", "Authorization"},
	{"mistral", "MISTRAL_API_KEY", "https://api.mistral.ai/v1/chat/completions", "Authorization"},
	{"deepseek", "DEEPSEEK_API_KEY", "https://api.deepseek.com/v1/chat/completions", "Authorization"},
	{"xai", "XAI_API_KEY", "https://api.x.ai/v1/chat/completions", "Authorization"},
	{"azure", "AZURE_OPENAI_API_KEY", "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21", "Api-Key"},
}

// environment sets the key of every provider except without, and an address for OpenAI alone.
func environment(t *testing.T, without string) {
	t.Setenv("OPENAI_API_KEY", "key-of-openai")
	t.Setenv("OPENAI_BASE_URL", "https://openai.example/v1")
	t.Setenv("AZURE_OPENAI_BASE_URL", "https://r.openai.azure.com/openai/deployments/d?api-version=2024-10-21")
	for _, c := range serverCases {
		if t.Setenv(c.env, "key-of-"+c.name); c.name == without {
			t.Setenv(c.env, "")
		}
	}
}

func ask(t *testing.T, name string, o provider.Options) (*http.Request, error) {
	t.Helper()
	seen := new(transport)
	o.HTTP, o.Retries = seen, -1
	m, err := provider.Open(name, &o)
	if err != nil {
		t.Fatal(err)
	}
	_, err = llm.Complete(t.Context(), m, &llm.Request{Messages: []llm.Message{llm.User("hi")}})
	return seen.last, err
}

// keys returns all keys in the headers and the address of a request.
func keys(r *http.Request) string {
	var found []string
	for name, values := range r.Header {
		for _, v := range values {
			if strings.Contains(v, "key-of-") {
				found = append(found, name+": "+v)
			}
		}
	}
	if strings.Contains(r.URL.String(), "key-of-") {
		found = append(found, r.URL.String())
	}
	return strings.Join(found, ", ")
}

func TestServers(t *testing.T) {
	if got, want := len(provider.Names()), 4+len(serverCases); got != want {
		t.Errorf("there are %d names, and cases for %d", got, want)
	}
	for _, c := range serverCases {
		t.Run(c.name, func(t *testing.T) {
			environment(t, "")
			want := c.header + ": key-of-" + c.name
			if c.header == "Authorization" {
				want = "Authorization: Bearer key-of-" + c.name
			}
			r, err := ask(t, c.name+":m", provider.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if r.URL.String() != c.url {
				t.Errorf("got %s, want %s", r.URL, c.url)
			}
			if got := keys(r); got != want {
				t.Errorf("sent %q, want %q alone", got, want)
			}
			r, err = ask(t, c.name+":m", provider.Options{BaseURL: "https://gateway.example/x?api-version=1", Key: "key-of-gateway"})
			if err != nil {
				t.Fatal(err)
			}
			if got := keys(r); !strings.HasSuffix(got, "key-of-gateway") || strings.Contains(got, c.name) {
				t.Errorf("with a base URL and its key: sent %q", got)
			}
			if got, want := r.URL.String(), "https://gateway.example/x/chat/completions?api-version=1"; got != want {
				t.Errorf("with a base URL: got %s, want %s", got, want)
			}
		})
	}
}

// Without its own key a hosted server receives no request, and a local one a request without a
// key. OpenAI's key is never sent.
func TestServersWithoutKey(t *testing.T) {
	for _, c := range serverCases {
		t.Run(c.name, func(t *testing.T) {
			environment(t, c.name)
			r, err := ask(t, c.name+":m", provider.Options{})
			if strings.Contains(c.url, "localhost") {
				if err != nil {
					t.Fatal(err)
				}
				if got := keys(r); got != "" {
					t.Errorf("sent %q, want no key", got)
				}
				return
			}
			var e *llm.ProviderError
			if !errors.As(err, &e) || e.Code != llm.CodeAuthentication || !strings.Contains(e.Message, c.env) {
				t.Errorf("got %v, want an authentication error that names %s", err, c.env)
			}
			if e != nil && e.Provider != c.name {
				t.Errorf("the error is one of %s, want %s: %v", e.Provider, c.name, err)
			}
			if r != nil {
				t.Errorf("a request was sent to %s", r.URL)
			}
		})
	}
}

func TestAzureWithoutAddress(t *testing.T) {
	environment(t, "")
	t.Setenv("AZURE_OPENAI_BASE_URL", "")
	r, err := ask(t, "azure:m", provider.Options{})
	if r != nil || err == nil || !strings.Contains(err.Error(), "AZURE_OPENAI_BASE_URL") {
		t.Errorf("got %v, want an error that names AZURE_OPENAI_BASE_URL", err)
	}
}

// OpenAI's own names read OpenAI's variables: the tests above would find the keys if they were
// sent.
func TestOpenAIKeepsItsEnvironment(t *testing.T) {
	environment(t, "")
	r, err := ask(t, "openai-chat:m", provider.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.URL.String()+" "+keys(r), "https://openai.example/v1/chat/completions Authorization: Bearer key-of-openai"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Open accepts each provider of the catalogue.
func TestCatalogueNamesProviders(t *testing.T) {
	known := provider.Names()
	for _, m := range catalog.Default().Models("") {
		if !slices.Contains(known, m.Provider) {
			t.Errorf("%s: there is no provider %q", m.Name(), m.Provider)
		}
	}
}

// OpenAI's key does not go to another provider under OpenAI's own names either.
func TestBaseURLOfAnotherProvider(t *testing.T) {
	environment(t, "")
	for _, name := range []string{"openai:m", "openai-chat:m"} {
		r, err := ask(t, name, provider.Options{BaseURL: "https://API.groq.com/openai/v1"})
		if r == nil {
			t.Fatalf("%s: nothing was sent: %v", name, err)
		}
		if got, want := keys(r), "Authorization: Bearer key-of-groq"; got != want {
			t.Errorf("%s: sent %q, want %q alone", name, got, want)
		}
		r, _ = ask(t, name, provider.Options{BaseURL: "https://r.openai.azure.com/openai/v1"})
		if got, want := keys(r), "Api-Key: key-of-azure"; got != want {
			t.Errorf("%s at Azure: sent %q, want %q alone", name, got, want)
		}
		r, _ = ask(t, name, provider.Options{BaseURL: "https://gateway.example/v1"})
		if got := keys(r); got != "" {
			t.Errorf("%s at a gateway: sent %q, want no key: the environment's is not meant for it", name, got)
		}
	}
}

// A key of the environment is sent to the host in the environment, and not to other given hosts.
func TestKeysOfTheEnvironmentStayHome(t *testing.T) {
	for _, c := range []struct{ name, key, base string }{
		{"openai:m", "OPENAI_API_KEY", "OPENAI_BASE_URL"}, {"openai-chat:m", "OPENAI_API_KEY", "OPENAI_BASE_URL"},
		{"anthropic:m", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"}, {"gemini:m", "GEMINI_API_KEY", "GEMINI_BASE_URL"},
	} {
		t.Setenv(c.key, "key-of-environment")
		t.Setenv(c.base, "https://mine.example/v1")
		for base, want := range map[string]bool{"": true, "https://mine.example/v2": true, "http://localhost:1/v1": true, "https://other.example/v1": false} {
			r, err := ask(t, c.name, provider.Options{BaseURL: base})
			if r == nil {
				t.Fatalf("%s at %q: %v", c.name, base, err)
			}
			if got := keys(r) != ""; got != want {
				t.Errorf("%s at %q: sent %q, want a key: %t", c.name, base, keys(r), want)
			}
		}
	}
	t.Setenv("GROQ_API_KEY", "key-of-groq")
	if r, err := ask(t, "groq:m", provider.Options{BaseURL: "https://other.example/v1"}); r != nil || err == nil || !strings.Contains(err.Error(), "GROQ_API_KEY is not sent") {
		t.Errorf("groq at another address: got %v, want an error that says why GROQ_API_KEY is not sent", err)
	}
}

// A server's options are under its name. Without them it uses the API's. It never uses another
// server's.
func TestOptionsOfServers(t *testing.T) {
	environment(t, "")
	for _, c := range []struct{ name, want string }{{"groq:m", `"seed":1`}, {"mistral:m", `"seed":2`}, {"openai-chat:m", `"seed":2`}} {
		seen := new(transport)
		m, err := provider.Open(c.name, &provider.Options{HTTP: seen, Retries: -1})
		if err != nil {
			t.Fatal(err)
		}
		req := &llm.Request{Messages: []llm.Message{llm.User("hi")}, Whole: true}
		req.Settings.Options = map[string]json.RawMessage{"groq": []byte(`{"seed":1}`), "openai-chat": []byte(`{"seed":2}`), "openai": []byte(`{"seed":3}`), "xai": []byte(`{"seed":4}`)}
		if _, err := llm.Complete(t.Context(), m, req); err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(seen.last.Body)
		if got := string(b); !strings.Contains(got, c.want) || strings.Count(got, "seed") != 1 {
			t.Errorf("%s: sent %s, want %s alone", c.name, got, c.want)
		}
	}
}
