package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// mapped returns the model's name for a tool: the prefix and the tool's own name, with underscores
// for the characters that some provider refuses. exact reports that nothing had to be replaced.
func mapped(prefix, name string) (short string, exact bool) {
	short, exact = replaced(name)
	short = prefix + short
	if len(short) == 0 || !letter(short[0]) && short[0] != '_' {
		short = "t_" + short
		exact = false
	}
	if len(short) > 64 {
		return hashed(short, name), false
	}
	return short, exact
}

// replaced returns a name with underscores for the characters that some provider refuses.
func replaced(name string) (short string, exact bool) {
	b := []byte(name)
	exact = true
	for i, c := range b {
		if !isWord(c) && c != '-' {
			b[i] = '_'
			exact = false
		}
	}
	return string(b), exact
}

// isWord reports whether c is a letter, a digit or an underscore.
func isWord(c byte) bool { return letter(c) || c == '_' || c >= '0' && c <= '9' }

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// hashed returns a unique name that is always the same, independent of other tools.
func hashed(short, name string) string {
	return short[:min(len(short), 55)] + "_" + digest(name)
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// distinct returns the model's names for the tools of s, in order. No name depends on the order of
// a list, and none can be the name of a tool of the other servers: a tool b_c of the server a gets
// part of a hash after the prefix if there is a server a_b. The name then does not begin with the
// prefix of a_b either, so that a rule about a_b_* does not include it.
func (s *Server) distinct(names []string, others []Server) []string {
	prefix := s.NamePrefix()
	out := distinct(prefix, names)
	for i, name := range names {
		if s.foreign(out[i], others) {
			short, _ := replaced(name)
			apart := prefix + digest(s.Name+"\x00"+name) + "_" + short
			out[i], _ = mapped("", apart[:min(len(apart), 64)])
		}
	}
	return out
}

// foreign reports whether a name may be the name of a tool of another server.
func (s *Server) foreign(name string, others []Server) bool {
	own := s.NamePrefix()
	for i := range others {
		p := others[i].NamePrefix()
		longer := len(p) > len(own) && strings.HasPrefix(name, p)
		if p != "" && (p == own || longer) {
			return true
		}
	}
	return false
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
