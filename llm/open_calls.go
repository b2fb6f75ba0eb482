package llm

// lastReply returns where the last reply stands, -1 if there is none or it has no calls, and the message with its results.
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

// openCalls returns the calls of the last reply that have no result, and where that reply stands.
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
