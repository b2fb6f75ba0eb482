package hostile_test

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/pawltest/hostile"
	"github.com/pawl-go/pawl/pawltest/hostile/internal/plain"
)

// byHand is the control as a Runtime. A panic in one of its goroutines would end the process, so it
// ends the play instead.
func byHand(ctx context.Context, job *hostile.Job) hostile.Report {
	var mu sync.Mutex
	var died any
	loop := &plain.Loop{URL: job.Base, Stream: job.Stream, Choice: job.Behaviour.Setup.Choice}
	for _, t := range job.Tools {
		// so that the page does not depend on the scheduler
		loop.Backward = loop.Backward || t.Serial != ""
		loop.Tools = append(loop.Tools, plain.Tool{Name: t.Name, Description: t.Description, Input: t.Input,
			Run: func(ctx context.Context, args []byte) (string, error) {
				defer func() {
					if v := recover(); v != nil {
						mu.Lock()
						died = v
						mu.Unlock()
					}
				}()
				return t.Call(ctx, job.Bench, args)
			}})
	}
	_, err := loop.Run(ctx, job.Task)
	if died != nil {
		panic(died)
	}
	r := hostile.Report{Stop: pawl.StopAnswer, Err: err}
	if err != nil {
		r.Stop = pawl.StopFailed
	}
	return r
}

// hanging lists the behaviours that the control never ends. They are abandoned after one second in
// `make test` and after twenty in `make soak`. All others may take minutes, so that no row depends
// on the speed of the machine.
var hanging = []string{
	"cancelled-alone", "cancelled-in-batch", "endless-arguments", "endless-calls", "endless-text", "shutdown-resumed",
	"silence", "stream-silence", "tool-deaf", "tool-deaf-beside-ok", "tool-hangs", "tool-hangs-beside-ok",
}

// patient is the time for a play that must end by itself: enough for any machine.
const patient = 12 * time.Minute

// controlRows are the rows of the control, played once.
var controlRows = sync.OnceValues(func() ([]hostile.Row, error) {
	defer http.DefaultClient.CloseIdleConnections()
	// slow enough to look like a hang
	all := slices.DeleteFunc(hostile.Behaviours(), func(b hostile.Behaviour) bool { return b.ID == "args-10mb" })
	only := regexp.MustCompile("^(" + strings.Join(hanging, "|") + ")$")
	hung, err := hostile.Play(context.Background(), byHand, all, &hostile.PlayOptions{
		APIs: []string{pawltest.Chat}, Only: only, Patient: soak.N(time.Second, 20*time.Second),
	})
	if err != nil {
		return nil, err
	}
	rest := slices.DeleteFunc(slices.Clone(all), func(b hostile.Behaviour) bool { return only.MatchString(b.ID) })
	rows, err := hostile.Play(context.Background(), byHand, rest,
		&hostile.PlayOptions{APIs: []string{pawltest.Chat}, Patient: patient})
	return append(rows, hung...), err // Page finds them by id
})

// The control hangs in the rows of hanging, and in no other.
func TestControlHangs(t *testing.T) {
	soak.Sequential(t)
	rows, err := controlRows()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		if strings.HasSuffix(r.Why(), ": it hangs") {
			got = append(got, r.ID)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(got, hanging); diff != "" {
		t.Errorf("the control hangs in, got -, want +\n%s", diff)
	}
}

// The negative control of the kit: a hand-written loop fails the rows that loops in use fail, and
// passes rows without special demands.
func TestControl(t *testing.T) {
	soak.Sequential(t)
	rows, err := controlRows()
	if err != nil {
		t.Fatal(err)
	}
	passed := map[string]string{}
	for i := range rows {
		passed[rows[i].ID] = rows[i].Why()
	}
	for _, id := range []string{
		// Table 1.0.
		"unknown-tool", "tool-error", "tool-error-beside-ok", "args-enum", "args-missing-required", "args-cut", "finish-length-valid", "tool-panics",
		"calls-300", "call-never-stops", // the same
		"args-null", "args-echoed", "args-double-encoded", "choice-forced", "choice-none-calls", "id-duplicate", "id-missing", "index-same", "stream-cut-before-end", "silence",
		"http-500-twice", "http-429", "tool-hangs", "tool-10mb", "denied", "read-after-write", "cancelled-alone", "endless-text",
	} {
		if why, ok := passed[id]; !ok || why == "" {
			t.Errorf("the control passes %s, and must not: the row proves nothing", id)
		}
	}
	for _, id := range []string{"calls-order", "calls-with-text", "calls-twice-in-reply", "args-unicode-escapes", "args-empty-allowed", "stream-single-bytes", "stream-comments", "tool-says-error", "tool-silent", "choice-none-text", "slow-first-byte"} {
		if why := passed[id]; why != "" {
			t.Errorf("the control fails %s, which any loop passes: %s", id, why)
		}
	}
}
