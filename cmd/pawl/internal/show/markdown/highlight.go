package markdown

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
)

// highlight.go: the colours of code. They come from a few rules that hold in most languages: a
// wrong colour costs little, and a parser for each language would cost much.

// language is what the colours of a language depend on.
type language struct {
	rules    []rule         // the first that matches counts
	word     *regexp.Regexp // matches a name or a keyword
	keywords []string
}

// rule gives a style to what an expression matches at the beginning of a text.
type rule struct {
	matches *regexp.Regexp
	style   term.Style
}

// languages returns the known languages, by the names that stand after the fence. They are made at
// the first code, because most commands show none.
var languages = sync.OnceValue(func() map[string]*language {
	word := regexp.MustCompile(`^[\pL_]\w*`)
	values := []rule{
		{regexp.MustCompile("^(?:\"(?:[^\"\\\\]|\\\\.)*\"?|'(?:[^'\\\\]|\\\\.)*'?|`[^`]*`?)"), term.Green},
		{regexp.MustCompile(`^\d[\w.]*`), term.Cyan},
	}
	comment := func(form string) []rule {
		return append([]rule{{regexp.MustCompile(form), term.Dim}}, values...)
	}
	slashes := comment(`^(?://.*|/\*.*?(?:\*/|$))`)
	hash := comment(`^#.*`)
	dashes := comment(`^--.*`)

	all := map[string]*language{}
	add := func(names string, rules []rule, keywords string) {
		l := &language{rules, word, strings.Fields(keywords)}
		for _, name := range strings.Fields(names) {
			all[name] = l
		}
	}
	add("go", slashes, "break case chan const continue default defer else fallthrough for func go goto if import "+
		"interface map nil package range return select struct switch true false type var")
	add("js javascript ts typescript jsx tsx", slashes, "async await break case catch class const continue default "+
		"delete do else export extends false finally for from function if import in instanceof interface let new null of "+
		"return switch this throw true try type typeof undefined var void while yield")
	add("c cpp java rust rs cs swift kotlin", slashes, "break case catch class const continue do else enum extern false fn "+
		"for if impl import int interface let match mod mut new null private pub public return static struct switch "+
		"this throw true try type use using var void where while")
	add("py python", hash, "and as assert async await break class continue def del elif else except False finally for "+
		"from global if import in is lambda None nonlocal not or pass raise return True try while with yield")
	add("sh bash shell zsh console", hash, "case do done elif else esac export fi for function if in local return then "+
		"while")
	add("yaml yml toml ruby rb dockerfile", hash, "true false null def end class module do if else elsif return FROM RUN "+
		"COPY CMD")
	add("sql", dashes, "and as by create delete desc distinct drop from group having in insert into is join left limit "+
		"not null on or order select set table union update values where AND AS BY CREATE DELETE DESC DISTINCT DROP FROM "+
		"GROUP HAVING IN INSERT INTO IS JOIN LEFT LIMIT NOT NULL ON OR ORDER SELECT SET TABLE UNION UPDATE VALUES WHERE")
	add("json", values, "true false null")
	return all
})

// coloured returns a line of code with colours. A language that is not known has none.
func coloured(name, text string) term.Line {
	l := languages()[strings.ToLower(name)]
	if l == nil {
		return term.Text(0, text)
	}
	var out term.Line
	plain := 0 // where the text without a colour begins
	for at := 0; at < len(text); {
		n, style := l.token(text[at:])
		if style != 0 {
			out = out.Add(0, text[plain:at]).Add(style, text[at:at+n])
			plain = at + n
		}
		at += n
	}
	return out.Add(0, text[plain:])
}

// token returns the length and the style of the token at the beginning of a text.
func (l *language) token(text string) (n int, style term.Style) {
	for _, r := range l.rules {
		if n := len(r.matches.FindString(text)); n > 0 {
			return n, r.style
		}
	}
	if w := l.word.FindString(text); w != "" {
		if slices.Contains(l.keywords, w) {
			return len(w), term.Magenta
		}
		return len(w), 0
	}
	return 1, 0
}
