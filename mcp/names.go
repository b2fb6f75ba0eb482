package mcp

import (
	"crypto/sha256"
	"encoding/hex"
)

// mapped returns the model's name for a tool: the prefix and the tool's own name, with underscores
// for the characters that some provider refuses. exact reports that nothing had to be replaced.
func mapped(prefix, name string) (short string, exact bool) {
	b := []byte(name)
	exact = true
	for i, c := range b {
		if !letter(c) && (c < '0' || c > '9') && c != '_' && c != '-' {
			b[i] = '_'
			exact = false
		}
	}
	short = prefix + string(b)
	if len(short) == 0 || !letter(short[0]) && short[0] != '_' {
		short, exact = "t_"+short, false
	}
	if len(short) > 64 {
		return hashed(short, name), false
	}
	return short, exact
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// hashed returns a unique name that is always the same, independent of other tools.
func hashed(short, name string) string {
	sum := sha256.Sum256([]byte(name))
	return short[:min(len(short), 55)] + "_" + hex.EncodeToString(sum[:4])
}

// distinct returns the model's names for tools, in order. Tools whose names would collide get
// hashed names, so that no name depends on the order of the list. A tool whose name needs no change
// keeps it.
func distinct(prefix string, names []string) []string {
	out := make([]string, len(names))
	exact := make([]bool, len(names))
	times := map[string]int{}
	owned := map[string]bool{}
	for i, n := range names {
		out[i], exact[i] = mapped(prefix, n)
		times[out[i]]++
		owned[out[i]] = owned[out[i]] || exact[i]
	}
	for i, n := range names {
		if times[out[i]] > 1 && !exact[i] {
			out[i] = hashed(out[i], n)
		}
	}
	return out
}
