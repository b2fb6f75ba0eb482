package demomodel

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/script"
)

// extraction.go: the rules of extraction.

var (
	number   = expression(`(?i)\binvoice\s+(?:no\.?\s*)?([\w/-]*\d[\w/-]*)`)
	seller   = expression(`\b(?:of|from|by) (\p{Lu}[\pL\pN&. -]*?)\s*(?:,|:|\n|$)`)
	longDate = expression(`\b(\d{1,2} \p{Lu}\pL+ \d{4})\b`)
	isoDate  = expression(`\b\d{4}-\d{2}-\d{2}\b`)
	currency = expression(`\b(?:EUR|USD|NOK)\b`)
	position = expression(`\b(\d+(?:\.\d+)?) ([\pL][\pL -]*?) at (\d+(?:\.\d+)?)`)
)

// invoice is the answer of extraction. nil means that the text does not say it.
type invoice struct {
	Number   string  `json:"number"`
	Seller   *string `json:"seller"`
	Date     *string `json:"date"`
	Currency *string `json:"currency"`
	Lines    []line  `json:"lines"`
	Total    *amount `json:"total"`
}

// amount is a number of a currency.
type amount float64

// line is a position of an invoice.
type line struct {
	Text     string  `json:"text"`
	Quantity float64 `json:"quantity"`
	Price    amount  `json:"price"`
}

// playExtraction finds the parts of an invoice in the form of the template's example.
func playExtraction(t *talk) script.Turn {
	found := invoice{
		Seller:   submatch(seller(), t.task),
		Date:     date(t.task),
		Currency: match(currency(), t.task),
		Lines:    []line{},
	}
	if n := submatch(number(), t.task); n != nil {
		found.Number = *n
	}

	var total amount
	for _, m := range position().FindAllStringSubmatch(t.task, -1) {
		quantity, _ := strconv.ParseFloat(m[1], 64) // the expression finds only numbers
		price, _ := strconv.ParseFloat(m[3], 64)
		found.Lines = append(found.Lines, line{m[2], quantity, amount(price)})
		total += amount(quantity * price)
	}
	if len(found.Lines) > 0 {
		found.Total = &total
	}

	text, err := json.Marshal(found)
	if err != nil {
		return script.Fail(err)
	}
	return script.Say(string(text)) // an introduction would not be JSON
}

// match returns what an expression finds. nil means nothing.
func match(expression *regexp.Regexp, text string) *string {
	if found := expression.FindString(text); found != "" {
		return &found
	}
	return nil
}

// submatch returns the first group of what an expression finds. nil means nothing.
func submatch(expression *regexp.Regexp, text string) *string {
	m := expression.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	found := strings.TrimSpace(m[1])
	return &found
}

// date returns the date of an invoice as YYYY-MM-DD. nil means none.
func date(text string) *string {
	if iso := match(isoDate(), text); iso != nil {
		return iso
	}
	if long := match(longDate(), text); long != nil {
		if day, err := time.Parse("2 January 2006", *long); err == nil {
			iso := day.Format(time.DateOnly)
			return &iso
		}
	}
	return nil
}
