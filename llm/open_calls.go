package llm

// open_calls.go: finds the calls of a conversation that have no result yet.

// lastReply returns the index of the last reply, and the message with its results. The index is -1
// if there is no reply or if it has no calls.
func lastReply(msgs []Message) (at int, answers Message) {
	at = len(msgs) - 1
	for at >= 0 && msgs[at].Role != RoleAssistant {
		at--
	}
	if at < 0 || !msgs[at].HasCalls() {
		return -1, answers
	}
	if at+1 < len(msgs) && msgs[at+1].Role == RoleTool {
		answers = msgs[at+1]
	}
	return at, answers
}

// OpenCalls returns the calls of the last reply that have no result, and the index of that reply.
// The index is -1 if there is no reply or if it has no calls.
func OpenCalls(msgs []Message) (open []ToolCall, at int) {
	at, answers := lastReply(msgs)
	if at < 0 {
		return nil, at
	}
	for _, p := range msgs[at].Parts {
		if c, ok := p.(ToolCall); ok && !answers.answers(c.ID) {
			open = append(open, c)
		}
	}
	return open, at
}
