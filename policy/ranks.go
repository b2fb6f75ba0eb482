package policy

// The ranks of the policies: the smaller, the further out. See Middleware.Rank.
const (
	rankGuard = -100 // it sees what the agent receives and returns, with the additions of others

	// After the approval: a result from the cache needs neither a turn nor a healthy tool, and a
	// call that the breaker stops takes no turn from others.
	rankCache   = 10
	rankBreaker = 20
	rankRate    = 30

	// Within all that changes or counts requests, which then acts for each model, and around the
	// telemetry, which is about the requests that are sent.
	rankFallback = 100
)
