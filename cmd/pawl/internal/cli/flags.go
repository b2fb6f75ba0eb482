package cli

import (
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

//go:embed flags.txt
var flagTexts string

// HelpTexts replaces each help text of the form @name, in a struct tag, with the text of that name
// in flags.txt. Variables of kong would do the same, but kong copies all variables for each flag,
// which would dominate the start-up time.
func HelpTexts() kong.Option {
	return kong.PostBuild(func(k *kong.Kong) error {
		texts := map[string]string{}
		for _, part := range strings.Split(flagTexts, "\n\n[")[1:] {
			name, text, _ := strings.Cut(part, "]\n")
			texts["@"+name] = strings.Join(strings.Fields(text), " ")
		}
		return kong.Visit(k.Model, func(n kong.Visitable, next kong.Next) error {
			var help *string
			switch n := n.(type) {
			case *kong.Application:
				help = &n.Help
			case *kong.Node:
				help = &n.Help
			case *kong.Value:
				help = &n.Help
			case *kong.Flag:
				help = &n.Help
			}
			if help != nil && strings.HasPrefix(*help, "@") {
				text, ok := texts[*help]
				if !ok {
					return fmt.Errorf("flags.txt has no text %s", *help)
				}
				*help = text
			}
			return next(nil)
		})
	})
}

// Whole is an integer on the command line. Decode accepts negative numbers, so that the command can
// explain their error.
type Whole int

// Decode parses the number.
func (n *Whole) Decode(ctx *kong.DecodeContext) error {
	if ctx.Scan.Peek().IsEOL() {
		return errors.New("a whole number is missing")
	}
	text := fmt.Sprint(ctx.Scan.Pop().Value)
	v, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("want a whole number, got %q", text)
	}
	*n = Whole(v)
	return nil
}
