package provider_test

import (
	"net/http"
	"reflect"
	"slices"
	"testing"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/provider/catalog"
)

// Open accepts every entry of the table, and the other lists about providers agree with the table.
func TestTable(t *testing.T) {
	var names []string
	for _, p := range provider.All() {
		names = append(names, p.Name)
		if p.Example == "" || len(p.Keys) == 0 || p.BaseURL == "" && p.BaseEnv == "" {
			t.Errorf("%s has no example, no key or no address: %+v", p.Name, p)
		}
		if m, err := provider.Open(p.Name+":"+p.Example, nil); m == nil || err != nil {
			t.Errorf("%s: %v, %v", p.Name, m, err)
		}
		if got := provider.KeyVariables(p.Name); !slices.Equal(got, p.Keys) {
			t.Errorf("%s: the keys are %q, want %q", p.Name, got, p.Keys)
		}
		if p.Catalog != "" && len(catalog.Default().Models(p.Name)) != len(catalog.Default().Models(p.Catalog)) {
			t.Errorf("%s: the catalogue has other models for %s", p.Name, p.Catalog)
		}
		if _, err := provider.OpenEmbedder(p.Name+":x", nil); (err == nil) != p.Embeds() {
			t.Errorf("%s: Embeds is %v, opening gives %v", p.Name, p.Embeds(), err)
		}
		if found, ok := provider.Find(p.Name); !ok || found.Name != p.Name {
			t.Errorf("Find(%q) = %v, %v", p.Name, found.Name, ok)
		}
	}
	if !slices.Equal(names, provider.Names()) {
		t.Errorf("Names is %q, want %q", provider.Names(), names)
	}
	if _, ok := provider.Find("nobody"); ok {
		t.Error("a provider that does not exist was found")
	}
}

// Every API can be found by each of its names and opens a model that asks the default address.
func TestAPIs(t *testing.T) {
	var names []string
	for _, a := range provider.APIs() {
		names = append(names, a.Name)
		for _, name := range append([]string{a.Name}, a.Aliases...) {
			if found, ok := provider.FindAPI(name); !ok || found.Name != a.Name || found.Encode == nil ||
				found.Decode == nil {
				t.Errorf("FindAPI(%q) = %+v, %v", name, found, ok)
			}
		}
		if reflect.DeepEqual(a.Rules, llm.HistoryRules{}) {
			t.Errorf("%s has no rules for histories", a.Name)
		}
		if a.Open(http.DefaultTransport) == nil {
			t.Errorf("%s opens no model", a.Name)
		}
	}
	if want := []string{"openai-responses", "openai-chat", "anthropic-messages", "gemini"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	if _, ok := provider.FindAPI("nothing"); ok {
		t.Error("an API that does not exist was found")
	}
}
