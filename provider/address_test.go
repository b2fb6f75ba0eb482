package provider_test

import (
	"strings"
	"testing"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider"
)

// A key without an address is an error: an address from a variable that is not set must not send
// the key of one server to another. The provider's own variable, and options without a key, work.
func TestKeyWithoutAnAddress(t *testing.T) {
	for _, p := range provider.All() {
		for _, v := range []string{p.BaseEnv, p.Keys[0]} {
			if v != "" {
				t.Setenv(v, "")
			}
		}
		check := func(o *provider.Options) error {
			m, err := provider.Open(p.Name+":m", o)
			if err != nil {
				t.Fatal(err)
			}
			c, ok := llm.As[interface{ Check() error }](m)
			if !ok {
				t.Fatalf("%s has no Check", p.Name)
			}
			return c.Check()
		}
		if err := check(&provider.Options{Key: "of-a-gateway"}); err == nil || !strings.Contains(err.Error(), "a key is given, but BaseURL is empty") && p.BaseURL != "" {
			t.Errorf("%s: got %v", p.Name, err)
		}
		if err := check(&provider.Options{Key: "of-a-gateway", BaseURL: "https://gateway.example/v1"}); err != nil {
			t.Errorf("%s with an address: %v", p.Name, err)
		}
		if p.BaseURL == "" {
			continue
		}
		t.Setenv(p.Keys[0], "own")
		for name, o := range map[string]*provider.Options{"nothing": nil, "the own key": {Key: "own"},
			"the own address": {Key: "other", BaseURL: p.BaseURL}} {
			if err := check(o); err != nil {
				t.Errorf("%s with %s: %v", p.Name, name, err)
			}
		}
	}
}
