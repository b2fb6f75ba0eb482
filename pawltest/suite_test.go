package pawltest_test

import (
	"context"
	"fmt"
	"iter"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestScriptPassesTheSuite(t *testing.T) {
	pawltest.TestModel(t, func(_ *testing.T, behind llm.Model) llm.Model { return behind })
}

// A script has no wire, so the suite compares the Model with itself.
func TestScoreOverAScript(t *testing.T) {
	score := pawltest.ScoreModel(t, func(_ *testing.T, behind llm.Model) llm.Model { return behind })
	if len(score.Survived)+len(score.LeftOut) > 0 {
		t.Errorf("%s", score)
	}
}

// recorder replaces *testing.T where a suite is expected to fail.
type recorder struct {
	t   *testing.T
	mu  *sync.Mutex
	log *[]string
}

func newRecorder(t *testing.T) recorder { return recorder{t, new(sync.Mutex), new([]string)} }

func (r recorder) Helper()                  {}
func (r recorder) Logf(string, ...any)      {}
func (r recorder) Cleanup(f func())         { r.t.Cleanup(f) }
func (r recorder) Context() context.Context { return r.t.Context() }
func (r recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*r.log = append(*r.log, fmt.Sprintf(format, args...))
}
func (r recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}
func (r recorder) Run(_ string, f func(recorder)) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return true
}

// mapped changes the deltas of a model.
type mapped struct {
	llm.Model
	change func(req *llm.Request, yield func(llm.Delta, error) bool) func(llm.Delta, error) bool
}

func (m mapped) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) { m.Model.Stream(ctx, req)(m.change(req, yield)) }
}

// The negative control: a model with a fault does not pass.
func TestFaultyModelsFailTheSuite(t *testing.T) {
	type yielder = func(llm.Delta, error) bool
	for name, test := range map[string]struct {
		change func(req *llm.Request, yield yielder) yielder
		want   string
	}{
		"loses a fragment": {func(_ *llm.Request, yield yielder) yielder {
			n := 0
			return func(d llm.Delta, err error) bool {
				if n++; n == 3 && d.Finish == "" && !d.Done && err == nil {
					return true
				}
				return yield(d, err)
			}
		}, "want:"},
		"finishes twice": {func(_ *llm.Request, yield yielder) yielder {
			return func(d llm.Delta, err error) bool {
				if d.Finish != "" && !yield(d, err) {
					return false
				}
				return yield(d, err)
			}
		}, "after the one with Finish"},
		"never finishes": {func(_ *llm.Request, yield yielder) yielder {
			return func(d llm.Delta, err error) bool {
				d.Finish = ""
				return yield(d, err)
			}
		}, "without a delta with Finish"},
		"skips a part": {func(_ *llm.Request, yield yielder) yielder {
			return func(d llm.Delta, err error) bool {
				if d.Part != nil {
					d.Index++
				}
				return yield(d, err)
			}
		}, "was next"},
		"swallows errors": {func(_ *llm.Request, yield yielder) yielder {
			return func(d llm.Delta, err error) bool {
				if err != nil {
					return yield(llm.Delta{Finish: llm.FinishReasonStop}, nil)
				}
				return yield(d, err)
			}
		}, "a cancelled reply ended without an error"},
		"differs when whole": {func(req *llm.Request, yield yielder) yielder {
			return func(d llm.Delta, err error) bool {
				if req.Whole && d.Usage != nil {
					d.Usage = &llm.Usage{Input: 1}
				}
				return yield(d, err)
			}
		}, "differ"},
		"changes the request": {func(req *llm.Request, yield yielder) yielder {
			req.Messages = append(req.Messages, llm.User("more"))
			return yield
		}, "request was changed"},
		"wrong finish": {func(_ *llm.Request, yield yielder) yielder {
			return func(d llm.Delta, err error) bool {
				if d.Finish == llm.FinishReasonLength {
					d.Finish = llm.FinishReasonStop
				}
				return yield(d, err)
			}
		}, "finish"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(t)
			pawltest.TestModel(r, func(_ recorder, behind llm.Model) llm.Model { return mapped{behind, test.change} })
			if len(*r.log) == 0 {
				t.Fatal("the suite found nothing wrong")
			}
			if all := strings.Join(*r.log, "\n"); !strings.Contains(all, test.want) {
				t.Errorf("the suite says nothing of %q:\n%s", test.want, all)
			}
		})
	}
}

// A program with a Simulator contains no test framework.
func TestTestingIsNotImported(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, "github.com/pawl-go/pawl/pawltest") {
		t.Fatalf("go list answered %q", out)
	}
	for _, bad := range []string{"testing", "net/http/httptest", "github.com/pawl-go/pawl/provider/openai"} {
		if slices.Contains(deps, bad) {
			t.Errorf("pawltest imports %s", bad)
		}
	}
}
