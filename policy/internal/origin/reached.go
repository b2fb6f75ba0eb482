package origin

// reached.go: what calls of this run have reached: a second call to it needs no second question.

import (
	"cmp"
	"encoding/json"
)

// destination is a party or a host, for one kind of act.
type destination struct{ tool, value string }

// addReached adds the destinations of a call that ran. The run made its result, so that a client's
// copy of a conversation does not count. What cannot be undone needs a question each time.
func (ix *Index) addReached(c *Conduct, args json.RawMessage, turn int) {
	if c.final || c.removes || c.Exempt() {
		return
	}
	for _, a := range c.Arguments(args) {
		if value, ok := a.reaches(); ok {
			ix.reached[destination{c.name, value}] = turn
		}
	}
}

// reaches returns the party or the host that a call with the argument reaches.
func (a *Argument) reaches() (value string, ok bool) {
	switch a.role {
	case roleParty:
		return a.plain, true
	case roleAddress:
		return host(a.plain), true
	}
	return "", false
}

// wasReached reports whether a call of c has reached value since the last words of the user.
func (ix *Index) wasReached(c *Conduct, value string) bool {
	ix.load()
	turn, ok := ix.reached[destination{c.name, value}]
	return ok && turn == len(ix.words)
}

// sealedBy returns the tool of the first sealed result of this conversation, or of one around it.
// Empty means none.
func (ix *Index) sealedBy() string {
	if ix.sealed != "" {
		return ix.sealed
	}
	return outside(ix, (*Index).sealedBy)
}

// judgeSealed adds each destination that has not been reached yet if a sealed result was read: in
// this conversation, in any around it, or by the program p around the call. Sealed results are not
// compared with what leaves, so that no encoding and no paraphrase helps.
func (ix *Index) judgeSealed(j *Judgement, c *Conduct, args []Argument, p Program) {
	sealed := cmp.Or(ix.sealedBy(), p.Sealed)
	if sealed == "" {
		return
	}

	told := "may learn what " + sealed + " returned, which is sealed"
	destinations := 0
	for _, a := range args {
		value, ok := a.reaches()
		if !ok {
			continue
		}
		destinations++
		if !ix.wasReached(c, value) {
			j.add(a, ix.doubt(classLeaves), told)
		}
	}

	// Without a destination in its arguments, the tool itself is one.
	if destinations == 0 && c.sends && len(args) > 0 {
		j.add(args[0], ix.doubt(classLeaves), told)
	}
}
