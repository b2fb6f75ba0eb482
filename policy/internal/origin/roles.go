package origin

// roles.go: what an argument is for, by its name.

import (
	"strings"
	"unicode"
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
	partyWords = set("recipient to cc bcc participant attendee invitee guest member email mail user username " +
		"assignee reviewer contact phone channel payee beneficiary iban account wallet url uri " +
		"link href webhook endpoint host hostname domain receiver destination dest target share " +
		"audience person customer owner team group handle callback bic address who")
	objectWords = set("id uuid hotel company restaurant vendor supplier merchant seller shop airline flight " +
		"product item sku issue ticket booking reservation invoice repo repository branch bucket " +
		"project room workspace organization org")
	// givingWords stand before "to" in the name of a party: reply_to, and not valid_to.
	givingWords = set("reply send sent assign assigned share shared forward bill ship pay deliver copy transfer grant")
	// traitWords end names of properties of a party: target_type.
	traitWords = set("count limit size length port max min offset index by format language version setting")
	// wireWords are usual in headers.
	wireWords = set("accept agent application authorization bearer cache charset content control cookie " +
		"deflate encoding gzip html image json language mozilla origin plain referer text type " +
		"user utf8 xhtml")
	secretWords = set("password passcode passphrase pin secret credential")
	amountWords = set("amount price sum total quantity")
	// linkWords are how a user asks for what is behind links.
	linkWords    = strings.Fields("link links linked url urls website websites site sites webpage webpages page pages article articles")
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

	readVerbs   = set("get list search read find fetch show look query describe check count view")
	changeVerbs = set("set update create add make edit change modify write run execute invite schedule start stop " +
		"upload submit approve assign move rename insert put patch apply enable disable close open reset")
	removeVerbs = set("delete remove cancel drop destroy purge erase revoke kick")
	finalVerbs  = set("pay transfer buy purchase order book reserve withdraw refund checkout wire")
	sendVerbs   = strings.Fields("send share forward mail email e-mail message post reply write notify contact comment")
	// verbNouns are nouns behind another word: archive_mail, list_orders.
	verbNouns = set("mail email message post comment contact order book transfer refund share")
	// fileNouns are nouns of what is written without being sent: file_write, write_files.
	fileNouns = set("file files folder disk")
	// intents are verbs that mean the same request.
	intents = [][]string{
		strings.Fields("pay transfer wire send remit settle refund"),
		sendVerbs,
		strings.Fields("invite add"),
		strings.Fields("book reserve order buy purchase"),
		strings.Fields("update change modify adjust adapt edit set"),
		strings.Fields("create make add schedule"),
	}
)

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
	oneWord := strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") == ""
	if oneWord {
		return singular(name)
	}

	words := nameParts(name)
	// Words such as id and name at the end say in which form a thing is named, not what it is.
	for len(words) > 1 && suffixWords[singular(words[len(words)-1])] {
		words = words[:len(words)-1]
	}
	switch {
	case len(words) == 0:
		return ""
	case len(words) > 1 && words[len(words)-1] == "to": // valid_to
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

	// The noun says that the argument is something else, with any words before it.
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

// set returns the words of a text.
func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}
