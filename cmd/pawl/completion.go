package main

import (
	"embed"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
)

// completionCmd prints the script by which a shell completes command lines of pawl. The scripts ask
// the program at each press of the key (complete.go), so they are never out of date.
type completionCmd struct {
	Shell string `arg:"" name:"SHELL" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

//go:embed completion
var completionScripts embed.FS

// Run prints the script.
func (c *completionCmd) Run(sys *cli.System) error {
	b, err := completionScripts.ReadFile("completion/pawl." + c.Shell)
	if err != nil {
		return err
	}
	_, err = sys.Out.Write(b)
	return err
}

// completeWord is the hidden command of the scripts: pawl __complete SHELL, and the typed words.
const completeWord = "__complete"

// complete prints the candidates for the word at the cursor: a value a line, for zsh and fish with
// a tab and its description. A last line that starts with a colon is an instruction to the shell.
// zsh and fish pass the words up to the cursor, bash its word breaks and the line up to the cursor.
func complete(args []string, sys *cli.System) error {
	if len(args) < 2 {
		return nil
	}
	shell, words, broken := args[0], args[1:], ""
	if shell == "bash" {
		broken, words = args[1], wordsOf(strings.Join(args[2:], " "))
		words = words[1:]
	}
	before, current := words[:len(words)-1], words[len(words)-1]
	k, err := parser(sys, before...)
	if err != nil {
		return err
	}
	done := &completer{sys: sys, node: k.Model.Node}
	done.complete(before, current)
	cut := strings.LastIndexAny(current, broken) + 1
	for _, c := range done.found {
		if !strings.HasPrefix(c.value, current) || strings.ContainsAny(c.value, " \n\t") {
			continue
		}
		if shell == "bash" {
			fmt.Fprintln(sys.Out, c.value[cut:])
			continue
		}
		fmt.Fprintln(sys.Out, strings.TrimSuffix(c.value+"\t"+cli.Line(c.what, 60), "\t"))
	}
	if done.besides != "" {
		fmt.Fprintln(sys.Out, done.besides)
	}
	return nil
}

// wordsOf splits an unfinished line as a shell does. The last word is the word at the cursor, which
// may be empty.
func wordsOf(text string) []string {
	words := []string{""}
	quote := rune(0)
	escaped := false
	for _, r := range text {
		last := &words[len(words)-1]
		switch {
		case escaped:
			*last += string(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped = true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case quote == 0 && (r == ' ' || r == '\t'):
			if *last != "" || len(words) == 1 {
				words = append(words, "")
			}
		default:
			*last += string(r)
		}
	}
	if len(words) == 1 {
		words = append(words, "")
	}
	return words
}
