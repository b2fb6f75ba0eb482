package term

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Key is a key press or a paste. Name is "text" or "paste", with the characters in Text, or one of
// enter, newline, tab, backtab, backspace, delete, esc, up, down, left, right, home, end, pageup,
// pagedown, word-left, word-right, delete-word, delete-word-right, ctrl-a … ctrl-z, alt-a …. Device
// also sends hangup. An empty Name means an unknown key.
type Key struct{ Name, Text string }

const pasteEnd = "\x1b[201~"

// DecodeKey decodes the first key of the input of a terminal and returns the number of bytes it
// used. 0 bytes means that the key is incomplete. last says that no more input follows, so a single
// escape byte is the key esc. A paste is one key with newlines as line ends; its text is never
// interpreted as keys.
func DecodeKey(in string, last bool) (k Key, n int) {
	if in == "" {
		return Key{}, 0
	}
	c := in[0]
	switch {
	case c == 0x1b:
		return decodeEscape(in, last)
	case controls[c] != "":
		return Key{Name: controls[c]}, 1
	case c > 0 && c < 0x1b:
		return Key{Name: "ctrl-" + string('a'+rune(c)-1)}, 1
	case c < 0x20:
		return Key{}, 1
	}

	// All letters that have arrived together are one key, so that fast typing is painted once.
	end := 0
	for end < len(in) && in[end] >= 0x20 && in[end] != 0x7f {
		if !utf8.FullRuneInString(in[end:]) && !last {
			break
		}
		_, size := utf8.DecodeRuneInString(in[end:])
		end += size
	}
	if end == 0 {
		return Key{}, 0
	}
	return Key{"text", Visible(in[:end])}, end
}

// controls maps single bytes to keys.
var controls = map[byte]string{
	'\r': "enter",
	'\n': "newline",
	'\t': "tab",
	0x08: "backspace",
	0x7f: "backspace",
}

// alts maps the byte after an escape byte to a key.
var alts = map[byte]string{
	'\r': "newline",
	'\n': "newline",
	0x08: "delete-word",
	0x7f: "delete-word",
	'b':  "word-left",
	'f':  "word-right",
	'd':  "delete-word-right",
}

// sequences maps the end of an escape sequence, after the escape byte and "[" or "O", to a key.
var sequences = map[string]string{
	"A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end", "Z": "backtab",
	"1~": "home", "3~": "delete", "4~": "end", "5~": "pageup", "6~": "pagedown", "7~": "home", "8~": "end",
	"1;5C": "word-right", "1;5D": "word-left", "1;3C": "word-right", "1;3D": "word-left",
	"3;5~":  "delete-word-right",
	"13;2u": "newline", "13;3u": "newline", "13;5u": "newline", "27;2;13~": "newline",
	"M": "enter", // of the keypad
}

func decodeEscape(in string, last bool) (Key, int) {
	if strings.HasPrefix(in, "\x1b[200~") {
		text, _, ended := strings.Cut(in[6:], pasteEnd)
		if !ended {
			return Key{}, 0
		}
		whole := len("\x1b[200~") + len(text) + len(pasteEnd)
		text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
		return Key{"paste", Visible(text)}, whole
	}
	// An escape alone is a key only if no sequence follows it in the same read.
	if len(in) == 1 {
		if last {
			return Key{Name: "esc"}, 1
		}
		return Key{}, 0
	}

	c := in[1]
	switch {
	case c == '[' || c == 'O':
		for i := 2; i < len(in); i++ {
			if in[i] >= 0x40 && in[i] <= 0x7e {
				return Key{Name: sequences[in[2:i+1]]}, i + 1
			}
			if in[i] < 0x20 {
				return Key{}, i // interrupted by another key
			}
		}
		if last {
			return Key{}, len(in)
		}
		return Key{}, 0
	case alts[c] != "":
		return Key{Name: alts[c]}, 2
	case c > 0x20 && c < 0x7f:
		return Key{Name: "alt-" + string(rune(c))}, 2
	}
	return Key{Name: "esc"}, 1
}

// String returns the name and the text of the key.
func (k Key) String() string {
	if k.Text != "" {
		return k.Name + " " + strconv.Quote(k.Text)
	}
	return k.Name
}
