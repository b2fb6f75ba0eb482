package core_test

import (
	"errors"
	"flag"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl/internal/test/runtest"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// TestMain fails if a goroutine remains: the code that starts a goroutine waits for it.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// root is the folder of the module.
const root = "../../.."

const ms = time.Millisecond

var errShutdown = errors.New("the machine goes down")

// The root's tests share these.
type (
	modelFunc = runtest.ModelFunc
	written   = runtest.Written
	fataler   = runtest.Fataler
)

var (
	answer      = runtest.Answer
	call        = runtest.Call
	caller      = runtest.Caller
	collect     = runtest.Collect
	composes    = runtest.Composes
	does        = runtest.Does
	execute     = runtest.Execute
	jsonOf      = runtest.JSONOf
	lasting     = runtest.Lasting
	mustBeValid = runtest.MustBeValid
	named       = runtest.Named
	noInternals = runtest.NoInternals
	one         = runtest.One
	outcomes    = runtest.Outcomes
	passive     = runtest.Passive
	policies    = runtest.Policies
	reader      = runtest.Reader
	roundTrip   = runtest.RoundTrip
	sameData    = runtest.SameData
	sameReply   = runtest.SameReply
	say         = runtest.Transcript
	says        = runtest.Says
	slowly      = runtest.Slowly
	step        = runtest.Step
	text        = runtest.Text
	together    = runtest.Together
	valid       = runtest.Valid
	ways        = runtest.Ways
)
