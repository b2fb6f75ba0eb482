package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

const (
	statsAge  = 15 * time.Second // the state of the runs is not read again so soon
	statsTime = 10 * time.Second // limits the time of a read
	statsRuns = 20_000           // limits the runs of a read
)

// stats is the state of all runs that have not ended.
type stats struct {
	mu                              sync.Mutex
	at                              time.Time
	runs                            map[[2]string]int // by agent and state
	up, waits, unknown, stuck, idle float64
}

// metrics handles GET /metrics.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	plain := r.Clone(r.Context())
	plain.Header = http.Header{} // neither compressed nor in another format: lines follow
	s.o.Metrics.ServeHTTP(w, plain)
	if r.Method != http.MethodGet {
		return
	}
	h := s.Hub
	c := &s.stats
	working := 0
	h.Mu.Lock()
	for _, n := range h.Working {
		working += n
	}
	waiting := h.Queue.Total
	h.Mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read(r.Context(), s)
	var out []byte
	for _, m := range []struct {
		name, help string
		value      float64
	}{
		{"runs_working", "Runs that this process executes.", float64(working)},
		{"runs_queued", "Runs that wait for room in this process.", float64(waiting)},
		{"runs_limit", "Runs that this process may execute at once.", float64(s.O.MaxRuns)},
		{"leases_lost_total", "Runs that another process has taken over.", float64(h.Lost.Load())},
		{"journal_errors_total", "Writes that failed, also if repeated.", float64(h.Unstored.Load())},
		{"journal_up", "1 if the journal could be read.", c.up},
		{"questions_open", "Calls that wait for a person.", c.waits},
		{"question_age_seconds", "Time since the last change of the run that waits longest.", c.idle},
		{"effects_unknown", "Waiting calls of which it is unknown whether they happened.", c.unknown},
		{"runs_stuck", "Open runs that no process has worked on for two minutes.", c.stuck},
	} {
		kind := "gauge"
		if strings.HasSuffix(m.name, "_total") {
			kind = "counter"
		}
		out = fmt.Appendf(out, "# HELP pawl_%s %s\n# TYPE pawl_%[1]s %[3]s\npawl_%[1]s %[4]v\n",
			m.name, m.help, kind, m.value)
	}
	out = append(out, "# HELP pawl_runs Durable runs that have not ended.\n# TYPE pawl_runs gauge\n"...)
	for _, of := range slices.SortedFunc(maps.Keys(c.runs), func(a, b [2]string) int {
		return slices.Compare(a[:], b[:])
	}) {
		out = fmt.Appendf(out, "pawl_runs{agent=%q,state=%q} %d\n", of[0], of[1], c.runs[of])
	}
	_, _ = w.Write(out) // the client may have disconnected
}

// read reads the journal, at most once in statsAge. The caller holds mu.
func (c *stats) read(ctx context.Context, s *Server) {
	now := s.O.Now()
	if c.runs != nil && now.Sub(c.at) < statsAge {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statsTime)
	defer cancel()
	c.at = now
	c.runs = map[[2]string]int{}
	c.up = 1
	c.waits = 0
	c.unknown = 0
	c.stuck = 0
	c.idle = 0
	all := 0
	for r, err := range s.O.Journal.UnendedRuns(ctx) {
		if err != nil {
			c.up = 0
		}
		all++
		if err != nil || all > statsRuns {
			return
		}
		var sum durable.Summary
		_ = json.Unmarshal(r.Summary, &sum) // package durable wrote it; a run that works has none
		state := r.State
		agent := runs.BaseName(r.Agent)
		idle := now.Sub(r.Updated)
		if s.Newest(agent) == nil {
			agent = "other"
		}
		switch {
		case state == store.JournalOpen && r.Owner != "" && r.Until.After(now):
			state = "running"
		case r.Queued():
			state = runs.Queued
		case state == store.JournalOpen && idle > 2*time.Minute:
			c.stuck++
		case state == store.JournalWaiting:
			c.idle, c.waits = max(c.idle, idle.Seconds()), c.waits+float64(sum.Pending)
			c.unknown += float64(sum.Unknown)
		case state == store.JournalFailed:
			state = cmp.Or(sum.Code, state)
		}
		c.runs[[2]string{agent, state}]++
	}
}
