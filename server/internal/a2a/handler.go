// Package a2a serves agents by the A2A protocol.
package a2a

import (
	"github.com/pawl-go/pawl/server/internal/conversation"
	"github.com/pawl-go/pawl/server/internal/web"
)

// A2A offers the agents to other agents by the A2A protocol, version 1.0.
type A2A struct {
	// URL is the address of the server for clients.
	URL string
}

// Handler serves the protocol.
type Handler struct {
	*web.Server
	Options A2A
}

type call struct{ conversation.Call }
