package agentfile

// keys_team.go: the keys of teams and handoffs.

// Team describes an agent that leads others. Package team has the managers.
type Team struct {
	// How work is delegated: strategic (the lead plans phases, workers execute them, the lead sums
	// up), router (one worker gets the task), script (the lead writes steps for the workers) or
	// network (the lead calls workers as it calls tools). Default: strategic.
	Manager string `yaml:"manager" enum:"strategic,router,script,network"`

	// The workers: names of other agents of this file, or objects.
	Workers []Worker `yaml:"workers" required:"true"`

	// For a router: rules that are tried in order, before the lead is asked.
	Rules []Rule `yaml:"rules"`

	// For a router: the worker if the lead chose none. Default: the answer says that none fits.
	Default string `yaml:"default"`

	// For strategic and script: the reaction to a failed phase or step. Default: stop.
	OnFailure string `yaml:"on_failure" enum:"stop,retry,replan"`

	// The number of further tries, with retry and replan. Default: 1 and 2.
	Tries *int `yaml:"tries" min:"1" max:"10"`

	// Maximum number of phases of a plan. Default: 12.
	MaxPhases *int `yaml:"max_phases" min:"1" max:"12"`

	// Replaces the lead's instructions for planning, choosing or writing scripts. The workers are
	// listed after it.
	Prompt string `yaml:"prompt"`
}

// Worker is an agent that is given work.
type Worker struct {
	// Its name, also for the lead: of an agent in this file or, with file, in that file. Default,
	// with file: the only agent there.
	Name string `yaml:"agent"`

	// Its file, in the same folder or below.
	File string `yaml:"file"`

	// Its purpose, for the choice of a worker. Default: the beginning of its instructions.
	Description string `yaml:"description"`

	// For a script: its tools that direct steps may name. Default: all of them.
	Tools []string `yaml:"tools"`

	of *Agent // nil before the whole file was read, and for an agent that does not exist
}

// Agent is who works; nil before the file was read whole.
func (w Worker) Agent() *Agent { return w.of }

// Rule sends a task to a worker by its words.
type Rule struct {
	// The worker that gets the task.
	Worker string `yaml:"worker" required:"true"`

	// Words, one of which must be in the task, in any case. Default: any task.
	Include []string `yaml:"include"`

	// Words, none of which may be in the task.
	Exclude []string `yaml:"exclude"`
}

// mostNested bounds how many managers stand above one another.
const mostNested = 8

// handoffs is the manager of the agents in the key handoffs, which is not a name of a manager.
const handoffs = "handoffs"

// group returns the team of a, or the agents that it hands over to. It has no workers if there is
// neither.
func (a *Agent) group() *Team {
	switch {
	case a.Team != nil:
		return a.Team
	case len(a.Handoffs) > 0:
		return &Team{Manager: handoffs, Workers: a.Handoffs}
	}
	return new(Team)
}

// path returns the path of the workers in the file.
func (t *Team) path() string {
	if t.Manager == handoffs {
		return handoffs
	}
	return "team.workers"
}

// leads reports whether a team leads back to one of its agents, or stands too deep.
func (a *Agent) leads(to *Agent, deep int) bool {
	for _, w := range a.group().Workers {
		switch {
		case w.of == to || deep > mostNested:
			return true
		case w.of == nil || w.of == a:
			continue
		case w.of.leads(to, deep+1):
			return true
		}
	}
	return false
}
