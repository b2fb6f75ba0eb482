package agentfile

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/schedule"
)

var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// scheduled reports the faults of an agent's schedules.
func (b *builder) scheduled(tools []*pawl.Tool) error {
	var all Findings
	seen := map[string]bool{}
	for i, s := range b.agent.Schedules {
		at := index("schedules", i)
		switch {
		case !plainName.MatchString(s.Name):
			all = append(all, finding(CodeBadValue, at+".name", "letters, digits, _ and -, such as morning",
				"%q is no name of a schedule", s.Name))
		case seen[s.Name]:
			all = append(all, finding(CodeDuplicateName, at+".name", "rename one of them",
				"two schedules are named %s", s.Name))
		}
		seen[s.Name] = true

		all = append(all, s.faults(at)...)
		for j, c := range s.Calls {
			all = append(all, b.called(c, index(at+".calls", j), tools)...)
		}
		for j, c := range s.Deliver {
			all = append(all, b.called(c, index(at+".deliver", j), tools)...)
		}
	}
	return all.err()
}

// faults reports what is wrong with the times and the task of a schedule.
func (s Schedule) faults(at string) (all Findings) {
	zone := s.Zone
	if !isZone(zone) {
		all = append(all, finding(CodeBadValue, at+".zone", zoneHint, "there is no zone %q", zone))
		zone = "" // to check the times all the same
	}
	if _, err := schedule.ParseWhen(s.When, zone); err != nil {
		all = append(all, finding(CodeBadValue, at+".when", "", "%v", err))
	}
	if s.Prompt == "" && len(s.Calls) == 0 {
		all = append(all, finding(CodeMissingKey, at, "prompt: What is new?",
			"nothing is to be done then: the key prompt, or calls, is missing"))
	}
	return all
}

// called reports a call of an unknown tool, or with arguments that do not fit.
func (b *builder) called(c ScheduledCall, at string, tools []*pawl.Tool) Findings {
	if wrong := b.about(c.Tool, at+".tool", tools); len(wrong) > 0 {
		return wrong
	}
	i := slices.IndexFunc(tools, func(t *pawl.Tool) bool { return t.Name == c.Tool })
	switch {
	case i < 0: // of a server that was not asked
		return nil
	case tools[i].Passive:
		return Findings{finding(CodeBadTool, at+".tool", "a tool that pawl runs itself",
			"%s is executed by the caller, and no caller is there then", c.Tool)}
	}

	// An idle tool checks its arguments and does nothing.
	idle := pawl.Toolsets{schedule.Idle(tools[i : i+1])}
	x := idle.Execute(context.Background(), llm.ToolCall{ID: "call", Name: c.Tool, Args: c.args()})
	if x.Outcome != pawl.OutcomeOK {
		text := strings.Join(strings.Fields(x.Result.Text()), " ")
		return Findings{finding(CodeBadValue, at+".args", "pawl tools show "+c.Tool, "%s", text)}
	}
	return nil
}

// args returns the arguments of the call. None are an empty object.
func (c ScheduledCall) args() json.RawMessage {
	if len(c.Args) == 0 {
		return json.RawMessage(`{}`)
	}
	return json.RawMessage(c.Args)
}

func scheduledCalls(list []ScheduledCall) (calls []schedule.Call) {
	for _, c := range list {
		calls = append(calls, schedule.Call{Tool: c.Tool, Args: c.args()})
	}
	return calls
}

// schedules is how the IDs of the agent's schedules begin.
func (a *Agent) schedules() string { return a.Name + "/" }

// HasSchedule reports whether KeepSchedules stores a schedule of that ID for the agent.
func (a *Agent) HasSchedule(id string) bool { return strings.HasPrefix(id, a.schedules()) }

// KeepSchedules stores the schedules of the agent in db, in the scope of its store and under the
// IDs AGENT/NAME: see schedule.Keep. Call it before schedules run, for an agent that was built.
func (a *Agent) KeepSchedules(ctx context.Context, db store.Schedules, getenv func(string) string,
	now time.Time) error {
	zone, err := zoneOf(a.Zone, getenv)
	if err != nil {
		return err
	}
	var want []store.Schedule
	for _, s := range a.Schedules {
		task, err := json.Marshal(schedule.Task{
			Prompt:  s.Prompt,
			Label:   llm.Operator.Label(),
			Calls:   scheduledCalls(s.Calls),
			Deliver: scheduledCalls(s.Deliver),
		})
		if err != nil {
			return err
		}
		want = append(want, store.Schedule{
			ID:          a.schedules() + s.Name,
			Name:        s.Name,
			Description: s.Name + ", of the file of " + a.Name,
			When:        s.When,
			Zone:        cmp.Or(s.Zone, zone),
			Task:        task,
			Misfire:     s.Misfire,
		})
	}
	return schedule.Keep(ctx, db, a.Store.Scope(), a.schedules(), want, now)
}
