package record

// failure.go: Failure, the usage of requests without a reply.

import "github.com/pawl-go/pawl/llm"

// Failure is the usage of requests that failed or were cancelled, and the last error.
type Failure struct {
	Requests int       `json:"requests"`
	Usage    llm.Usage `json:"usage"`
	Error    string    `json:"error"`
}

// With returns f with the later requests g.
func (f Failure) With(g Failure) Failure {
	f.Requests += g.Requests
	f.Error = g.Error
	f.Usage.Add(g.Usage)
	return f
}
