package cli

// flags.go: reads flags.txt, the texts of all flags. The flags themselves are fields of the
// commands' structs; assemble/flags.go has the flags of an agent.

import (
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kong"

	"github.com/pawl-go/pawl"
)

//go:embed flags.txt
var flagTexts string

// FlagText is a text of flags.txt.
type FlagText struct {
	Help   string // one line
	Sets   string // the key of a file for agents that the flag sets; "" means none
	About  string // a key that the flag changes in another way; "" means none
	Values string // the values that the flag accepts, separated by commas; "" means all
}

// FlagTexts returns the texts of flags.txt by their name in a help tag, as in @store_db. The texts
// of limits, as in @limit_rounds, are in pawl.LimitInfos.
var FlagTexts = sync.OnceValue(func() map[string]FlagText {
	texts := map[string]FlagText{}
	for _, part := range strings.Split(flagTexts, "\n\n[")[1:] {
		name, text, _ := strings.Cut(part, "]\n")
		var t FlagText
		for _, field := range []struct {
			prefix string
			value  *string
		}{
			{"sets: ", &t.Sets},
			{"about: ", &t.About},
			{"values: ", &t.Values},
		} {
			if rest, ok := strings.CutPrefix(text, field.prefix); ok {
				*field.value, text, _ = strings.Cut(rest, "\n")
			}
		}
		t.Help = strings.Join(strings.Fields(text), " ")
		texts["@"+name] = t
	}

	// The key of a limit in a file and its flag have one text.
	for _, limit := range pawl.LimitInfos() {
		if limit.Flag != "" {
			texts["@limit_"+string(limit.Name)] = FlagText{Help: limit.Help, Sets: "limits." + string(limit.Name)}
		}
	}
	return texts
})

// HelpTexts replaces each help text of the form @name, in a struct tag, with the text of that name
// in flags.txt. Variables of kong would do the same, but kong copies all variables for each flag,
// which would dominate the start-up time. usual hides the flags with the tag rare.
func HelpTexts(usual bool) kong.Option {
	return kong.PostBuild(func(k *kong.Kong) error {
		return kong.Visit(k.Model, func(n kong.Visitable, next kong.Next) error {
			if f, ok := n.(*kong.Flag); ok && usual && f.Tag.Has("rare") {
				f.Hidden = true
			}
			if err := setText(n); err != nil {
				return err
			}
			return next(nil)
		})
	})
}

// setText replaces the help of a part of the grammar, and sets the values that it accepts.
func setText(part kong.Visitable) error {
	var help *string
	var value *kong.Value
	switch n := part.(type) {
	case *kong.Application:
		help = &n.Help
	case *kong.Node:
		help = &n.Help
	case *kong.Value:
		help = &n.Help
		value = n
	case *kong.Flag:
		help = &n.Help
		value = n.Value
	}
	if help == nil || !strings.HasPrefix(*help, "@") {
		return nil
	}

	text, ok := FlagTexts()[*help]
	if !ok {
		return fmt.Errorf("flags.txt has no text %s", *help)
	}
	*help = text.Help
	if text.Values != "" {
		// kong checks the default as well, which is empty.
		value.Enum = text.Values + ","
		value.HasDefault = true
	}
	return nil
}

// Address is the address of a server on the command line. It is not empty: an empty variable in a
// script must not select the provider's own server.
type Address string

// Decode reads the address.
func (a *Address) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("address", &text); err != nil {
		return err
	}
	if strings.TrimSpace(text) == "" {
		return errors.New("the address is empty; leave the flag out for the provider's own address")
	}
	*a = Address(text)
	return nil
}

// Age is a time span on the command line, also in days.
type Age time.Duration

// Decode parses a span, such as 36h or 30d.
func (a *Age) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("time", &text); err != nil {
		return err
	}
	d, err := time.ParseDuration(text)
	// time.ParseDuration knows no days, because a day may have 23 hours. Here a day is 24.
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n int
		n, err = strconv.Atoi(days)
		d = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || d < 0 {
		return fmt.Errorf("want a time with a unit, such as 30d or 36h, got %q", text)
	}
	*a = Age(d)
	return nil
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
