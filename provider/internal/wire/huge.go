package wire

import (
	"bytes"
	"strconv"

	"github.com/pawl-go/pawl/internal/jsonscan"
)

// mostDigits is a length up to which a number without an exponent has a place in a double.
const mostDigits = 300

// quoteHuge returns a valid JSON value with the text of each number that a double cannot hold in
// place of the number. A model may write 1e400, and servers read the arguments of calls into
// doubles: they would refuse the conversation from then on. Without such numbers, value is returned
// itself.
func quoteHuge(value []byte) []byte {
	var out []byte
	done := 0
	for at, number := range jsonscan.Numbers(value) {
		if isHuge(number) {
			out = append(append(out, value[done:at]...), '"')
			out = append(append(out, number...), '"')
			done = at + len(number)
		}
	}
	if out == nil {
		return value
	}
	return append(out, value[done:]...)
}

// isHuge reports whether a double cannot hold a number, not even rounded.
func isHuge(number []byte) bool {
	if len(number) < mostDigits && !bytes.ContainsAny(number, "eE") {
		return false
	}
	_, err := strconv.ParseFloat(string(number), 64)
	return err != nil
}
