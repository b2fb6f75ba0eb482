package wire

import (
	"bytes"
	"strconv"
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
	for i := 0; i < len(value); {
		c := value[i]
		switch {
		case c == '"':
			i = endOfString(value, i)
		case c == '-' || c >= '0' && c <= '9':
			end := endOfNumber(value, i)
			if isHuge(value[i:end]) {
				out = append(append(out, value[done:i]...), '"')
				out = append(append(out, value[i:end]...), '"')
				done = end
			}
			i = end
		default:
			i++
		}
	}
	if out == nil {
		return value
	}
	return append(out, value[done:]...)
}

// endOfString returns the index behind the string that begins at i.
func endOfString(value []byte, i int) int {
	for i++; i < len(value) && value[i] != '"'; i++ {
		if value[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// endOfNumber returns the index behind the number that begins at i.
func endOfNumber(value []byte, i int) int {
	for i < len(value) && bytes.IndexByte([]byte("+-.0123456789Ee"), value[i]) >= 0 {
		i++
	}
	return i
}

// isHuge reports whether a double cannot hold a number, not even rounded.
func isHuge(number []byte) bool {
	if len(number) < mostDigits && !bytes.ContainsAny(number, "eE") {
		return false
	}
	_, err := strconv.ParseFloat(string(number), 64)
	return err != nil
}
