package doctor

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Models that end are warnings, by the catalogue or, with --online, by the list of the provider.
func TestDoctorEndings(t *testing.T) {
	list := ""
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "anthropic") != (r.URL.Query().Get("limit") == "1000") {
			t.Errorf("it was asked %s", r.URL)
		}
		fmt.Fprint(w, list)
	}))
	defer web.Close()
	now := func() time.Time { return time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC) }
	openai := map[string]string{"OPENAI_API_KEY": "secretsecret", "OPENAI_BASE_URL": web.URL + "/v1"}
	anthropic := map[string]string{"ANTHROPIC_API_KEY": "secretsecret", "ANTHROPIC_BASE_URL": web.URL + "/anthropic"}

	for name, test := range map[string]struct {
		model, list string
		env         map[string]string
		status      string
		words       []string
		not         string
	}{
		"the catalogue": {"openai:gpt-5-mini", "", openai, checkWarn,
			[]string{"agent a uses a model that ends: openai:gpt-5-mini ends on 2026-12-11, in 12 days", "recommends openai:gpt-6.1-terra"}, ""},
		"a list that says nothing of ends": {"openai:gpt-5-mini", `{"data":[{"id":"gpt-5-mini"}]}`, openai, checkWarn,
			[]string{"agent a uses a model that ends: openai:gpt-5-mini ends on 2026-12-11"}, "by the list"},
		"OpenAI's list has another day": {"openai:gpt-5-mini", `{"data":[{"id":"gpt-5-mini","shutdown_date":"2027-01-31"}]}`, openai, checkWarn,
			[]string{"agent a uses openai:gpt-5-mini, which ends on 2027-01-31, in 62 days by the list of openai", "recommends openai:gpt-6.1-terra"}, "2026-12-11"},
		"OpenAI's list has no end": {"openai:gpt-5-mini", `{"data":[{"id":"gpt-5-mini","shutdown_date":null}]}`, openai, checkOK,
			[]string{"openai accepts the key"}, "ends on"},
		"an end that only the list knows": {"openai-chat:gpt-6.1-terra", `{"data":[{"id":"gpt-6.1-terra","shutdown_date":"2026-11-29"}]}`, openai, checkWarn,
			[]string{"agent a uses openai-chat:gpt-6.1-terra, which ended on 2026-11-29 by the list of openai"}, ""},
		"an end that is far": {"openai:gpt-6.1-terra", `{"data":[{"id":"gpt-6.1-terra","shutdown_date":"2027-11-29"}]}`, openai, checkOK,
			[]string{"openai accepts the key"}, "2027-11-29"},
		"all near ends of a list": {"openai:gpt-6.1-terra", `{"data":[{"id":"x","shutdown_date":"2026-12-30"},{"id":"y","shutdown_date":"2026-12-01"},{"id":"z","shutdown_date":null}]}`, openai, checkOK,
			[]string{"openai announces the end of 2 models: y on 2026-12-01, x on 2026-12-30"}, ""},
		"Anthropic's list": {"anthropic:claude-opus-5", `{"data":[{"id":"claude-opus-5","lifecycle":"deprecated","retires_at":"2026-12-24T00:00:00Z"}]}`, anthropic, checkWarn,
			[]string{"agent a uses anthropic:claude-opus-5, which ends on 2026-12-24, in 24 days by the list of anthropic"}, ""},
		"Anthropic's list has no end": {"anthropic:claude-sonnet-4-5", `{"data":[{"id":"claude-sonnet-4-5","lifecycle":"active","retires_at":null}]}`, anthropic, checkOK,
			[]string{"anthropic accepts the key"}, "agent a uses"},
	} {
		t.Run(name, func(t *testing.T) {
			list = test.list
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "agent.yaml"), []byte("agent: a\nmodel: "+test.model+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{}
			if test.list != "" {
				args = append(args, "--online")
			}
			d, _ := examinedAt(t, now, dir, test.env, args...)
			has(t, d, test.status, test.words...)
			for _, f := range d.Checks {
				if test.not != "" && strings.Contains(f.Text, test.not) {
					t.Errorf("%s: %s", f.Area, f.Text)
				}
			}
		})
	}
}
