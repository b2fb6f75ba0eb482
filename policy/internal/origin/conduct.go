package origin

// conduct.go: what Flow knows of a tool: its verb, the roles of its arguments, its labels.

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/pawl-go/pawl"
)

// role is what an argument is for.
type role int

const (
	roleNone    role = iota // not looked at
	roleContent             // text that leaves
	roleParty               // who receives, or gets access
	roleObject              // what is changed
	roleSecret              // what gives access
	roleAmount              // how much
	roleAddress             // where a read goes to
	roleTarget              // the name of what a read is about
	roleSink                // what a read sends to its address
)

// The words of names. The last word of an argument's name decides about its role, or else the last
// one of partyWords or objectWords.
var (
	partyWords = set("recipient to cc bcc participant attendee invitee guest member email mail user username assignee " +
		"reviewer contact phone channel payee beneficiary iban account wallet url uri link href webhook endpoint host hostname domain " +
		"receiver destination dest target share audience person customer owner team group handle callback bic address who")
	objectWords = set("id uuid hotel company restaurant vendor supplier merchant seller shop airline flight product item sku " +
		"issue ticket booking reservation invoice repo repository branch bucket project room workspace organization org")
	// givingWords stand before "to" in the name of a party: reply_to, and not valid_to.
	givingWords = set("reply send sent assign assigned share shared forward bill ship pay deliver copy transfer grant")
	// traitWords end names of properties of a party: target_type.
	traitWords = set("count limit size length port max min offset index by format language version setting")
	// wireWords are usual in headers.
	wireWords = set("accept agent application authorization bearer cache charset content control cookie deflate encoding gzip " +
		"html image json language mozilla origin plain referer text type user utf8 xhtml")
	secretWords  = set("password passcode passphrase pin secret credential")
	amountWords  = set("amount price sum total quantity")
	addressWords = set("url uri link href webhook endpoint host hostname domain callback")
	placeWords   = set("path file filepath directory folder")  // what a read of a document takes
	nameWords    = set("filename document title subject page") // how a user names a document
	suffixWords  = set("name number key no handle address")    // of a noun before them
	timeWords    = set("date time day start end month year recurring")

	// proseWords are fields of results in which outsiders write.
	proseWords = set("body content description text summary review comment message note snippet html markdown")
	// identityWords are fields that say who a record is from or for, in addition to partyWords.
	identityWords = set("sender name from to owner author creator organizer reader shared with")
	// stateWords are fields whose values do not name a record.
	stateWords   = set("status state type kind read permission priority category currency")
	privateWords = set("password passport card ssn cvv secret credential")

	removeVerbs = set("delete remove cancel drop destroy purge erase revoke kick")
	finalVerbs  = set("pay transfer buy purchase order book reserve withdraw refund checkout wire")
	// verbNouns are nouns behind another word: archive_mail, list_orders.
	verbNouns = set("mail email message post comment contact order book transfer refund share")
	// intents are verbs that mean the same request.
	intents = [][]string{
		strings.Fields("pay transfer wire send remit settle refund"),
		strings.Fields("send share forward mail email e-mail message post reply write notify contact comment"),
		strings.Fields("invite add"),
		strings.Fields("book reserve order buy purchase"),
		strings.Fields("update change modify adjust adapt edit set"),
		strings.Fields("create make add schedule"),
	}
)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// Conduct is what the policy knows of a tool.
type Conduct struct {
	name                                string
	quiet                               bool // only a link in its arguments is looked at
	act                                 bool // it may change the world
	compose                             bool // its results come from other tools
	pure                                bool // its results come from its arguments
	trusted, private, final, out, takes bool // takes: it removes something
	verbs                               []string
	roles                               map[string]role // of the properties; roleNone: a choice
	closed                              map[string]bool // properties that are choices or numbers
}

// NewConduct returns the conduct of t. labels are the labels that its author gave to it: trusted,
// private, final and out.
func NewConduct(t *pawl.Tool, labels []string) *Conduct {
	c := &Conduct{name: t.Name,
		compose: t.Effect == pawl.EffectCompose, pure: t.Effect == pawl.EffectPure,
		roles: map[string]role{}, closed: map[string]bool{}}
	c.act = t.Effect != pawl.EffectRead && t.Effect != pawl.EffectPure && !c.compose
	c.verbs = nameParts(t.Name)
	for i, w := range c.verbs[:min(2, len(c.verbs))] { // the first may be the name of a server
		sends := slices.Contains(intents[1], w)
		if i > 0 && verbNouns[w] {
			continue
		}
		if c.act && (removeVerbs[w] || finalVerbs[w] || sends) {
			c.takes = removeVerbs[w]
			c.final = finalVerbs[w]
			c.out = sends
			break
		}
	}
	var schema struct {
		Properties map[string]struct {
			Format string          `json:"format"`
			Enum   json.RawMessage `json:"enum"`
			Type   any             `json:"type"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(t.Input, &schema) // a schema without properties has no formats
	party := false
	money := false
	c.quiet = !c.act
	for name, p := range schema.Properties {
		r := nameRole(name, noun(name))
		c.closed[name] = p.Enum != nil || p.Type == "integer" || p.Type == "number" || p.Type == "boolean"
		switch p.Format {
		case "email", "idn-email", "uri", "url", "iri", "hostname", "phone":
			r = roleParty
		case "password":
			r = roleSecret
		}
		if p.Enum != nil {
			c.roles[name] = roleNone
			continue
		}
		if r != roleNone {
			c.roles[name] = r
		}
		c.quiet = c.quiet && r == roleNone && (p.Type == "string" || c.closed[name])
		party, money = party || r == roleParty, money || r == roleAmount
		c.final = c.final || c.act && r == roleSecret
	}
	c.final = c.final || c.act && party && money
	c.out = c.out || c.act && party
	c.trusted, c.private = slices.Contains(labels, "trusted"), slices.Contains(labels, "private")
	c.final = c.final || slices.Contains(labels, "final")
	c.out = c.out || slices.Contains(labels, "out")
	return c
}

// Exempt reports whether no call of the tool is looked at: its calls change nothing, and send nothing.
func (c *Conduct) Exempt() bool { return c.compose || c.pure }

// nameParts returns the words of a name: send_money, sendMoney and send-money have two.
func nameParts(name string) []string {
	var b strings.Builder
	lower := false
	for _, r := range name[:min(len(name), 128)] {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			r = ' '
		case unicode.IsUpper(r) && lower:
			b.WriteByte(' ')
		}
		lower = unicode.IsLower(r) || unicode.IsDigit(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.Fields(b.String())
}

// noun returns the word of a name that says what it names, in the singular: hotel for hotel_names.
func noun(name string) string {
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") == "" { // one word
		return singular(name)
	}
	words := nameParts(name)
	for len(words) > 1 && suffixWords[singular(words[len(words)-1])] {
		words = words[:len(words)-1]
	}
	if len(words) == 0 || len(words) > 1 && words[len(words)-1] == "to" { // valid_to
		return ""
	}
	return singular(words[len(words)-1])
}

func singular(w string) string {
	if strings.HasSuffix(w, "ss") || len(w) < 3 {
		return w
	}
	return strings.TrimSuffix(w, "s")
}

// nounRole returns the role that the noun of an argument of a write says.
func nounRole(n string) role {
	switch {
	case partyWords[n]:
		return roleParty
	case objectWords[n]:
		return roleObject
	case secretWords[n]:
		return roleSecret
	case amountWords[n]:
		return roleAmount
	}
	return roleNone
}

// nameRole returns the role of an argument of a write with the noun n.
func nameRole(name, n string) role {
	if r := nounRole(n); r != roleNone {
		return r
	}
	words := nameParts(name)
	last := len(words) - 1
	if last > 0 && words[last] == "to" && givingWords[words[last-1]] {
		return roleParty
	}
	for _, other := range []map[string]bool{proseWords, timeWords, stateWords, placeWords, nameWords, traitWords} {
		if n == "" || other[n] {
			return roleNone
		}
	}
	for ; last >= 0; last-- {
		if r := nounRole(singular(words[last])); r == roleParty || r == roleObject {
			return r
		}
	}
	return roleNone
}

// role returns the role of the plain value v of the argument name.
func (c *Conduct) role(name, v string) role {
	n := noun(name)
	r, declared := c.roles[name]
	if !declared {
		r = nameRole(name, n)
	} else if r == roleNone {
		return roleNone
	}
	switch {
	case v == "":
		return roleNone
	case !c.act:
		switch {
		case addressWords[n] && strings.ContainsAny(v, ".:"), addressKind(v) == kindLink && !c.trusted:
			return roleAddress
		case (r == roleObject || r == roleParty) && strings.Contains(v, " "):
			return roleTarget // one word stands in too many texts to mean anything
		}
		return roleNone
	case r == roleAmount && !c.final:
		return roleNone
	case r != roleNone:
		return r
	case c.takes && (placeWords[n] || nameWords[n]):
		return roleObject
	case timeWords[n]:
		return roleNone
	case !proseWords[n] && !nameWords[n] && addressKind(v) != "":
		return roleParty
	case c.out:
		return roleContent
	}
	return roleNone
}

// intended reports whether the user's words have a verb of the tool, or a verb that means the same.
func (ix *Index) intended(c *Conduct) bool {
	for _, group := range intents {
		if slices.ContainsFunc(c.verbs, func(v string) bool { return slices.Contains(group, v) }) &&
			slices.ContainsFunc(group, ix.said) {
			return true
		}
	}
	return false
}
