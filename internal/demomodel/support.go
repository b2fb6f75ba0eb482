package demomodel

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/script"
)

// support.go: the rules of support.

var (
	order    = expression(`\b[A-Z]-\d+\b`)
	refunded = expression(`(?i)\b(?:refund|money back)\b`)
	euros    = expression(`(?i)(?:€\s*(\d+(?:\.\d+)?)|(\d+(?:\.\d+)?)\s*(?:€|euros?|eur)\b)`)
	named    = expression(`\b(?:[Mm]y name is|I am|I'm) ([A-Z]\pL+)`)
	question = expression(`(?i)^(?:what|when|where|which|does|have|your|about|that|this|with|from|want)$`)
)

// playSupport remembers names, looks up orders, asks for refunds, and answers from the documents.
func playSupport(t *talk) script.Turn {
	if m := named().FindStringSubmatch(t.task); m != nil && t.offers("remember") && !t.called("remember") {
		return script.Call("remember", map[string]string{"content": "The customer's name is " + m[1] + "."})
	}
	id := order().FindString(t.task)
	for i := len(t.before) - 1; i >= 0 && id == ""; i-- {
		id = order().FindString(t.before[i])
	}
	switch {
	case refunded().MatchString(t.task), t.called("refund"), euros().MatchString(t.task):
		return t.refund(id)
	case order().MatchString(t.task):
		return t.status(id)
	case named().MatchString(t.task) && !strings.Contains(t.task, "?"):
		return t.say("Welcome! What can I do for you?")
	}
	return t.document()
}

// refund asks for what is missing, and then for the refund, which a person approves.
func (t *talk) refund(id string) script.Turn {
	if id == "" {
		return t.say("Which order is it? Its number looks like A-17.")
	}
	amount := euros().FindStringSubmatch(t.task)
	if amount == nil {
		return t.say("How many euros were paid for %s?", id)
	}

	done := t.results("refund")
	if done == nil {
		// The expression finds only numbers.
		number, _ := strconv.ParseFloat(amount[1]+amount[2], 64)
		return script.Call("refund", map[string]any{"id": id, "euros": number})
	}
	if done[0].result.IsError {
		return t.unreachable(done[0])
	}
	return t.say("The refund of %s is on its way.", id)
}

// status looks up an order.
func (t *talk) status(id string) script.Turn {
	done := t.results("order_status")
	if done == nil {
		return script.Call("order_status", map[string]string{"id": id})
	}
	if done[0].result.IsError {
		return t.unreachable(done[0])
	}
	return t.say("The shop says of %s:\n\n> %s", id, quote(done[0].result.Text(), 5))
}

// unreachable explains a failed call of the shop, whose address is an example.
func (t *talk) unreachable(e exchange) script.Turn {
	return t.say("%s did not work:\n\n> %s\n\nshop.example.com in the agent's file is an example: put the address of "+
		"your shop there.", e.call.Name, quote(e.result.Text(), 3))
}

// document answers from the files.
func (t *talk) document() script.Turn {
	found := t.results("file_search")
	if found == nil {
		return script.Call("file_search", map[string]any{"pattern": keywords(t.task), "ignore_case": true})
	}
	text := found[0].result.Text()
	name, _, _ := strings.Cut(text, "\n")
	if found[0].result.IsError || strings.HasPrefix(text, "[no ") {
		return t.say("The documents do not say it. A person will answer you.")
	}

	if !t.called("file_read") {
		return script.Call("file_read", map[string]string{"path": name})
	}
	return t.say("%s", t.quotations())
}

// keywords returns an expression for the lines that a question is about.
func keywords(task string) string {
	var words []string
	for _, w := range word().FindAllString(task, -1) {
		if !question().MatchString(w) {
			words = append(words, regexp.QuoteMeta(strings.TrimSuffix(w, "s")))
		}
	}
	if len(words) == 0 {
		return regexp.QuoteMeta(task)
	}
	return strings.Join(words, "|")
}
