// Package front has what the protocols of front ends share: a conversation is a chain of runs.
package conversation

import "github.com/pawl-go/pawl/server/internal/web"

// Call is a request of a front end.
type Call struct{ *web.Call }
