// Command pawl runs agents that call tools, from the shell.
//
//	pawl demo                                   an agent at work, without a key or a network
//	pawl run --model openai:gpt-6.1-terra "task"   one task, from first message to stop
//	pawl chat --model openai:gpt-6.1-terra         a conversation, line by line
//	pawl runs list|show|resume|…                durable runs
//	pawl inbox, effects                         pending calls, and calls of unknown outcome
//	pawl eval run|check|score|show|compare|…    runs of an agent on cases, judged
//	pawl check agent.yaml                       faults of an agent's file; pawl init writes one
//	pawl serve, worker                          agents over HTTP and on a Temporal cluster
//	pawl tools list|show|call|lint              the built-in tools
//	pawl mcp serve|list|lock|diff|accept        servers of the Model Context Protocol
//	pawl knowledge add|search|list|delete       documents for the tool knowledge_search
//	pawl memory list|forget                     memories of a user
//	pawl skills list|show|delete                skills that models have created
//	pawl threads list|show|delete               conversations that chat has stored
//	pawl schedules list|show|run|delete         schedules, and their runner
//	pawl models list|show|update                the catalogue of models
//	pawl doctor                                 faults of this machine: sandbox, keys, database
//	pawl completion, man, version
//
// root.go is the grammar, help.txt the help. A command has a file of its name here or belongs to a
// package below internal:
//
//	main ──▶ eval ──▶ cli
//	main ──▶ serve, runs, doctor ──▶ tui ──▶ assemble, show ──▶ cli ──▶ term
//	main ──▶ demo ──▶ show
//
// Package cli has the parts that all commands share, assemble builds an agent from flags and files,
// show prints runs, tui is the terminal with chat, runs has the commands of durable runs. The
// folder demo is pawl demo as a program of its own.
package main

import (
	"os"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
)

func main() {
	os.Exit(execute(os.Args[1:], cli.Here()))
}
