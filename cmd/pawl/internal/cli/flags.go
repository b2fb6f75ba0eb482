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

// HelpTexts returns the texts of flags.txt: the help of flags and arguments that is too long for a
// struct tag. A tag names a text as ${name}.
func HelpTexts() kong.Vars {
	texts := kong.Vars{}
	for _, part := range strings.Split(flagTexts, "\n\n[")[1:] {
		name, text, _ := strings.Cut(part, "]\n")
		texts[name] = strings.Join(strings.Fields(text), " ")
	}
	return texts
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
