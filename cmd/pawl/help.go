package main

import (
	_ "embed"
	"strings"

	"github.com/alecthomas/kong"
)

// flagGroups are the flags that several commands share. The help, the man pages and docs/cli.md
// show them under these titles.
var flagGroups = kong.ExplicitGroups([]kong.Group{
	{Key: "agent", Title: "The agent:"},
	{Key: "tools", Title: "Its tools:"},
	{Key: "limits", Title: "Limits:"},
	{Key: "rules", Title: "What may run:"},
	{Key: "settle", Title: "Decisions on pending calls:"},
	{Key: "transcript", Title: "The transcript:"},
	{Key: "store", Title: "The database and its user:"},
	{Key: "durable", Title: "Durable runs:"},
	{Key: "record", Title: "Recordings:"},
	{Key: "telemetry", Title: "Telemetry:"},
})

// enums are lists of values that are too long for a struct tag.
var enums = kong.Vars{
	"apis":    "openai-responses,openai-chat,anthropic-messages,anthropic,gemini",
	"effects": "intended,started,completed,failed,unknown,",
	"states":  "open,waiting,failed,over,",
}

// helpTexts has the help of each command with its examples, under a heading of the command's words.
//
//go:embed help.txt
var helpTexts string

// examplesTitle stands above the examples of a command.
const examplesTitle = "Examples:\n\n"

// addHelp adds the texts of help.txt to a command and the commands below it.
func addHelp(n *kong.Node) {
	_, text, _ := strings.Cut(helpTexts, "\n\n["+strings.TrimPrefix(n.FullPath(), "pawl ")+"]\n")
	text, _, _ = strings.Cut(text, "\n\n[")
	n.Detail = strings.TrimSpace(n.Detail + "\n\n" + strings.TrimSpace(text))
	for _, child := range n.Children {
		addHelp(child)
	}
}
