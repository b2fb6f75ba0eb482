package origin

// conduct.go: what the policy knows of a tool: its verb, its labels, what its arguments are for.

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
)

// Conduct is what the policy knows of a tool.
type Conduct struct {
	name  string
	verbs []string // the words of the name

	acts    bool // it may change the world
	reads   bool // its name says that it reads, with any effect
	byName  bool // only its name says that it changes nothing
	compose bool // its results come from other tools
	pure    bool // its results come from its arguments
	removes bool // its calls remove something
	final   bool // its calls cannot be undone
	sends   bool // its calls send their arguments to others
	trusted bool // people whom the user trusts write its results
	private bool // its results must not leave
	sealed  bool // after one of its results, nothing leaves without a question
	quiet   bool // only a link in its arguments is looked at

	roles  map[string]role // of the properties of its schema; roleNone means a choice
	closed map[string]bool // the properties that are choices, numbers or switches
}

// NewConduct returns the conduct of t. labels are the labels that its author gave to it: trusted,
// private, final and out.
func NewConduct(t *pawl.Tool, labels []string) *Conduct {
	c := &Conduct{
		name:    t.Name,
		verbs:   nameParts(t.Name),
		compose: t.Effect == pawl.EffectCompose,
		pure:    t.Effect == pawl.EffectPure,
		roles:   map[string]role{},
		closed:  map[string]bool{},
	}
	c.acts = t.Effect != pawl.EffectRead && !c.Exempt()
	isRead := func(w string) bool { return readVerbs[w] }
	c.reads = !c.acts || slices.ContainsFunc(c.verbs[:min(2, len(c.verbs))], isRead)

	// Most tools of servers state no effect. For the origin of values, and not for approval, the
	// name decides then.
	c.byName = t.Effect == pawl.EffectUnstated && c.reads && !slices.ContainsFunc(c.verbs, isActing)
	c.acts = c.acts && !c.byName
	c.quiet = !c.acts && !c.byName

	c.addVerb()
	c.addSchema(t.Input)

	// Labels come last: the author of the tool knows more than its name says. A label adds, and
	// takes nothing away.
	c.trusted = slices.Contains(labels, "trusted")
	c.private = slices.Contains(labels, "private")
	c.sealed = slices.Contains(labels, "sealed")
	c.final = c.final || slices.Contains(labels, "final")
	c.sends = c.sends || slices.Contains(labels, "out")
	return c
}

// Exempt reports whether no call of the tool is looked at: it changes nothing and sends nothing.
func (c *Conduct) Exempt() bool { return c.compose || c.pure }

// isPrivate reports whether results of the tool must not leave.
func (c *Conduct) isPrivate() bool { return c.private }

// isSealed reports whether nothing leaves without a question after a result of the tool.
func (c *Conduct) isSealed() bool { return c.sealed }

// isActing reports whether a word of the name of a tool says that it changes something.
func isActing(w string) bool {
	if verbNouns[w] {
		return false
	}
	return removeVerbs[w] || finalVerbs[w] || slices.Contains(sendVerbs, w) || changeVerbs[w]
}

// addVerb adds what the verb of a tool says about its calls. The verb is the first word of the
// name, or the second one, after the name of a server.
func (c *Conduct) addVerb() {
	if !c.acts {
		return
	}
	for i, w := range c.verbs[:min(2, len(c.verbs))] {
		aboutFile := w == "write" && slices.ContainsFunc(c.verbs, func(w string) bool { return fileNouns[w] })
		// The second word may be a noun, as in get_order. To write a file sends nothing.
		if i > 0 && verbNouns[w] || aboutFile {
			continue
		}
		sends := slices.Contains(sendVerbs, w)
		if removeVerbs[w] || finalVerbs[w] || sends {
			c.removes = removeVerbs[w]
			c.final = finalVerbs[w]
			c.sends = sends
			return
		}
	}
}

// property is what a schema says about an argument.
type property struct {
	Format string          `json:"format"`
	Enum   json.RawMessage `json:"enum"`
	Type   any             `json:"type"`
}

// closed reports whether no text fits into p.
func (p property) closed() bool {
	if p.Enum != nil {
		return true
	}
	switch p.Type {
	case "integer", "number", "boolean":
		return true
	}
	return false
}

// role returns the role of the property p with this name, for a write.
func (p property) role(name string) role {
	switch p.Format {
	case "email", "idn-email", "uri", "url", "iri", "hostname", "phone":
		return roleParty
	case "password":
		return roleSecret
	}
	return nameRole(name, noun(name))
}

// addSchema adds what the properties of a tool say about its calls.
func (c *Conduct) addSchema(input json.RawMessage) {
	var schema struct {
		Properties map[string]property `json:"properties"`
	}
	_ = json.Unmarshal(input, &schema) // a schema without properties has no formats

	found := map[role]bool{}
	for name, p := range schema.Properties {
		c.closed[name] = p.closed()
		if p.Enum != nil {
			c.roles[name] = roleNone
			continue
		}

		r := p.role(name)
		if r != roleNone {
			c.roles[name] = r
			found[r] = true
		}

		// A read is quiet unless an argument has a role, or may be a list or an object with such
		// values.
		if r != roleNone || p.Type != "string" && !p.closed() {
			c.quiet = false
		}
	}
	if !c.acts {
		return
	}

	// Neither given access nor sent money can be taken back.
	if found[roleSecret] || found[roleParty] && found[roleAmount] {
		c.final = true
	}
	if found[roleParty] {
		c.sends = true
	}
}

// role returns the role of the plain value v of the argument name.
func (c *Conduct) role(name, v string) role {
	n := noun(name)
	r, declared := c.roles[name]
	if !declared {
		r = nameRole(name, n)
	}

	switch {
	case v == "":
		return roleNone
	case declared && r == roleNone: // a choice
		return roleNone
	case c.acts:
		return c.writeRole(r, n, v)
	}
	return c.readRole(r, n, v)
}

// readRole returns the role of v in a call that reads. r is the role that the name has for a write,
// and n its noun.
func (c *Conduct) readRole(r role, n, v string) role {
	switch {
	case addressWords[n] && strings.ContainsAny(v, ".:"):
		return roleAddress
	case addressKind(v) == kindLink && !c.trusted:
		return roleAddress
	case c.byName && addressKind(v) != "": // the name may be wrong
		return roleParty

	// One word stands in too many texts to mean anything.
	case !strings.Contains(v, " "):
		return roleNone
	case r == roleObject || r == roleParty:
		return roleTarget
	}
	return roleNone
}

// writeRole returns the role of v in a call that acts. r is the role that the name has, and n its
// noun.
func (c *Conduct) writeRole(r role, n, v string) role {
	switch {
	case r == roleAmount && !c.final:
		return roleNone
	case r != roleNone:
		return r

	case c.removes && (placeWords[n] || nameWords[n]):
		return roleObject
	case timeWords[n]:
		return roleNone

	// An address is for a receiver, except in a text or a name.
	case !proseWords[n] && !nameWords[n] && addressKind(v) != "":
		return roleParty
	case c.sends:
		return roleContent
	}
	return roleNone
}
