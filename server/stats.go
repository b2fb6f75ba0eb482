package server

// stats.go: the state of the runs as metrics, after the metrics of Options.Metrics.

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

	stuckAfter = 2 * time.Minute
)

// stats is the state of all runs that have not ended.
type stats struct {
	mu      sync.Mutex
	at      time.Time
	runs    map[agentState]int
	up      float64       // 1 if the journal could be read
	waits   int           // pending calls
	unknown int           // pending calls that may have happened
	stuck   int           // open runs that no process has worked on for stuckAfter
	idle    time.Duration // since the last change of the run that waits longest
}

// agentState is what runs are counted by.
type agentState struct{ agent, state string }

func (a agentState) compare(b agentState) int {
	return cmp.Or(cmp.Compare(a.agent, b.agent), cmp.Compare(a.state, b.state))
}

// metric is a line of the page.
type metric struct {
	name  string
	help  string
	value float64
}

// metrics handles GET /metrics.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	plain := r.Clone(r.Context())
	plain.Header = http.Header{} // neither compressed nor in another format: lines follow
	s.options.Metrics.ServeHTTP(w, plain)
	if r.Method != http.MethodGet {
		return
	}

	now := s.runs.Counts()
	c := &s.stats
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read(r.Context(), s)
	list := []metric{
		{"runs_working", "Runs that this process executes.", float64(now.Working)},
		{"runs_queued", "Runs that wait for room in this process.", float64(now.Queued)},
		{"runs_limit", "Runs that this process may execute at once.", float64(s.options.Limits.Runs)},
		{"models_away", "Models whose provider is away: their requests are held, but for probes.", float64(now.Away)},
		{"leases_lost_total", "Runs that another process has taken over.", float64(now.LeasesLost)},
		{"journal_errors_total", "Writes that failed, also if repeated.", float64(now.Unstored)},
		{"journal_up", "1 if the journal could be read.", c.up},
		{"questions_open", "Calls that wait for a person.", float64(c.waits)},
		{"question_age_seconds", "Time since the last change of the run that waits longest.", c.idle.Seconds()},
		{"effects_unknown", "Waiting calls of which it is unknown whether they happened.", float64(c.unknown)},
		{"runs_stuck", "Open runs that no process has worked on for two minutes.", float64(c.stuck)},
	}
	_, _ = w.Write(c.page(list)) // the client may have disconnected
}

// page returns the metrics in the form of Prometheus.
func (c *stats) page(list []metric) (out []byte) {
	for _, m := range list {
		kind := "gauge"
		if strings.HasSuffix(m.name, "_total") {
			kind = "counter"
		}
		out = fmt.Appendf(out, "# HELP pawl_%s %s\n# TYPE pawl_%[1]s %[3]s\npawl_%[1]s %[4]v\n",
			m.name, m.help, kind, m.value)
	}
	out = append(out, "# HELP pawl_runs Durable runs that have not ended.\n# TYPE pawl_runs gauge\n"...)
	for _, of := range slices.SortedFunc(maps.Keys(c.runs), agentState.compare) {
		out = fmt.Appendf(out, "pawl_runs{agent=%q,state=%q} %d\n", of.agent, of.state, c.runs[of])
	}
	return out
}

// read reads the journal, at most once in statsAge. The caller holds mu.
func (c *stats) read(ctx context.Context, s *Server) {
	now := s.options.Now()
	if c.runs != nil && now.Sub(c.at) < statsAge {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statsTime)
	defer cancel()

	// What a failed read leaves unread counts as nothing; journal_up says so.
	c.at = now
	c.up = 1
	c.reset()

	n := 0
	for r, err := range s.journal.UnendedRuns(ctx) {
		if err != nil {
			c.up = 0
			return
		}
		n++
		if n > statsRuns {
			return
		}

		agent := runs.BaseName(r.Agent)
		if !s.runs.Serves(agent) {
			agent = "other"
		}
		c.runs[agentState{agent, c.count(r, now)}]++
	}
}

// reset sets the numbers of runs to 0. The caller holds mu.
func (c *stats) reset() {
	c.runs = map[agentState]int{}
	c.waits = 0
	c.unknown = 0
	c.stuck = 0
	c.idle = 0
}

// count adds a run to the numbers, and returns its state. The caller holds mu.
func (c *stats) count(r store.JournalRun, now time.Time) string {
	var sum durable.Summary
	_ = json.Unmarshal(r.Summary, &sum) // package durable wrote it; a run that works has none
	idle := now.Sub(r.Updated)
	open := r.State == store.JournalOpen
	isDue := !r.DueFrom().After(now)
	switch {
	case open && r.Owner != "" && r.Until.After(now):
		return runs.StateRunning
	case r.Queued():
		return runs.StateQueued
	case open && sum.Waiting != nil:
		return runs.NoticeOutage
	case open && isDue && idle > stuckAfter:
		c.stuck++
	case r.State == store.JournalWaiting:
		c.idle = max(c.idle, idle)
		c.waits += sum.Pending
		c.unknown += sum.Unknown
	case r.State == store.JournalFailed:
		return cmp.Or(sum.Code, r.State)
	}
	return r.State
}
