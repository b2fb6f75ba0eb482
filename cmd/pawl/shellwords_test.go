package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// shellCommands splits a shell text into its commands and their words. Each command of a pipe, a
// list or a substitution is separate. Leading assignments, redirections and comments are removed.
// The parser covers the syntax in the documentation; bash has checked the text before.
func shellCommands(text string) [][]string {
	var (
		all   [][]string
		words []string
		word  strings.Builder
		begun bool // a word, which may be empty
		skip  bool // the next word is the file of a redirection
	)
	endWord := func() {
		if begun && !skip && !(len(words) == 0 && assignment.MatchString(word.String())) {
			words = append(words, word.String())
		}
		if begun {
			skip = false
		}
		word.Reset()
		begun = false
	}
	endCommand := func() {
		endWord()
		if len(words) > 0 {
			all = append(all, words)
		}
		words = nil
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			if text[i] != '\n' {
				word.WriteByte(text[i])
				begun = true
			}
		case c == '\'':
			n := strings.IndexByte(text[i+1:], '\'')
			word.WriteString(text[i+1 : i+1+n])
			i += n + 1
			begun = true
		case c == '"':
			begun = true
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' && i+1 < len(text) {
					i++
				}
				word.WriteByte(text[i])
			}
		case c == '$' && strings.HasPrefix(text[i:], "$("):
			n, depth := i+2, 1
			for ; n < len(text) && depth > 0; n++ {
				depth += map[byte]int{'(': 1, ')': -1}[text[n]]
			}
			all = append(all, shellCommands(text[i+2:n-1])...)
			word.WriteString(text[i:n])
			begun = true
			i = n - 1
		case c == '#' && !begun:
			for i < len(text) && text[i] != '\n' {
				i++
			}
			endCommand()
		case c == '>' || c == '<':
			if _, err := fmt.Sscan(word.String(), new(int)); err == nil { // 2>
				word.Reset()
				begun = false
			}
			endWord()
			for i+1 < len(text) && strings.IndexByte(">&", text[i+1]) >= 0 {
				i++
			}
			skip = true
		case c == ' ' || c == '\t':
			endWord()
		case strings.IndexByte("\n|&;(){}", c) >= 0 && !(strings.IndexByte("{}", c) >= 0 &&
			(begun || i+1 < len(text) && text[i+1] != ' ')):
			endCommand()
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	endCommand()
	return all
}

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

func TestShellCommands(t *testing.T) {
	for text, want := range map[string]string{
		"a b 'c d' \"e f\" g\\ h":       `["a" "b" "c d" "e f" "g h"]`,
		"X=1 Y='2 3' a --b=c # d":       `["a" "--b=c"]`,
		"a | b && c; d &\ne":            `["a"] ["b"] ["c"] ["d"] ["e"]`,
		"a > b 2>&1 <c d >>e":           `["a" "d"]`,
		"a \"$(b c)\" $(d e) f":         `["d" "e"] ["a" "$(b c)" "$(d e)" "f"]`,
		"a '' \\\n b":                   `["a" "" "b"]`,
		"a '{\"x\":{\"y\":1}}' KEY={1}": `["a" "{\"x\":{\"y\":1}}" "KEY={1}"]`,
		"# only a comment":              ``,
	} {
		var got []string
		for _, c := range shellCommands(text) {
			got = append(got, fmt.Sprintf("%q", c))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: got %s, want %s", text, s, want)
		}
	}
}
