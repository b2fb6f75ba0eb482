package hostile_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/pawltest/hostile"
	"github.com/pawl-go/pawl/provider/anthropic"
	"github.com/pawl-go/pawl/provider/gemini"
	"github.com/pawl-go/pawl/provider/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// adapters opens pawl's adapters.
func adapters(api, base string, silence time.Duration) (llm.Model, error) {
	switch api {
	case pawltest.Chat:
		return openai.NewChat("hostile",
			&openai.Options{BaseURL: base, Key: "none-needed", FirstByteTimeout: silence, SilenceTimeout: silence}), nil
	case pawltest.Responses:
		return openai.New("hostile",
			&openai.Options{BaseURL: base, Key: "none-needed", FirstByteTimeout: silence, SilenceTimeout: silence}), nil
	case pawltest.Anthropic:
		return anthropic.New("hostile",
			&anthropic.Options{BaseURL: base, Key: "none-needed", FirstByteTimeout: silence, SilenceTimeout: silence}), nil
	case pawltest.Gemini:
		return gemini.New("hostile",
			&gemini.Options{BaseURL: base, Key: "none-needed", FirstByteTimeout: silence, SilenceTimeout: silence}), nil
	}
	return nil, fmt.Errorf("unknown API %q", api)
}

// pawl meets every behaviour on every wire.
func TestAgent(t *testing.T) {
	soak.Sequential(t)
	rows, err := pawlRows()
	if err != nil {
		t.Fatal(err)
	}
	wantPassed(t, rows)
}

// TestRaces plays the behaviours under the race detector. The goroutines are the same for every
// API: the small size is one API, without the heavy behaviours.
func TestRaces(t *testing.T) {
	rows, err := soak.N(chatRows, pawlRows)()
	if err != nil {
		t.Fatal(err)
	}
	wantPassed(t, rows)
}

// heavy matches the behaviours with large or many messages. One of them takes seconds under the
// race detector and runs no code that the others do not run.
var heavy = regexp.MustCompile("^(args-1mb|args-10mb|args-many-faults|tool-10mb|tools-300|reasoning-long)$")

// pawlRows are the rows of pawl, played once. Few heavy plays run at once: their calls end within
// the timeout of a tool on a busy machine too.
var pawlRows = sync.OnceValues(func() ([]hostile.Row, error) {
	all := hostile.Behaviours()

	// The others mostly wait, so the heavy ones are played meanwhile.
	var rows, others []hostile.Row
	var errHeavy, errOthers error
	var plays sync.WaitGroup
	plays.Go(func() {
		rows, errHeavy = hostile.Play(context.Background(), hostile.Agent(adapters), all,
			&hostile.PlayOptions{Only: heavy, Patient: patient, AtOnce: 2})
	})
	plays.Go(func() {
		others, errOthers = hostile.Play(context.Background(), hostile.Agent(adapters), withoutHeavy(),
			&hostile.PlayOptions{Patient: patient})
	})
	plays.Wait()

	rows = append(rows, others...)
	at := func(id string) int {
		return slices.IndexFunc(all, func(b hostile.Behaviour) bool { return b.ID == id })
	}
	slices.SortFunc(rows, func(a, b hostile.Row) int { return cmp.Compare(at(a.ID), at(b.ID)) })
	return rows, errors.Join(errHeavy, errOthers)
})

// chatRows plays the behaviours that are not heavy on one API.
func chatRows() ([]hostile.Row, error) {
	return hostile.Play(context.Background(), hostile.Agent(adapters), withoutHeavy(),
		&hostile.PlayOptions{APIs: []string{pawltest.Chat}, Patient: patient})
}

func withoutHeavy() []hostile.Behaviour {
	return slices.DeleteFunc(hostile.Behaviours(), func(b hostile.Behaviour) bool { return heavy.MatchString(b.ID) })
}

func wantPassed(t *testing.T, rows []hostile.Row) {
	t.Helper()
	for _, r := range rows {
		for _, s := range r.Scores {
			if len(s.Wrong) > 0 {
				t.Errorf("%s, %s, %s: %v", r.ID, s.API, s.Mode, s.Wrong)
			}
		}
	}
}
