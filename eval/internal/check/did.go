package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/eval/internal/match"
	"github.com/pawl-go/pawl/eval/internal/trial"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/tools/outside"
)

// did.go: the checks of what a run asked for and did: calls, effects, asked, spent.

// times is how often something happens.
type times struct{ min, max int }

// times reads a number, or {min, max}. Nothing means once.
func (c *Compiler) times(value outside.JSON, path string) times {
	if value == nil {
		return times{1, 1}
	}
	var n int
	var r Range
	switch {
	case json.Unmarshal(value, &n) == nil:
		r.Min = number(n)
		r.Max = number(n)
	case jsonform.Read(value, &r) != nil:
		c.report(path, "times: 2, or times: {min: 1, max: 3}", "want a number, or an object with min and max")
		return times{1, 1}
	}

	out := times{0, 1 << 30}
	if r.Min != nil {
		out.min = int(*r.Min)
	}
	if r.Max != nil {
		out.max = int(*r.Max)
	}
	if out.min < 0 || out.min > mostTimes || out.max < max(out.min, 1) {
		c.report(path, fmt.Sprintf("a number from 1 to %d", mostTimes), "no call can be made so often")
		return times{1, 1}
	}
	return out
}

// mostTimes bounds the copies of an expected call.
const mostTimes = 1000

func number(n int) *float64 {
	f := float64(n)
	return &f
}

// planned is a compiled check of calls.
type planned struct {
	def     *Calls
	plan    *match.Plan // nil without expect
	most    []most
	forbid  []match.Call
	outcome map[string]bool // that an expected call may have
}

// most is a bound of calls that fit.
type most struct {
	call match.Call
	max  int
}

func (c *Compiler) calls(d *Definition, at string) func(*trial.Record) verdict {
	p := &planned{def: d.Calls, outcome: map[string]bool{"ok": true}}
	if d.Calls.Expect != nil {
		c.expected(p, *d.Calls.Expect, at+".expect")
	}
	for i, value := range d.Calls.Forbid {
		p.forbid = append(p.forbid, c.forbidden(value, fmt.Sprintf("%s.forbid[%d]", at, i)))
	}
	c.bounds(d.Calls.Count, at+".count")
	c.contradictions(p, at)
	return p.judge
}

func (c *Compiler) expected(p *planned, calls []Call, at string) {
	p.plan = &match.Plan{Order: p.def.Order, Extra: p.def.Extra}
	if len(calls) == 0 && p.def.Extra == match.ExtraAllow {
		c.report(at, "extra: reads or forbid", "no call is expected and all others are allowed, so that this cannot fail")
	}
	ids := map[string]bool{}
	for _, def := range calls {
		ids[def.ID] = true
	}

	for i, def := range calls {
		place := fmt.Sprintf("%s[%d]", at, i)
		call := c.call(def, place)
		if def.After != "" && !ids[def.After] {
			c.report(place+".after", "the id of another call", "no call has the id %q", def.After)
		}
		often := c.times(def.Times, place+".times")
		for range often.min {
			p.plan.Expect = append(p.plan.Expect, call)
		}
		if def.Times != nil {
			p.most = append(p.most, most{call, often.max})
		}
		if def.Outcome != "" {
			p.outcome[def.Outcome] = true
		}
	}
}

// call compiles an expected call.
func (c *Compiler) call(def Call, at string) match.Call {
	if _, err := path.Match(def.Tool, ""); err != nil || def.Tool == "" {
		c.report(at+".tool", "a name such as file_write, or a pattern such as file_*", "%q names no tool", def.Tool)
	}
	return match.Call{
		Tool:    def.Tool,
		Args:    c.Matcher(def.Args, at+".args"),
		Result:  c.Matcher(def.Result, at+".result"),
		Outcome: def.Outcome,
		ID:      def.ID,
		After:   def.After,
	}
}

// ReadCall reads a call, or the name or the pattern of a tool, which stands for any call of it.
func ReadCall(value []byte) (call Call, err error) {
	if json.Unmarshal(value, &call.Tool) == nil {
		return call, nil
	}
	err = jsonform.Read(value, &call)
	return call, err
}

// forbidden compiles a pattern, or a call.
func (c *Compiler) forbidden(value outside.JSON, at string) match.Call {
	def, err := ReadCall(value)
	if err != nil {
		c.report(at, "the name of a tool, or {tool: NAME, args: {…}}", "%v", err)
	}
	return c.call(def, at)
}

// contradictions reports a check that says nothing, or that no run passes.
func (c *Compiler) contradictions(p *planned, at string) {
	d := p.def
	isEmpty := d.Expect == nil && d.Forbid == nil && d.None == "" && d.Count == nil
	switch {
	case isEmpty:
		c.report(at, "expect, forbid, none or count", "nothing is said of the calls, so that this cannot fail")
	case d.Expect == nil && (d.Extra != "" || d.Order != ""):
		c.report(at, "add expect", "extra and order are about expected calls, and there are none")
	case d.None == "all" && p.plan != nil && len(p.plan.Expect) > 0:
		c.report(at, "", "calls are expected, and none may be made: this cannot pass")
	}
	if p.plan == nil {
		return
	}
	for i, want := range p.plan.Expect {
		for _, not := range p.forbid {
			if not.Args == nil && match.Named(not.Tool, want.Tool) {
				c.report(fmt.Sprintf("%s.expect[%d]", at, i), "", "%s is expected and forbidden: this cannot pass", want.Tool)
			}
		}
	}
}

// made returns the calls of a record that the check is about, as match has them.
func (p *planned) made(r *trial.Record) (all []match.Made) {
	for i := range r.Calls {
		c := &r.Calls[i]
		if p.def.Within == "top" && c.Depth > 0 {
			continue
		}
		all = append(all, match.Made{
			Tool:    c.Tool,
			Args:    c.Args,
			Result:  c.Result,
			Outcome: c.Outcome,
			Reads:   !c.Writes(),
		})
	}
	return all
}

func (p *planned) judge(r *trial.Record) verdict {
	all := p.made(r)
	for _, m := range all {
		for _, not := range p.forbid {
			if not.Asks(m) {
				return verdict{reason: fmt.Sprintf("%s is forbidden, and was asked for", called(m))}
			}
		}
		if p.def.None == "all" || p.def.None == "writes" && !m.Reads {
			return verdict{reason: fmt.Sprintf("%s was asked for, want none", called(m))}
		}
	}
	if reason := p.miscounted(all); reason != "" {
		return verdict{reason: reason}
	}
	if p.plan == nil {
		return verdict{}
	}
	return p.compared(all)
}

// miscounted says which count is another one.
func (p *planned) miscounted(all []match.Made) string {
	for _, pattern := range slices.Sorted(maps.Keys(p.def.Count)) {
		n := count(all, &match.Call{Tool: pattern})
		if reason := p.def.Count[pattern].outside(float64(n)); reason != "" {
			return fmt.Sprintf("calls of %s: %s", pattern, reason)
		}
	}
	for _, m := range p.most {
		if n := count(all, &m.call); n > m.max {
			return fmt.Sprintf("%s was done %d times, want at most %d", m.call.Tool, n, m.max)
		}
	}
	return ""
}

func count(all []match.Made, call *match.Call) (n int) {
	for _, m := range all {
		if call.Fits(m) {
			n++
		}
	}
	return n
}

// compared compares the calls that were done with the plan.
func (p *planned) compared(all []match.Made) verdict {
	var relevant []match.Made
	for _, m := range all {
		if p.outcome[m.Outcome] {
			relevant = append(relevant, m)
		}
	}
	got := p.plan.Compare(relevant)
	out := verdict{f1: &got.F1}

	var reasons []string
	for _, i := range got.Missing {
		reasons = append(reasons, fmt.Sprintf("%s was not done as expected", p.plan.Expect[i].Tool))
	}
	for _, i := range got.Extra {
		reasons = append(reasons, fmt.Sprintf("%s was done, and is not expected", called(relevant[i])))
	}
	out.reason = strings.Join(reasons, "; ")
	return out
}

// called is a call in a reason.
func called(m match.Made) string {
	args := strings.TrimSpace(string(m.Args))
	if len(args) > 80 {
		args = strings.ToValidUTF8(args[:80], "") + "…"
	}
	return m.Tool + args
}

func (c *Compiler) effects(d *Definition, at string) func(*trial.Record) verdict {
	e := d.Effects
	states := []struct {
		name   string
		ranges map[string]Range
	}{{"completed", e.Completed}, {"failed", e.Failed}, {"unknown", e.Unknown}}
	stated := len(e.Once)
	for _, s := range states {
		stated += len(s.ranges)
		c.bounds(s.ranges, at+"."+s.name)
	}
	if stated == 0 {
		c.report(at, "completed, failed, unknown or once", "nothing is said of the effects, so that this cannot fail")
	}

	return func(r *trial.Record) verdict {
		for _, s := range states {
			for _, pattern := range slices.Sorted(maps.Keys(s.ranges)) {
				n := inState(r, pattern, s.name)
				if reason := s.ranges[pattern].outside(float64(n)); reason != "" {
					return verdict{reason: fmt.Sprintf("%s effects of %s: %s", s.name, pattern, reason)}
				}
			}
		}
		return verdict{reason: repeated(r, e.Once)}
	}
}

// inState counts the effects of a pattern in a state.
func inState(r *trial.Record, pattern, state string) (n int) {
	for i := range r.Calls {
		c := &r.Calls[i]
		if c.State == state && c.Writes() && match.Named(pattern, c.Tool) {
			n++
		}
	}
	return n
}

// repeated says which completed effect has the arguments of another one.
func repeated(r *trial.Record, patterns []string) string {
	for _, pattern := range patterns {
		seen := map[string]bool{}
		for i := range r.Calls {
			c := &r.Calls[i]
			if c.State != "completed" || !match.Named(pattern, c.Tool) {
				continue
			}
			key := c.Tool + string(jsonform.Canonical(c.Args))
			if seen[key] {
				return fmt.Sprintf("%s completed twice with equal arguments", c.Tool)
			}
			seen[key] = true
		}
	}
	return ""
}

// question is an expected question.
type question struct {
	call  match.Call
	often times
}

func (c *Compiler) asked(d *Definition, at string) func(*trial.Record) verdict {
	var nothing struct {
		None bool `json:"none"`
	}
	if jsonform.Read(d.Asked, &nothing) == nil && nothing.None {
		return func(r *trial.Record) verdict { return unasked(r.Asked, nil) }
	}

	var defs []Call
	if !bytes.HasPrefix(bytes.TrimSpace(d.Asked), []byte("[")) || jsonform.Read(d.Asked, &defs) != nil {
		c.report(at, "{none: true}, or [{tool: NAME, args: {…}, times: 1}]", "this is no list of questions")
		return nil
	}
	if len(defs) == 0 {
		c.report(at, "{none: true}", "the list of questions is empty")
	}
	var wanted []question
	for i, def := range defs {
		place := fmt.Sprintf("%s[%d]", at, i)
		wanted = append(wanted, question{c.call(def, place), c.times(def.Times, place+".times")})
	}
	return func(r *trial.Record) verdict { return unasked(r.Asked, wanted) }
}

// unasked says which question is missing, or was not expected.
func unasked(asked []trial.Question, wanted []question) verdict {
	counts := make([]int, len(wanted))
	for _, q := range asked {
		m := match.Made{Tool: q.Tool, Args: q.Args}
		i := slices.IndexFunc(wanted, func(w question) bool { return w.call.Asks(m) })
		if i < 0 {
			return verdict{reason: fmt.Sprintf("a person was asked about %s", called(m))}
		}
		counts[i]++
	}
	for i, w := range wanted {
		if n := counts[i]; n < w.often.min || n > w.often.max {
			return verdict{reason: fmt.Sprintf("a person was asked %d times about %s", n, w.call.Tool)}
		}
	}
	return verdict{}
}
