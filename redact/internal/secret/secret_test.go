package secret_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/redact/internal/secret"
)

func Example() {
	m := secret.New(secret.Forms("s3cr3t/key"))
	fmt.Println(m.Replace("key=s3cr3t%2Fkey, Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("user:s3cr3t/key"))))
	s := m.Stream()
	for _, fragment := range []string{"it is s3c", "r3t/k", "ey; s3cond"} {
		fmt.Printf("%q ", s.Write(fragment))
	}
	fmt.Printf("%q\n", s.Flush())
	// Output:
	// key=[redacted], Authorization: Basic dXNlcjp[redacted]
	// "it is " "" "[redacted]; s3cond" ""
}

// wraps puts s between other bytes in each form in which secrets travel.
func wraps(s, before, after string) map[string]string {
	whole := before + s + after
	quoted, _ := json.Marshal(whole)
	twice, _ := json.Marshal(string(quoted))
	return map[string]string{
		"plain": whole, "std": base64.StdEncoding.EncodeToString([]byte(whole)),
		"raw std": base64.RawStdEncoding.EncodeToString([]byte(whole)),
		"url":     base64.URLEncoding.EncodeToString([]byte(whole)), "raw url": base64.RawURLEncoding.EncodeToString([]byte(whole)),
		"query": url.QueryEscape(whole), "path": url.PathEscape(whole),
		"json": string(quoted), "json twice": string(twice), "quoted": strconv.Quote(whole),
	}
}

// A secret is found in each form and in each split into fragments. The redaction of a text in
// fragments equals the redaction of the whole text.
func TestSecretsAreFound(t *testing.T) {
	alphabet := rapid.StringOfN(rapid.RuneFrom([]rune(`abcXYZ019-_+/=&<"'\%é `+"\n")), 8, 40, -1)
	rapid.Check(t, func(t *rapid.T) {
		secrets := rapid.SliceOfN(alphabet, 1, 4).Draw(t, "secrets")
		var forms []string
		for _, s := range secrets {
			forms = append(forms, secret.Forms(s)...)
		}
		m := secret.New(forms)
		s := rapid.SampledFrom(secrets).Draw(t, "secret")
		before, after := rapid.StringN(0, 8, -1).Draw(t, "before"), rapid.StringN(0, 8, -1).Draw(t, "after")
		for form, text := range wraps(s, before, after) {
			if !m.Find(text) {
				t.Fatalf("%s: %q is not found in %q", form, s, text)
			}
			whole := m.Replace(text)
			for _, f := range forms {
				if strings.Contains(whole, f) && !strings.Contains(secret.Mask, f) &&
					!strings.Contains(f, secret.Mask) {
					t.Fatalf("%s: %q is left in %q", form, f, whole)
				}
			}
			st, told, rest := m.Stream(), "", text
			for rest != "" {
				n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
				told += st.Write(rest[:n])
				rest = rest[n:]
				for _, f := range forms {
					if strings.Contains(told, f) && !strings.Contains(whole, f) {
						t.Fatalf("%s: %q was told before it was known", form, f)
					}
				}
			}
			if told += st.Flush(); told != whole {
				t.Fatalf("%s: in fragments %q, whole %q", form, told, whole)
			}
		}
	})
}

func TestWhatIsNoSecretIsLeftAlone(t *testing.T) {
	m := secret.New(secret.Forms("correct horse"))
	for _, text := range []string{"", "correct", "correct-horse battery", "Correct Horse", strings.Repeat("correct ", 100)} {
		if got := m.Replace(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
		st := m.Stream()
		if got := st.Write(text) + st.Flush(); got != text {
			t.Errorf("%q became %q in a stream", text, got)
		}
	}
	if none := (*secret.Matcher)(nil); none.Replace("x") != "x" || none.Stream().Write("x") != "x" || secret.New(nil) != nil {
		t.Error("no secrets change text")
	}
	if forms := secret.Forms("ab"); slices.ContainsFunc(forms, func(f string) bool { return len(f) < secret.MinForm }) {
		t.Errorf("too short: %q", forms)
	}
}

func BenchmarkReplace(b *testing.B) {
	var forms []string
	for i := range 10 {
		forms = append(forms, secret.Forms(fmt.Sprintf("sk-proj-%d-abcdefghijklmnopqrstuvwxyz0123456789", i))...)
	}
	m, text := secret.New(forms), strings.Repeat("The quick brown fox asks for a desk. ", 1000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if m.Replace(text) != text {
			b.Fatal("changed")
		}
	}
}
