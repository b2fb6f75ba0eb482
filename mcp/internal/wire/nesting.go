package wire

import "bytes"

// maxNesting is the number of values within one another that are delivered. The SDK refuses a
// message with 1000, and all tools of a list with it.
const maxNesting = 900

// tooDeep stands for a value below maxNesting. A schema that contains it is too deep to be used.
const tooDeep = `"[nested too deeply to be read]"`

// shallow returns text with tooDeep in place of the values below maxNesting, so that depth costs
// one value and not the message. A text that ends within such a value is returned unchanged.
func shallow(text []byte) []byte {
	if bytes.Count(text, []byte("{"))+bytes.Count(text, []byte("[")) <= maxNesting {
		return text
	}

	var out []byte
	var n nesting
	copied := 0 // bytes of text that are in out
	start := 0  // of the value that is left out
	for i := range text {
		before := n.depth
		n.feed(text[i : i+1])
		switch {
		case before == maxNesting && n.depth > maxNesting:
			start = i
		case before > maxNesting && n.depth == maxNesting:
			out = append(append(out, text[copied:start]...), tooDeep...)
			copied = i + 1
		}
	}
	if n.depth > maxNesting {
		return text
	}
	return append(out, text[copied:]...)
}

// nesting is the depth of a JSON text, read part by part.
type nesting struct {
	depth   int
	inText  bool
	escaped bool
}

func (n *nesting) feed(part []byte) {
	for _, c := range part {
		switch {
		case n.escaped:
			n.escaped = false
		case n.inText && c == '\\':
			n.escaped = true
		case c == '"':
			n.inText = !n.inText
		case n.inText:
		case c == '{' || c == '[':
			n.depth++
		case c == '}' || c == ']':
			n.depth--
		}
	}
}
