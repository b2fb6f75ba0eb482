package schedule_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
	"github.com/pawl-go/pawl/tools/schedule"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("PAWL_TEST_RUNNER"); path != "" {
		runnerProcess(path)
		return
	}
	goleak.VerifyTestMain(m)
}

func open(t testing.TB, path string) *sqlite.DB {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "pawl.db")
	}
	db, err := open2(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

var now = time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC) // a Friday; clocks change on Sunday

func TestTools(t *testing.T) {
	mail := pawl.Func("mail", "Sends a mail.", func(_ context.Context, a struct {
		To string `json:"to"`
	}) (string, error) {
		t.Error("a mail was sent")
		return "", nil
	})
	set := schedule.New(open(t, ""), &schedule.Options{Zone: "Europe/Oslo", Tools: mail, Now: func() time.Time { return now }})
	alice := store.WithScope(t.Context(), store.Scope{User: "alice"})
	bob := store.WithScope(t.Context(), store.Scope{User: "bob"})
	ids := map[string]string{}
	id := regexp.MustCompile(`(?:Scheduled as|Changed|Deleted) (\w+): (\w+)`)
	for _, step := range []struct {
		ctx        context.Context
		name, args string
		outcome    pawl.Outcome
		texts      []string
	}{
		{alice, "schedule_list", `{}`, pawl.OutcomeOK, []string{"Nothing is scheduled."}},
		{alice, "schedule_create", `{"description":"News","when":"daily 08:00","prompt":"What is new?"}`, pawl.OutcomeOK,
			[]string{": News\ndaily 08:00 (Europe/Oslo)\nNext:\n  Sat 2026-03-28 08:00 CET\n  Sun 2026-03-29 08:00 CEST\n", "Wed 2026-04-01 08:00 CEST"}},
		// in the form that agent-framework's tool accepts
		{alice, "schedule_create", `{"description":"Report","time":"8:5","recurrence":"custom","day":"monday,friday","tools":[{"tool":"mail","params":{"to":"a@example.com"}}],"synthesis_prompt":"Sum up."}`, pawl.OutcomeOK,
			[]string{"weekly monday,friday 8:5", "Mon 2026-03-30 08:05 CEST"}},
		{alice, "schedule_create", `{"description":"Once","time":"14:00","recurrence":"once","prompt":"p"}`, pawl.OutcomeOK, []string{"2026-03-27T13:00:00Z\nNext:\n  Fri 2026-03-27 14:00 CET"}},
		{alice, "schedule_create", `{"description":"Rent","recurrence":"monthly","day":"31","prompt":"p"}`, pawl.OutcomeOK, []string{"Tue 2026-03-31 08:00", "Sun 2026-05-31 08:00"}},
		{alice, "schedule_create", `{"description":"x","when":"daily 08:00"}`, pawl.OutcomeError, []string{"Give a prompt, or tools to call"}},
		{alice, "schedule_create", `{"description":"x","prompt":"p"}`, pawl.OutcomeError, []string{"Say when"}},
		{alice, "schedule_create", `{"description":"x","prompt":"p","when":"sometimes"}`, pawl.OutcomeError, []string{`"sometimes" is not a time: want "daily 08:00"`}},
		{alice, "schedule_create", `{"description":"x","prompt":"p","when":"daily 08:00","time":"08:00"}`, pawl.OutcomeError, []string{"not both"}},
		{alice, "schedule_create", `{"description":"x","prompt":"p","when":"2020-01-01 00:00"}`, pawl.OutcomeError, []string{"has passed: it is 2026-03-27 13:00 CET now"}},
		{alice, "schedule_create", `{"description":"x","prompt":"p","when":"daily 08:00","zone":"Oslo"}`, pawl.OutcomeError, []string{"want an IANA name"}},
		{alice, "schedule_create", `{"description":"x","prompt":"p","time":"08:00","day":"monday","recurrence":"daily"}`, pawl.OutcomeError, []string{"has no day"}},
		{alice, "schedule_create", `{"description":"x","when":"daily 08:00","tools":[{"tool":"mial","params":{}}]}`, pawl.OutcomeError, []string{`tools/0: Unknown tool "mial"`, `Did you mean "mail"?`}},
		{alice, "schedule_create", `{"description":"x","when":"daily 08:00","tools":[{"tool":"mail","params":{"too":"a"}}]}`, pawl.OutcomeError, []string{"tools/0: The arguments of mail do not fit"}},
		{alice, "schedule_create", `{"when":"daily 08:00"}`, pawl.OutcomeInvalid, []string{"description"}},
		{alice, "schedule_list", `{}`, pawl.OutcomeOK, []string{"News\n  daily 08:00, next Sat 2026-03-28 08:00 CET", "Rent\n"}},
		{bob, "schedule_list", `{}`, pawl.OutcomeOK, []string{"Nothing is scheduled."}},
		{bob, "schedule_delete", `{"description_query":"News"}`, pawl.OutcomeError, []string{`No schedule's description has "news"`}},
		{alice, "schedule_update", `{"description_query":"news","enabled":false}`, pawl.OutcomeOK, []string{"It is turned off."}},
		{alice, "schedule_update", `{"description_query":"news","enabled":true,"time":"09:00"}`, pawl.OutcomeOK, []string{"daily 09:00", "Sat 2026-03-28 09:00"}},
		{alice, "schedule_update", `{"id":"ID:News","zone":"America/New_York"}`, pawl.OutcomeOK, []string{"Fri 2026-03-27 09:00 EDT"}},
		{alice, "schedule_update", `{"description_query":"n"}`, pawl.OutcomeError, []string{"3 schedules fit", "Say which one by its id."}},
		{alice, "schedule_update", `{"enabled":false}`, pawl.OutcomeError, []string{"Say which one"}},
		{alice, "schedule_update", `{"id":"ID:News"}`, pawl.OutcomeError, []string{"Nothing would change"}},
		{alice, "schedule_update", `{"id":"none","enabled":true}`, pawl.OutcomeError, []string{`No schedule has the id "none"`}},
		{alice, "schedule_delete", `{"description_query":"*"}`, pawl.OutcomeError, []string{"All of them are not deleted at once"}},
		{alice, "schedule_delete", `{"description_query":""}`, pawl.OutcomeError, []string{"Say which one"}},
		{alice, "schedule_delete", `{"id":"ID:News"}`, pawl.OutcomeOK, []string{": News"}},
		{alice, "schedule_delete", `{"description_query":"news"}`, pawl.OutcomeError, []string{"No schedule's description"}},
		{t.Context(), "schedule_list", `{}`, pawl.OutcomeError, []string{"did not say whose schedules they are"}},
	} {
		args := step.args
		for name, known := range ids {
			args = strings.ReplaceAll(args, "ID:"+name, known)
		}
		x := pawl.Toolsets{set}.Execute(step.ctx, llm.ToolCall{ID: "c", Name: step.name, Args: json.RawMessage(args)})
		if x.Outcome != step.outcome {
			t.Errorf("%s %s: %s, want %s: %s", step.name, args, x.Outcome, step.outcome, x.Result.Text())
		}
		for _, text := range step.texts {
			if !strings.Contains(x.Result.Text(), text) {
				t.Errorf("%s %s: no %q in %s", step.name, args, text, x.Result.Text())
			}
		}
		if m := id.FindStringSubmatch(x.Result.Text()); m != nil {
			ids[m[2]] = m[1]
		}
	}
}

// open2 opens the store without waiting for the disk, because the tests stop runners and not
// machines.
func open2(path string) (*sqlite.DB, error) {
	return sqlite.Open(path, &sqlite.Options{NoSync: true})
}

// Parts of time, recurrence and day that an update does not mention stay unchanged.
func TestUpdateParts(t *testing.T) {
	alice := store.Scope{User: "alice"}
	for _, row := range []struct{ when, args, want string }{
		{"weekly fri 08:05", `{"day":"monday"}`, "weekly monday 08:05"},
		{"weekly fri 08:05", `{"time":"9:30"}`, "weekly fri 9:30"},
		{"weekly mon,fri 08:05", `{"recurrence":"custom","time":"9:30"}`, "weekly mon,fri 9:30"},
		{"weekly fri 08:05", `{"recurrence":"daily"}`, "daily 08:05"},
		{"weekly fri 08:05", `{"recurrence":"monthly"}`, "monthly 1 08:05"},
		{"monthly 31 or last 08:00", `{"time":"10:00"}`, "monthly 31 or last 10:00"},
		{"monthly 2,3 08:00", `{"day":"last"}`, "monthly last 08:00"},
		{"weekdays 08:00", `{"time":"07:00"}`, "weekdays 07:00"},
		{"weekdays 08:00", `{"day":"sat,sun"}`, "weekly sat,sun 08:00"},
		{"daily 08:00", `{"recurrence":"weekly","day":"tue"}`, "weekly tue 08:00"},
		{"daily 08:00", `{"time":"07:00"}`, "daily 07:00"},
		{"daily 08:00", `{"day":"tue"}`, "error: A daily time has no day"},
		{"0 8 * * 1", `{"time":"07:00"}`, "error: Its times are \"0 8 * * 1\" now"},
		{"0 8 * * 1", `{"time":"07:00","recurrence":"daily"}`, "daily 07:00"},
		{"2026-05-01 08:00", `{"day":"tue"}`, "error: Its times are"},
	} {
		db := open(t, "")
		set := schedule.New(db, &schedule.Options{Scope: &alice, Now: func() time.Time { return now }})
		v := put(t, db, store.Schedule{When: row.when, Description: "d"}, now)
		args := []byte(`{"id":"` + v.ID + `",` + row.args[1:])
		x := pawl.Toolsets{set}.Execute(t.Context(), llm.ToolCall{ID: "c", Name: "schedule_update", Args: args})
		v, err := db.Schedule(t.Context(), alice, v.ID)
		if err != nil {
			t.Fatal(err)
		}
		got := v.When
		if x.Result.IsError {
			got = "error: " + x.Result.Text()
			if v.When != row.when {
				t.Errorf("%s, %s: refused, and changed to %s", row.when, row.args, v.When)
			}
		}
		if got != row.want && !(strings.HasPrefix(row.want, "error: ") && strings.HasPrefix(got, row.want)) {
			t.Errorf("%s, %s: got %s, want %s", row.when, row.args, got, row.want)
		}
	}
}
