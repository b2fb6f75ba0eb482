package assemble

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
)

// Four calls are open: one needs an approval, one a result of the caller, one may have happened,
// and one was handed back to the caller.
func fourOpen() *pawl.Result {
	call := func(id string) llm.ToolCall { return llm.ToolCall{ID: id, Name: id, Args: []byte(`{}`)} }
	return &pawl.Result{Stop: pawl.StopPending,
		Messages: []llm.Message{llm.User("go"), llm.Assistant(call("write"), call("ask"), call("cut"),
			call("back"))},
		Pending: []pawl.PendingCall{
			{Key: "run/1/0", Call: call("write"), Outcome: pawl.OutcomePending, Digest: "w"},
			{Key: "run/1/1", Call: call("ask"), Outcome: pawl.OutcomePending, Digest: "a", Passive: true},
			{Key: "run/1/2", Call: call("cut"), Outcome: pawl.OutcomeUnknown, Digest: "c"},
		}}
}

func TestSettle(t *testing.T) {
	for _, test := range []struct {
		name  string
		flags SettleFlags
		said  string // approved keys with +, denied with -, results by call id
		waits string
		err   string
	}{
		{"nothing is said", SettleFlags{}, "", "run/1/0 (write), run/1/1 (ask), run/1/2 (cut)", ""},
		{"by key", SettleFlags{Approve: []string{"run/1/0"}}, "+run/1/0", "run/1/1 (ask), run/1/2 (cut)", ""},
		{"by id", SettleFlags{Deny: []string{"write=no"}}, "-run/1/0:no", "run/1/1 (ask), run/1/2 (cut)", ""},
		{"a yes to all runs nothing again", SettleFlags{Approve: []string{"all"}}, "+run/1/0",
			"run/1/1 (ask), run/1/2 (cut)", ""},
		{"unless it is named", SettleFlags{Approve: []string{"run/1/2"}}, "+run/1/2",
			"run/1/0 (write), run/1/1 (ask)", ""},
		{"all is the rest", SettleFlags{Approve: []string{"write"}, Deny: []string{"all=stop"},
			Answer: map[string]string{"ask": "blue"}},
			"ask=blue back=Denied: stop +run/1/0 -run/1/2:stop", "", ""},
		{"all without a reason", SettleFlags{Deny: []string{"all"}}, "back=Denied -run/1/0: -run/1/1: -run/1/2:", "",
			""},
		{"twice", SettleFlags{Approve: []string{"run/1/0"}, Answer: map[string]string{"write": "x"}}, "", "",
			"--answer write: --approve already settles this call"},
		{"no such call", SettleFlags{Answer: map[string]string{"run/1/9": "x"}}, "", "",
			"--answer run/1/9: no open call has this key"},
		{"nothing to run", SettleFlags{Approve: []string{"ask"}}, "", "", "--approve ask: ask is a passive tool, which pawl does not execute"},
		{"handed back", SettleFlags{Approve: []string{"back"}}, "", "", "--approve back: the call was returned to the caller"},
		{"nothing left", SettleFlags{Approve: []string{"all"}, Deny: []string{"write"}}, "", "",
			"--approve all: no open call is left"},
	} {
		t.Run(test.name, func(t *testing.T) {
			msgs, waiting, err := test.flags.Settle(fourOpen())
			if test.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), test.err) {
					t.Fatalf("got error %v, want %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, m := range msgs {
				for _, p := range m.Parts {
					switch p := p.(type) {
					case llm.ToolResult:
						said = append(said, p.CallID+"="+p.Text())
					case llm.Decision:
						if p.Approve {
							said = append(said, "+"+string(p.Key))
						} else {
							said = append(said, "-"+string(p.Key)+":"+p.Reason)
						}
					}
				}
			}
			if diff := cmp.Diff(strings.Join(said, " "), test.said); diff != "" {
				t.Errorf("got -, want +\n%s", diff)
			}
			if diff := cmp.Diff(Keys(waiting), test.waits); diff != "" {
				t.Errorf("still waiting: got -, want +\n%s", diff)
			}
		})
	}
}

// must fails the test if err is not nil.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The exit status of a run follows the class of the stop reason.
func TestEnded(t *testing.T) {
	want := map[pawl.StopClass]string{
		pawl.ClassAnswered:  "0",
		pawl.ClassWaiting:   fmt.Sprint(cli.StatusPending),
		pawl.ClassLimited:   fmt.Sprint(cli.StatusLimit),
		pawl.ClassCancelled: fmt.Sprint(cli.StatusInterrupted),
		pawl.ClassFailed:    fmt.Sprint(cli.StatusFailed),
	}
	runtest.Stops(t, want, nil, func(res *pawl.Result) string {
		err := Ended(res, nil, "", "")
		if err == nil {
			return "0"
		}
		f, _ := errors.AsType[*cli.Failure](err)
		return fmt.Sprint(f.Status)
	})
}
