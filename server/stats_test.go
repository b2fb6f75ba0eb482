package server_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-go/pawl/store"
)

// unread is a journal that cannot be listed.
type unread struct{ store.Journal }

func (unread) UnendedRuns(context.Context) iter.Seq2[store.JournalRun, error] {
	return func(yield func(store.JournalRun, error) bool) {
		yield(store.JournalRun{}, errors.New("away"))
	}
}

// metrics returns GET /metrics.
func (v *serving) metrics() string {
	v.t.Helper()
	b, err := io.ReadAll(v.request("GET", "/metrics", "").Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return string(b)
}

// The page has the runs by agent and state, questions with their age, and stuck runs. What was read
// is kept for a while.
func TestStateMetrics(t *testing.T) {
	j, now := new(store.MemoryJournal), time.Now()
	begin := func(id, agent string) {
		if _, err := j.BeginJournal(t.Context(), store.Scope{Tenant: "t"}, store.JournalRun{ID: id, Agent: agent,
			State: store.JournalOpen}, "dead", now.Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	begin("lost", "nobody")
	none := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header) > 0 {
			t.Errorf("the page may be compressed: %v", r.Header)
		}
		_, _ = io.WriteString(w, "other 1\n")
	})
	v := serve(t, func(o *options) {
		o.Journal, o.Metrics, o.Now = j, none, func() time.Time { return now }
	})
	v.do("POST", "/v1/runs", `{"id":"p","input":"pay 1","wait":true}`, 201, nil)
	now = now.Add(time.Hour)
	page := v.metrics()
	for _, want := range []string{"other 1", `pawl_runs{agent="clerk",state="waiting"} 1`, `pawl_runs{agent="other",state="open"} 1`,
		"pawl_questions_open 1", "pawl_runs_stuck 1", "pawl_effects_unknown 0", "pawl_journal_up 1", "pawl_leases_lost_total 0",
		"pawl_journal_errors_total 0", "pawl_runs_limit 1000"} {
		if !strings.Contains(page, "\n"+want+"\n") && !strings.HasPrefix(page, want) {
			t.Errorf("%s is not in\n%s", want, page)
		}
	}
	if m := regexp.MustCompile(`pawl_question_age_seconds 3[56]\d\d`).FindString(page); m == "" {
		t.Errorf("the age is not in\n%s", page)
	}
	begin("more", "clerk")
	if strings.Contains(v.metrics(), `pawl_runs{agent="clerk",state="open"}`) {
		t.Error("the journal was read again at once")
	}
	now = now.Add(time.Minute)
	if page := v.metrics(); !strings.Contains(page, `pawl_runs{agent="clerk",state="open"} 1`) {
		t.Errorf("%s", page)
	}
	away := serve(t, func(o *options) { o.Journal, o.Metrics = unread{j}, none })
	if page := away.metrics(); !strings.Contains(page, "pawl_journal_up 0") {
		t.Errorf("%s", page)
	}
}

// Each rule of docs/operations.md parses, uses metrics of the page, and has a remedy.
func TestAlerts(t *testing.T) {
	b, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "```yaml other\ngroups:")
	text, after, ok := strings.Cut(text, "```")
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct{ Alert, Expr, For string }
		}
	}
	if err := yaml.Unmarshal([]byte("groups:"+text), &rules); err != nil || !ok || len(rules.Groups) != 1 {
		t.Fatalf("%v, %+v", err, rules)
	}
	j := new(store.MemoryJournal)
	v := serve(t, func(o *options) { o.Journal, o.Metrics = j, http.NotFoundHandler() })
	v.do("POST", "/v1/runs", `{"id":"p","input":"pay 1","wait":true}`, 201, nil)
	page := v.metrics()
	for _, r := range rules.Groups[0].Rules {
		names := regexp.MustCompile(`pawl_\w+`).FindAllString(r.Expr, -1)
		if len(names) == 0 {
			t.Errorf("%s has no metric", r.Alert)
		}
		for _, name := range names {
			if !strings.Contains(page, "# TYPE "+name+" ") {
				t.Errorf("%s: %s is not a metric of the page", r.Alert, name)
			}
		}
		if _, err := time.ParseDuration(r.For); r.For != "" && err != nil {
			t.Errorf("%s: %v", r.Alert, err)
		}
		if !strings.Contains(after, r.Alert) {
			t.Errorf("%s has no remedy", r.Alert)
		}
	}
}
