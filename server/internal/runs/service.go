// Package runs executes, queues, watches, resumes and answers the runs of a server. It knows no
// protocol and no HTTP.
package runs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/server/internal/access"
	"github.com/pawl-go/pawl/store"
)

// ErrElsewhere ends the events of a run that another process continues.
var ErrElsewhere = errors.New("another process continues the run")

// Options are the parts of a Service.
type Options struct {
	Agents                         []*pawl.Agent
	Journal                        store.Journal
	Memories                       store.Memories
	Secrets                        *redact.Redactor
	MaxRuns, Queue, TenantRuns     int
	Fragments, Idle                int
	Wait, Beat, Recover, Reconnect time.Duration
	About                          map[string]About
	OnDisconnect                   map[string]string
	HideReasoning, ShowCalls       bool
	Around                         func(id, agent string, r pawl.Runner) pawl.Runner
	Log                            *slog.Logger
	Now                            func() time.Time
	MaxStreams                     int
	Authenticate                   bool
}

// Service executes runs.
type Service struct {
	O       Options
	Engine  *durable.Engine
	Agents  map[string]*pawl.Agent
	Hub     *Hub
	Tenants int
	Started time.Time
}

// Caller is who acts on runs.
type Caller struct {
	S       *Service
	Client  *access.Client
	Context context.Context
	RunID   string
}
