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

// HelpTexts sets the help of flags and arguments that is too long for a struct tag: a tag names a
// text of flags.txt as @name. They are no variables of kong, because kong copies all variables for
// each flag, which takes longer than all other work at the start of the program.
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

// Whole is a whole number on the command line. Negative numbers are read as well, so that the
// command can report what is wrong with them.
type Whole int

// Decode reads the number.
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
