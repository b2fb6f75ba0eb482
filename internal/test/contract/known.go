package contract

// known.go: behaviours of time and of connections, which tests of the doors show.

// Known is a row whose cells are shown by tests of their own.
type Known struct {
	// Group and Name are as in Behaviour.
	Group, Name string
	// Tests are the tests by door, as "FOLDER TestName".
	Tests map[string]string
	// Absent says why the other doors have no test.
	Absent map[string]string
}

// The subjects of the rows with tests of their own.
const (
	subjectStop  = "Stop"
	subjectAgain = "Repetition and loss"
)

// others returns one reason for the doors that tests leaves.
func others(tests map[string]string, why string) map[string]string {
	absent := map[string]string{}
	for i := range Doors {
		if _, ok := tests[Doors[i].Name]; !ok {
			absent[Doors[i].Name] = why
		}
	}
	return absent
}

// known returns a row.
func known(group, name, why string, tests map[string]string) Known {
	return Known{Group: group, Name: name, Tests: tests, Absent: others(tests, why)}
}

// KnownRows are the rows with tests of their own.
var KnownRows = []Known{
	known(subjectStop, "after a stop no further call begins",
		"it ends with its process",
		map[string]string{
			"Go": "internal/test/core TestCancelDuringCalls", "durable": "durable TestCancel", "Temporal": "durable/temporal TestCancel",
			"chat completions": "server TestStopStops", "responses": "server TestStopStops", "messages": "server TestStopStops",
			"UI stream": "server TestStopStops", "AG-UI": "server TestStopStops", "A2A": "server TestA2AClient",
			"/v1/runs": "server TestARunIsCancelled", "MCP": "mcp TestServiceProgressAndCancel",
			"remote Runner": "server/client TestCancelling",
		}),
	known(subjectStop, "a message for a run in progress reaches its next request",
		"the protocol has no message for a run in progress",
		map[string]string{
			"Go": ". TestSteering", "durable": "durable TestSteer", "Temporal": "durable/temporal TestSteer",
			"/v1/runs": "server TestACallIsApprovedDeniedAnsweredAndSteered",
		}),
	known(subjectApprovals, "a stream may stay open for the answer of another person",
		"the door ends with the question, and its client answers it",
		map[string]string{
			"chat completions": "server TestHeldReply", "responses": "server TestHeldReply", "messages": "server TestHeldReply",
			"/v1/runs": "server TestAStreamFollowsARunThatWaits",
		}),
	known(subjectAgain, "a repeated request is one run",
		"a call of Go or of the command is one run, and is not repeated by itself",
		map[string]string{
			"chat completions": "server TestARepeatedRequestIsOneRun", "responses": "server TestARepeatedRequestIsOneRun", "messages": "server TestARepeatedRequestIsOneRun",
			"UI stream": "server TestUseChat", "AG-UI": "server TestAGUI", "A2A": "server TestA2AClient",
			"/v1/runs": "server TestARunIsBegunWatchedAndShown", "durable": "durable TestResume",
		}),
	known(subjectAgain, "a client that comes back sees the run from its beginning",
		"the process that executes the run shows it",
		map[string]string{
			"UI stream": "server TestAChatGoesOnBehindARestart", "AG-UI": "server TestAnAGUIRunGoesOnBehindARestart",
			"A2A": "server TestA2AClient", "/v1/runs": "server TestAStreamIsGoneOnWith",
			"durable": "durable TestReplayBeforeCancellation",
		}),
	known(subjectAgain, "a run survives the end of its process, and no write is made twice",
		"it has no journal of its own: the door is above one, or the run ends with its process",
		map[string]string{
			"durable": "durable TestCrashPoints", "Temporal": "durable/temporal TestServerKilled",
			"/v1/runs": "cmd/pawl TestServeKilled", "command": "cmd/pawl TestManual",
		}),
}
