package openai_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/openai"
)

// A key that no header can hold is an error of the configuration, reported at once and not
// retried. White space around the environment's key is removed, because files with secrets end in
// a line break.
func TestBrokenKey(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	none := transport(func(*http.Request) (*http.Response, error) { panic("nothing may be sent") })
	_, err := llm.Complete(t.Context(), openai.New("m", &openai.Options{HTTP: none, Key: "sk-a\nsk-b"}),
		&llm.Request{Messages: []llm.Message{llm.User("hi")}})
	var e *llm.ProviderError
	if !errors.As(err, &e) || e.Code != llm.CodeAuthentication || strings.Contains(err.Error(), "sk-") {
		t.Errorf("with a key of two lines: %v; want an authentication error without the key", err)
	}
	t.Setenv("OPENAI_API_KEY", " sk-env\n")
	got := ""
	look := transport(func(r *http.Request) (*http.Response, error) {
		got = r.Header.Get("Authorization")
		return nil, errors.New("seen")
	})
	llm.Complete(t.Context(), openai.New("m", &openai.Options{HTTP: look, Retries: -1}),
		&llm.Request{Messages: []llm.Message{llm.User("hi")}})
	if got != "Bearer sk-env" {
		t.Errorf("got %q sent, want Bearer sk-env", got)
	}
}

func TestNoKey(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("OPENAI_BASE_URL", "")
	none := transport(func(*http.Request) (*http.Response, error) { panic("nothing may be sent") })
	for _, m := range []llm.Model{openai.New("m", &openai.Options{HTTP: none}),
		openai.NewChat("m", &openai.Options{HTTP: none})} {
		_, err := llm.Complete(t.Context(), m, user("go"))
		var e *llm.ProviderError
		if !errors.As(err, &e) || e.Code != llm.CodeAuthentication || !strings.Contains(e.Message, "OPENAI_API_KEY") {
			t.Errorf("without a key: %v; want an authentication error that names OPENAI_API_KEY", err)
		}
	}
	other := transport(func(r *http.Request) (*http.Response, error) {
		if a := r.Header["Authorization"]; a != nil {
			t.Errorf("a key was sent: %v", a)
		}
		return reply(200, whole("stop", `{"content":"hi"}`)), nil
	})
	if _, err := llm.Complete(t.Context(), localChat(other), user("go")); err != nil {
		t.Errorf("without a key at another host: %v", err)
	}
}

func TestEnvironment(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sk-env" {
			t.Errorf("Authorization %q", r.Header.Get("Authorization"))
		}
		io.WriteString(w, response())
	}))
	defer srv.Close()
	t.Setenv("OPENAI_API_KEY", "sk-env")
	t.Setenv("OPENAI_BASE_URL", srv.URL+"/v1/")
	if _, err := llm.Complete(t.Context(), openai.New("m", nil), user("go")); err != nil {
		t.Error(err)
	}
}

func TestBadAddress(t *testing.T) {
	for _, base := range []string{"localhost:8080", "ftp://x/v1", "http://sk-secret@ /v1", "::"} {
		_, err := llm.Complete(t.Context(), openai.New("m", &openai.Options{BaseURL: base, Key: "sk-secret"}), user("go"))
		if err == nil || strings.Contains(err.Error(), "sk-secret") || !strings.Contains(err.Error(), "base URL") {
			t.Errorf("base URL %q: %v", base, err)
		}
	}
}

func TestKeysStayOutOfErrors(t *testing.T) {
	for name, f := range map[string]transport{
		"said by the server": func(*http.Request) (*http.Response, error) {
			return reply(401, `{"error":{"message":"Incorrect API key provided: sk-secret."}}`), nil
		},
		"said by a proxy": func(*http.Request) (*http.Response, error) {
			return nil, errors.New("proxy: bad header Bearer sk-secret")
		},
		"said in a reply": func(*http.Request) (*http.Response, error) {
			return reply(200, `{"error":{"message":"sk-secret","code":"invalid_api_key"}}`), nil
		},
	} {
		m := openai.New("m", &openai.Options{Key: "sk-secret", HTTP: f, Retries: -1})
		if _, err := llm.Complete(t.Context(), m, user("go")); err == nil || strings.Contains(fmt.Sprintf("%v %+v", err, err), "sk-secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
