package notify_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/notify"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// waiting returns a journal with a run that waits for an answer.
func waiting(t *testing.T) (*store.MemoryJournal, func(context.Context, string) ([]pawl.PendingCall, error)) {
	t.Helper()
	journal := new(store.MemoryJournal)
	head := store.JournalRun{ID: "r1", Agent: "clerk", State: store.JournalWaiting, Task: "Pay <@U1>."}
	if _, err := journal.BeginJournal(t.Context(), store.Scope{User: "ann"}, head, "", time.Time{}); err != nil {
		t.Fatal(err)
	}
	call := llm.ToolCall{ID: "c1", Name: "pay", Args: []byte(`{"n":1}`)}
	return journal, func(context.Context, string) ([]pawl.PendingCall, error) {
		return []pawl.PendingCall{{Key: "run/1/0", Call: call, Digest: "d"}}, nil
	}
}

// A process that was killed during an attempt leaves its mark. A receiver that recognises the event
// gets it again, with the same ID; any other does not, and the error says so.
func TestInterrupted(t *testing.T) {
	for _, idempotent := range []bool{true, false} {
		t.Run(fmt.Sprintf("idempotent=%t", idempotent), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				journal, pending := waiting(t)
				var ids, reports []string
				run := func(during time.Duration, send func(context.Context, *notify.Event) error) {
					w := notify.New(journal, pending, map[string][]notify.Channel{"clerk": {{
						Name:       "0 test",
						Kinds:      []notify.Kind{notify.Waits},
						Idempotent: idempotent,
						Send:       send,
					}}})
					w.Report = func(err error) { reports = append(reports, err.Error()) }
					ctx, cancel := context.WithTimeout(t.Context(), during)
					defer cancel()
					w.Run(ctx)
				}

				// The first process is killed while it sends: nothing of it is stored afterwards.
				dead := make(chan struct{})
				go run(time.Hour, func(_ context.Context, e *notify.Event) error {
					ids = append(ids, e.ID)
					<-dead
					return errors.New("dead")
				})
				synctest.Wait()
				run(10*time.Minute, func(_ context.Context, e *notify.Event) error {
					ids = append(ids, e.ID)
					return nil
				})

				want := 1
				if idempotent {
					want = 2
				}
				if len(ids) != want || ids[0] != ids[len(ids)-1] {
					t.Errorf("the event was sent with the IDs %v; want %d equal ones", ids, want)
				}
				reported := strings.Contains(strings.Join(reports, "\n"), "unknown whether the message has arrived")
				if reported == idempotent {
					t.Errorf("reports: %v", reports)
				}
				close(dead)
				synctest.Wait()
				time.Sleep(time.Hour) // the first process ends
			})
		})
	}
}

// The end of a run is sent until it reaches the receiver, also when the Watcher ends. A run that
// has stopped without being over has no end.
func TestEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal := new(store.MemoryJournal)
		for id, state := range map[string]string{"over": store.JournalOver, "failed": store.JournalFailed} {
			head := store.JournalRun{ID: id, Agent: "clerk", State: state, Task: "Pay."}
			if _, err := journal.BeginJournal(t.Context(), store.Scope{}, head, "", time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		var bodies []string
		tries := 0
		w := notify.New(journal, nil, map[string][]notify.Channel{"clerk": {{
			Name:  "0 test",
			Kinds: []notify.Kind{notify.Ended},
			Send: func(_ context.Context, e *notify.Event) error {
				tries++
				if tries == 1 {
					return errors.New("no route")
				}
				bodies = append(bodies, e.Body())
				return nil
			},
		}}})
		observe := func(id string) {
			w.Observe(store.Scope{}, id, "clerk", &pawl.Result{Stop: pawl.StopAnswer})
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		observe("over")
		observe("failed")
		w.Run(ctx)
		if want := []string{"Run: over\nTask: Pay."}; !slices.Equal(bodies, want) {
			t.Errorf("received %q; want %q", bodies, want)
		}

		// The last runs end while the server ends. This one was deleted at its end.
		observe("deleted")
		w.Run(ctx)
		if len(bodies) != 2 || bodies[1] != "Run: deleted" {
			t.Errorf("received %q; want the end of the deleted run, too", bodies)
		}
	})
}

// A program that is killed during an attempt may have sent the message.
func TestKilledProgram(t *testing.T) {
	mail := notify.Email{To: []string{"a@b"}, From: "a@b", Command: []string{"sh", "-c", "cat > /dev/null; sleep 60"}}
	c, _, err := (&notify.Setting{Email: &mail}).Open(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.Send(ctx, &notify.Event{}); !errors.Is(err, notify.ErrUnknown) {
		t.Errorf("Send: %v; want ErrUnknown", err)
	}
}

// An attempt that did not reach the receiver is repeated, at most five times.
func TestUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal, pending := waiting(t)
		tries := 0
		w := notify.New(journal, pending, map[string][]notify.Channel{"clerk": {{
			Name:  "0 test",
			Kinds: []notify.Kind{notify.Waits},
			Send: func(context.Context, *notify.Event) error {
				tries++
				return errors.New("no route")
			},
		}}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		w.Run(ctx)
		if tries != 5 {
			t.Errorf("%d attempts; want 5", tries)
		}
	})
}

// A setting with a mistake has an error that names the key.
func TestSettings(t *testing.T) {
	env := func(name string) string {
		return map[string]string{"SET": "https://hooks.example.com/x", "CUT": "whsec_a"}[name]
	}
	for _, test := range []struct {
		setting notify.Setting
		want    string // the key; empty means no mistake
	}{
		{notify.Setting{}, ""},
		{notify.Setting{Webhook: &notify.Webhook{URL: "example", SecretEnv: "SET"}}, "webhook.url"},
		{notify.Setting{Webhook: &notify.Webhook{URL: "https://a.example", SecretEnv: "UNSET"}}, "webhook.secret_env"},
		{notify.Setting{Webhook: &notify.Webhook{URL: "https://a.example", SecretEnv: "CUT"}}, "webhook.secret_env"},
		{notify.Setting{Slack: &notify.Slack{WebhookEnv: "SET", SigningEnv: "SET"}}, "slack"},
		{notify.Setting{Email: &notify.Email{To: []string{"a@b\r\nBcc: c@d"}, From: "a@b", SMTP: "h:1"}}, "email.to"},
		{notify.Setting{Email: &notify.Email{To: []string{"a@b"}, From: "a@b"}}, "email"},
		{notify.Setting{Email: &notify.Email{To: []string{"a@b"}, From: "a@b", SMTP: "host"}}, "email.smtp"},
		{notify.Setting{Desktop: true, Slack: &notify.Slack{WebhookEnv: "SET"}}, "desktop"},
	} {
		_, _, err := test.setting.Open(0, env)
		var wrong *notify.SettingError
		if !errors.As(err, &wrong) || wrong.Key != test.want {
			t.Errorf("%+v: %v; want a mistake of %q", test.setting, err, test.want)
		}
	}
	if _, _, err := (&notify.Setting{Slack: &notify.Slack{WebhookEnv: "SET"}}).Open(0, env); err != nil {
		t.Error(err)
	}
}
