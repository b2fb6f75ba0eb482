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
// root.go is the grammar. A command has a file of its name here or stands in a package below
// internal:
//
//	main ──▶ serve, demo, runs, doctor ──▶ tui ──▶ assemble ──▶ cli ──▶ term
//
// Package cli is what all commands share, assemble makes an agent of flags and files, tui is the
// terminal with chat, runs holds what is durable.
package main

import (
	"os"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
)

func main() {
	os.Exit(execute(os.Args[1:], cli.Here()))
}
