package temporal

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/durabletest"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
)

// scheduled makes a run whose questions get random answers before the right one: repeated, with
// other arguments, for other questions. It returns how the run breaks R9. Empty means that it does
// not. deaf means that answers do not arrive, for the control.
func scheduled(ctx context.Context, seed uint64, deaf bool) string {
	r, c, world := rand.New(rand.NewPCG(seed, 13)), durabletest.Random(seed), new(durabletest.Memory)
	e, err := newEnv(ctx, fmt.Sprintf("schedule-%d", seed), c.Agent(world))
	if err != nil {
		return err.Error()
	}
	var asked []pawl.PendingCall
	why := ""
	e.tick = func() error {
		s, err := e.state()
		switch {
		case err != nil || !s.Waits || deaf:
			return err
		case len(s.Pending) == 0:
			why = "it waits, and no question is open"
			return fmt.Errorf("%s", why)
		}
		asked = append(asked, s.Pending...)
		q := s.Pending[r.IntN(len(s.Pending))]
		if r.IntN(4) == 0 {
			q = asked[r.IntN(len(asked))]
		}
		answers, err := durabletest.Answers(ctx, world, []pawl.PendingCall{q})
		if err != nil {
			return err
		}
		right := answers[0].Parts[0].(llm.Decision)
		ds := []llm.Decision{right}
		switch kind := r.IntN(12); {
		case kind == 0:
			ds = append(ds, right)
		case kind == 1:
			ds[0].Digest = strings.Repeat("0", len(right.Digest))
		case kind == 2:
			ds[0].Key += "0"
		case kind <= 4 && !q.Passive && q.Outcome != pawl.OutcomeUnknown:
			ds[0] = q.Edit("somebody", json.RawMessage([]string{`{"n":7}`, `{"n":"seven"}`}[kind-3]))
		}
		for i, d := range ds {
			e.updateThen(updateDecide, fmt.Sprintf("%d-%d", e.ticks, i), []llm.Decision{d}, func(error) {})
		}
		return nil
	}
	out, err := e.run(input{Messages: c.Messages()})
	switch {
	case why != "":
		return why
	case err != nil:
		return err.Error()
	case out.Result.Stop != pawl.StopAnswer:
		return fmt.Sprintf("it stopped with %s: %s", out.Result.Stop, out.Error)
	}
	n := map[llm.Key]int{}
	for _, d := range world.All() {
		if n[d.Place]++; d.Effect == pawl.EffectWrite && n[d.Place] > 1 {
			return fmt.Sprintf("%s, a write of %s, happened twice", d.Place, d.Tool)
		}
	}
	return ""
}

// A run reaches its end with any answers to its questions. TestKill and TestServerKilled kill
// workers and the cluster.
func TestSchedules(t *testing.T) {
	soak.Sequential(t)
	n := soak.N(10, 100)
	for seed := range uint64(n) {
		if why := scheduled(t.Context(), seed, false); why != "" {
			t.Errorf("seed %d: %s", seed, why)
		}
	}
	for seed := range uint64(20) { // the control: the first run with a question waits for ever
		if why := scheduled(t.Context(), seed, true); strings.Contains(why, "waits for ever") {
			return
		}
	}
	t.Error("no run without answers is found")
}
