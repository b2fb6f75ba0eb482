// Command pawl runs agents that call tools, from the shell.
//
//	pawl demo                                   an agent at work, without a key and without a network
//	pawl run --model openai:gpt-5-mini "task"   one task, from first message to stop
//	pawl chat --model openai:gpt-5-mini         a conversation, line by line
//	pawl check agent.yaml                       what is wrong with an agent's file; pawl init writes one
//	pawl tools list|show|call                   the built-in tools
//	pawl knowledge add|search|list|delete       documents that a tool looks through
//	pawl memory list|forget                     what is remembered of a user
//	pawl skills list|show|delete                skills that models have made
//	pawl threads list|show|delete               conversations that chat keeps
//	pawl schedules list|show|run|delete         what is to be done later, and the runner that does it
//	pawl wire encode|decode                     requests and replies as providers write them
//	pawl hostile run|serve                      models that behave badly, played to pawl or to any runtime
//	pawl doctor                                 what is there and what is wrong: sandbox, keys, models, database, agents
//	pawl completion, man                        what shells and man know of it
//	pawl version
//
// Each command has a file of its name. cli.go is the grammar, failure.go says how errors are told, and render.go makes events
// readable; what run and chat share is in agent.go.
package main

import (
	"os"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
)

func main() {
	os.Exit(execute(os.Args[1:], cli.Here()))
}
