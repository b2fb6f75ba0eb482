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
	"github.com/pawl-go/pawl/internal/advice"
	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/internal/netguard"
	"github.com/pawl-go/pawl/llm"
)

// condition is a condition on one argument: ARGUMENT OP VALUE.
type condition struct {
	arg    string
	op     string
	value  string
	number *big.Rat // of value, for an operator that compares numbers
}

// truth says whether an argument meets a condition.
type truth int

const (
	no     truth = iota
	unsure       // tools differ in how they read the argument: the stricter list counts
	yes
)

// conditions splits an entry of Rules into the tools and the conditions.
func conditions(e string) (tools string, all []condition, err error) {
	tools, rest, found := strings.Cut(e, "(")
	if !found {
		return e, nil, nil
	}
	wrong := func(what string) error {
		return advice.New(fmt.Sprintf("%q: %s", e, what), "want conditions such as (path in notes/**), "+
			"(url host *.example.com), (amount <= 100) or (mode = dry), joined by and")
	}

	inner, closed := strings.CutSuffix(rest, ")")
	if !closed {
		return tools, nil, wrong("it does not end in )")
	}
	for one := range strings.SplitSeq(inner, " and ") {
		c, err := parseCondition(one)
		if err != nil {
			return tools, nil, wrong(err.Error())
		}
		all = append(all, c)
	}
	return tools, all, nil
}

// parseCondition reads ARGUMENT OP VALUE. Only the value may have spaces.
func parseCondition(text string) (c condition, err error) {
	words := strings.Fields(text)
	if len(words) < 3 {
		return c, errors.New("a condition has an argument, an operator and a value")
	}
	c.arg = words[0]
	c.op = words[1]

	_, value, _ := strings.Cut(text, " "+c.op+" ")
	err = c.parseValue(strings.TrimSpace(value))
	return c, err
}

// parseValue sets the value of c, as its operator needs it.
func (c *condition) parseValue(value string) (err error) {
	c.value = value
	switch c.op {
	case "=":
	case "<", "<=", ">", ">=":
		c.number = decimal(value)
		if c.number == nil {
			err = fmt.Errorf("%q: invalid syntax; want a decimal number", value)
		}
	case "in":
		_, err = path.Match(value, "")
		// On every system, since a rule file is shared: arguments are compared with / as well.
		if strings.Contains(value, `\`) {
			err = errors.New(`a path has / and no \`)
		}
		c.value = path.Clean(value)
	case "host":
		_, err = netguard.Matches(value, &url.URL{})
	default:
		err = fmt.Errorf("%q is no operator", c.op)
	}
	return err
}

// covers reports whether the entry e is about a call. allows means that e is an entry of Allow: it
// covers a call only if all arguments certainly meet its conditions. Another entry covers a call
// unless an argument certainly does not.
func covers(e string, allows bool, call llm.ToolCall, t *pawl.Tool) bool {
	tools, all, err := conditions(e)
	if err != nil {
		return !allows // Check has reported it; a program may not have asked Check
	}
	if !matches(tools, t) {
		return false
	}
	fails := func(c condition) bool {
		met := c.met(call.Args, c.arg)
		return met == no || allows && met != yes
	}
	return !slices.ContainsFunc(all, fails)
}

// met reports whether the argument name of args meets c. Dots in the name lead into objects.
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
	return c.metBy(values[0].value)
}

// member is a member of a JSON object.
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

// metBy reports whether a value meets c. All elements of a list must.
func (c condition) metBy(value json.RawMessage) truth {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return unsure
	}

	list, ok := v.([]any)
	if !ok {
		return c.metByOne(v)
	}
	// The call acts on all elements. If they differ, the stricter list counts.
	counts := [3]int{} // by truth
	for _, e := range list {
		counts[c.metByOne(e)]++
	}
	switch len(list) {
	case counts[no]: // an empty list meets nothing
		return no
	case counts[yes]:
		return yes
	}
	return unsure
}

// metByOne reports whether a value that is no list meets c.
func (c condition) metByOne(v any) truth {
	text, isText := v.(string)
	number, isNumber := v.(json.Number)
	switch {
	case c.op == "=" && (isText || isNumber):
		return equal(c.value, text+number.String())
	case c.op == "=":
		if b, ok := v.(bool); ok {
			return equal(c.value, strconv.FormatBool(b))
		}
	case c.op == "in" && isText:
		return within(c.value, text)
	case c.op == "host" && isText:
		return hosted(c.value, text)
	case isNumber && c.number != nil:
		return c.metByNumber(number)
	}
	return unsure // another type
}

// metByNumber reports whether a number meets c. A tool may read the number as a float, so that a
// difference between both makes it unsure.
func (c condition) metByNumber(number json.Number) truth {
	exact := decimal(number.String())
	float, err := number.Float64()
	if exact == nil || err != nil {
		return unsure
	}

	limit, _ := c.number.Float64()
	met := c.compares(exact.Cmp(c.number))
	switch {
	case met != c.compares(cmp.Compare(float, limit)):
		return unsure
	case met:
		return yes
	}
	return no
}

// compares reports whether the operator of c holds for a number that compares to its own as order
// says.
func (c condition) compares(order int) bool {
	switch {
	case order < 0:
		return c.op[0] == '<'
	case order > 0:
		return c.op[0] == '>'
	}
	return len(c.op) == 2 // of the four operators, <= and >=
}

// decimal returns the exact value of a decimal number. nil means that s is none, or that its digits
// or its exponent are above 400.
func decimal(s string) *big.Rat {
	if strings.Trim(s, "0123456789+-.eE") != "" {
		return nil
	}
	_, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	e, err := strconv.Atoi(cmp.Or(exponent, "0"))
	if err != nil || max(e, -e, len(s)) > 400 {
		return nil
	}
	r, _ := new(big.Rat).SetString(s)
	return r
}

// equal reports whether got is want. Texts that differ in case alone, and forms of one number, are
// equal for some tools.
func equal(want, got string) truth {
	w, wantIsNumber := float(want)
	g, gotIsNumber := float(got)
	switch {
	case want == got:
		return yes
	case strings.EqualFold(want, got):
		return unsure
	case wantIsNumber && gotIsNumber && w == g:
		return unsure
	}
	return no
}

// float returns the number that s says. A number out of range is infinite.
func float(s string) (f float64, ok bool) {
	f, err := strconv.ParseFloat(s, 64)
	return f, !errors.Is(err, strconv.ErrSyntax)
}

// within reports whether the path p, cleaned, matches glob: * stands for characters of one part, **
// for any number of parts. Links are not followed.
func within(glob, p string) truth {
	clean := path.Clean(p)
	switch {
	// Tools differ in what they make of these.
	case p == "", strings.ContainsAny(p, "\\\x00"), strings.HasPrefix(p, "~"):
		return unsure
	// The folder that the path begins in is not known.
	case clean == "..", strings.HasPrefix(clean, "../"), path.IsAbs(glob) != path.IsAbs(clean):
		return unsure

	case globbed(strings.Split(glob, "/"), strings.Split(clean, "/")):
		return yes
	case globbed(strings.Split(strings.ToLower(glob), "/"), strings.Split(strings.ToLower(clean), "/")):
		return unsure // the same file, where case does not count
	}
	return no
}

// globbed reports whether the parts of a path match the parts of a pattern.
func globbed(glob, parts []string) bool {
	g := 0
	p := 0
	star := -1 // the last ** in glob
	from := 0  // the first part that it does not stand for
	for p < len(parts) {
		if g < len(glob) && glob[g] == "**" {
			star = g
			from = p
			g++
			continue
		}
		if g < len(glob) {
			if ok, _ := path.Match(glob[g], parts[p]); ok {
				g++
				p++
				continue
			}
		}

		// The last ** stands for one part more.
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
	if err != nil || u.Host == "" || u.User != nil {
		return unsure
	}
	// Programs differ in what they make of these characters.
	odd := func(r rune) bool { return r <= ' ' || r == '\\' }
	foreign := func(r rune) bool { return r > '~' || r == '%' } // in a host
	if strings.ContainsFunc(text, odd) || strings.ContainsFunc(u.Host, foreign) {
		return unsure
	}

	met, err := netguard.Matches(pattern, u)
	switch {
	case err != nil:
		return unsure
	case !met:
		return no
	}
	switch u.Scheme {
	case "http", "https", "ws", "wss":
		return yes
	}
	return unsure // file: and javascript: do not ask the host
}

// checkArguments reports conditions that cannot be read, and arguments that no tool of an entry
// has.
func checkArguments(e string, tools []*pawl.Tool) error {
	about, all, err := conditions(e)
	if err != nil {
		return err
	}
	known, listed := argumentsOf(about, tools)
	// A tool without a list of arguments, as of a remote server, may have any.
	if !listed || len(known) == 0 {
		return nil
	}
	for _, c := range all {
		name, _, _ := strings.Cut(c.arg, ".")
		if !known[name] {
			return advice.New(fmt.Sprintf("%q: no argument is named %q", e, name),
				"there are: "+strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
	return nil
}

// argumentsOf returns the names of the arguments of the tools that entry is about. listed is false
// if one of them has a schema that lists no arguments.
func argumentsOf(entry string, tools []*pawl.Tool) (names map[string]bool, listed bool) {
	names = map[string]bool{}
	listed = true
	for _, t := range tools {
		if !matches(entry, t) {
			continue
		}
		var s struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if json.Unmarshal(t.Input, &s) != nil || len(s.Properties) == 0 {
			listed = false
		}
		for name := range s.Properties {
			names[name] = true
		}
	}
	return names, listed
}
