package policy

// arguments.go: the conditions of Rules on the arguments of a call.

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/internal/netguard"
	"github.com/pawl-go/pawl/llm"
)

// condition is a condition on one argument: ARGUMENT OP VALUE.
type condition struct {
	arg, op, value string
	number         *big.Rat
}

// truth says whether an argument meets a condition. An argument for which that is not certain
// matches no entry of Allow, and matches an entry of Deny and Ask.
type truth int

const (
	no truth = iota
	unsure
	yes
)

// conditions splits an entry of Rules into the tools and the conditions.
func conditions(e string) (tools string, all []condition, err error) {
	tools, rest, found := strings.Cut(e, "(")
	if !found {
		return e, nil, nil
	}
	inner, closed := strings.CutSuffix(rest, ")")
	wrong := func(what string) error {
		return fmt.Errorf("%q: %s; want conditions such as (path in notes/**), (url host *.example.com), "+
			"(amount <= 100) or (mode = dry), joined by and", e, what)
	}
	if !closed {
		return tools, nil, wrong("it does not end in )")
	}
	for one := range strings.SplitSeq(inner, " and ") {
		f := strings.Fields(one)
		if len(f) < 3 {
			return tools, nil, wrong("a condition has an argument, an operator and a value")
		}
		c := condition{arg: f[0], op: f[1]}
		_, c.value, _ = strings.Cut(one, " "+f[1]+" ")
		c.value = strings.TrimSpace(c.value)
		switch c.op {
		case "=":
		case "<", "<=", ">", ">=":
			c.number = decimal(c.value)
			if c.number == nil {
				err = fmt.Errorf("%q: invalid syntax; want a decimal number", c.value)
			}
		case "in":
			_, err = path.Match(c.value, "")
			if strings.Contains(c.value, `\`) {
				err = errors.New(`a path has / and no \`)
			}
			c.value = path.Clean(c.value)
		case "host":
			_, err = netguard.Matches(c.value, &url.URL{})
		default:
			err = fmt.Errorf("%q is no operator", c.op)
		}
		if err != nil {
			return tools, nil, wrong(err.Error())
		}
		all = append(all, c)
	}
	return tools, all, nil
}

// covers reports whether the entry e is about a call, for an entry that allows or that restricts.
func covers(e string, allows bool, call llm.ToolCall, t *pawl.Tool) bool {
	tools, all, err := conditions(e)
	if err != nil {
		return !allows // Check has reported it
	}
	if !matches(tools, t) {
		return false
	}
	return !slices.ContainsFunc(all, func(c condition) bool {
		met := c.met(call.Args, c.arg)
		return met == no || allows && met != yes
	})
}

// met looks for the argument name in the object args, whose parts are separated by dots.
func (c condition) met(args json.RawMessage, name string) truth {
	name, rest, nested := strings.Cut(name, ".")
	values, err := members(args, name)
	switch {
	case err != nil:
		return unsure
	case len(values) == 0:
		return no
	case len(values) > 1 || values[0].name != name: // tools differ in which of them they read
		return unsure
	case nested:
		return c.met(values[0].value, rest)
	}
	return c.meets(values[0].value)
}

type member struct {
	name  string
	value json.RawMessage
}

// members returns the members of an object whose names are name, case ignored.
func members(object json.RawMessage, name string) (all []member, err error) {
	if len(object) == 0 {
		return nil, nil
	}
	if !jsonscan.IsObject(object) || !json.Valid(object) {
		return nil, errors.New("no object")
	}
	c := jsonscan.New(object)
	for key := range c.Members() {
		if k := string(key); strings.EqualFold(k, name) {
			all = append(all, member{k, c.Raw()})
		}
	}
	return all, nil
}

// meets reports whether a value meets c. All elements of a list must.
func (c condition) meets(value json.RawMessage) truth {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return unsure
	}
	list, ok := v.([]any)
	if !ok {
		return c.one(v)
	}
	seen := [3]int{}
	for _, e := range list {
		seen[c.one(e)]++
	}
	switch {
	case len(list) == seen[no]:
		return no
	case len(list) == seen[yes]:
		return yes
	}
	return unsure
}

func (c condition) one(v any) truth {
	text, isText := v.(string)
	number, isNumber := v.(json.Number)
	switch {
	case c.op == "=" && (isText || isNumber):
		return same(c.value, text+number.String())
	case c.op == "=":
		if b, ok := v.(bool); ok {
			return same(c.value, strconv.FormatBool(b))
		}
	case c.op == "in" && isText:
		return within(c.value, text)
	case c.op == "host" && isText:
		return hosted(c.value, text)
	case isNumber && c.number != nil:
		exact := decimal(number.String())
		f, err := number.Float64()
		if exact == nil || err != nil {
			return unsure
		}
		limit, _ := c.number.Float64()
		if met := c.compares(exact.Cmp(c.number)); met != c.compares(cmp.Compare(f, limit)) {
			return unsure // a tool may read the number as a float
		} else if met {
			return yes
		}
		return no
	}
	return unsure // another type
}

// compares reports whether the operator of c holds for a number that compares to its own as order
// says.
func (c condition) compares(order int) bool {
	return order < 0 && c.op[0] == '<' || order > 0 && c.op[0] == '>' || order == 0 && len(c.op) == 2
}

// decimal returns the exact value of a decimal number. nil means that s is none, or that its digits
// or its exponent are above 400.
func decimal(s string) *big.Rat {
	_, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	if e, err := strconv.Atoi(cmp.Or(exponent, "0")); err != nil || max(e, -e, len(s)) > 400 ||
		strings.Trim(s, "0123456789+-.eE") != "" {
		return nil
	}
	r, _ := new(big.Rat).SetString(s)
	return r
}

func same(want, got string) truth {
	w, werr := strconv.ParseFloat(want, 64)
	g, gerr := strconv.ParseFloat(got, 64)
	switch {
	case want == got:
		return yes
	case strings.EqualFold(want, got),
		!errors.Is(werr, strconv.ErrSyntax) && !errors.Is(gerr, strconv.ErrSyntax) && w == g:
		return unsure
	}
	return no
}

// within reports whether the path p, cleaned, matches glob: * stands for characters of one part, **
// for any number of parts. Links are not followed.
func within(glob, p string) truth {
	clean := path.Clean(p)
	switch {
	case p == "", strings.ContainsAny(p, "\\\x00"), strings.HasPrefix(p, "~"), clean == "..", strings.HasPrefix(clean, "../"),
		path.IsAbs(glob) != path.IsAbs(clean):
		return unsure
	case globbed(strings.Split(glob, "/"), strings.Split(clean, "/")):
		return yes
	case globbed(strings.Split(strings.ToLower(glob), "/"), strings.Split(strings.ToLower(clean), "/")):
		return unsure // the same file, where case does not count
	}
	return no
}

func globbed(glob, parts []string) bool {
	star := -1
	from := 0 // the last ** and the first part that it does not stand for
	g := 0
	p := 0
	for p < len(parts) {
		if g < len(glob) && glob[g] == "**" {
			star = g
			from = p
			g++
			continue
		}
		if g < len(glob) {
			if ok, _ := path.Match(glob[g], parts[p]); ok {
				g, p = g+1, p+1
				continue
			}
		}
		if star < 0 {
			return false
		}
		from++
		g = star + 1
		p = from
	}
	for g < len(glob) && glob[g] == "**" {
		g++
	}
	return g == len(glob)
}

// hosted reports whether the URL text names a host of the pattern. Only the host of the parsed URL
// counts.
func hosted(pattern, text string) truth {
	u, err := url.Parse(text)
	// programs differ in what they make of these characters
	odd := func(r rune) bool { return r <= ' ' || r == '\\' }
	foreign := func(r rune) bool { return r > '~' || r == '%' }
	if err != nil || u.Host == "" || u.User != nil || strings.ContainsFunc(text, odd) ||
		strings.ContainsFunc(u.Host, foreign) {
		return unsure
	}
	switch met, err := netguard.Matches(pattern, u); {
	case err != nil:
		return unsure
	case met && !slices.Contains([]string{"http", "https", "ws", "wss"}, u.Scheme):
		return unsure // file: and javascript: do not ask the host
	case met:
		return yes
	}
	return no
}

// checkArguments reports conditions that cannot be read, and arguments that no tool of an entry
// has.
func checkArguments(e string, tools []*pawl.Tool) error {
	about, all, err := conditions(e)
	if err != nil {
		return err
	}
	for _, c := range all {
		name, _, _ := strings.Cut(c.arg, ".")
		known := map[string]bool{}
		open := false
		for _, t := range tools {
			if !matches(about, t) {
				continue
			}
			var s struct {
				Properties map[string]json.RawMessage `json:"properties"`
			}
			if json.Unmarshal(t.Input, &s) != nil || len(s.Properties) == 0 {
				open = true // a schema that lists no arguments
			}
			for p := range s.Properties {
				known[p] = true
			}
		}
		if len(known) > 0 && !known[name] && !open {
			return fmt.Errorf("%q: no argument is named %q; there are: %s", e, name,
				strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
	return nil
}
