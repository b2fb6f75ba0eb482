package server

import (
	"io"

	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/a2a"
	"github.com/pawl-go/pawl/server/internal/access"
	"github.com/pawl-go/pawl/server/internal/runs"
)

type (
	Error      = api.Error
	Start      = api.Start
	Run        = api.Run
	Runs       = api.Runs
	Verdict    = api.Verdict
	CallResult = api.CallResult
	Token      = access.Token
	Scope      = access.Scope
	About      = runs.About
	A2A        = a2a.A2A
)

const (
	ScopeRead   = access.ScopeRead
	ScopeRun    = access.ScopeRun
	ScopeDecide = access.ScopeDecide
	ScopeTools  = access.ScopeTools
	ScopeAll    = access.ScopeAll
)

// ReadTokens parses a JSON list of Tokens.
func ReadTokens(r io.Reader) ([]Token, error) { return access.ReadTokens(r) }
