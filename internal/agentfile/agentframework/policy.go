package agentframework

type termination struct {
	MaxIterations   *int     `yaml:"max_iterations" min:"0"`
	RequireTerminal *bool    `yaml:"require_terminal_tool"`
	Terminal        []string `yaml:"terminal_tools"`
	CheckCompletion *bool    `yaml:"check_completion"`
	OnMax           string   `yaml:"on_max_iterations" enum:"error,return_partial"`
}

type loops struct {
	Enabled         *bool  `yaml:"enabled"`
	ActionWindow    *int   `yaml:"action_window" min:"1"`
	Observations    *int   `yaml:"observation_window" min:"1"`
	Threshold       *int   `yaml:"repetition_threshold" min:"1" max:"50"`
	CheckCompletion *bool  `yaml:"check_completion_in_loop"`
	OnStagnation    string `yaml:"on_stagnation"`
}

type hitl struct {
	Enabled    *bool    `yaml:"enabled"`
	Scope      string   `yaml:"scope" enum:"writes,all"`
	WriteTools []string `yaml:"write_tools"`
}

type completion struct {
	Indicators []string `yaml:"indicators"`
	CheckFinal *bool    `yaml:"check_final_response"`
	Operations []string `yaml:"operation_types"`
	Validation *bool    `yaml:"check_response_validation"`
	Depth      *int     `yaml:"history_depth" min:"1"`
}

type checkpoint struct {
	Enabled    *bool    `yaml:"enabled"`
	After      *int     `yaml:"checkpoint_after_iterations" min:"1"`
	Operations []string `yaml:"checkpoint_on_operations"`
	Tools      []string `yaml:"checkpoint_on_tools"`
}

type followUp struct {
	Enabled         *bool `yaml:"enabled"`
	MaxPhases       *int  `yaml:"max_phases" min:"1"`
	CheckCompletion *bool `yaml:"check_completion"`
	Stop            *bool `yaml:"stop_on_completion"`
}

// presetRounds are the rounds of the presets.
var presetRounds = map[string]int{"simple": 10, "with_hitl": 15, "with_checkpoints": 20}

// policies reads the preset, and what differs from it.
func (d *document) policies() {
	const path = "spec.policies"
	p := d.Spec.Policies
	if n, ok := presetRounds[p.Preset]; ok {
		d.set("limits.rounds", path+".$preset", n)
	}
	d.reportedIf(p.Preset == "with_checkpoints" || p.Checkpoint != nil, path,
		"checkpoints have no effect: --save keeps a run however it ends")
	if p.Preset == "manager_with_followups" && d.Kind != "ManagerAgent" {
		d.placed(codeConflict, path+".$preset", "kind: ManagerAgent",
			"manager_with_followups is a preset of managers")
	}

	policyOf(d, p.Completion, path+".completion", new(completion))
	d.reportedIf(p.Completion != nil, path+".completion", wordsDoNot)
	policyOf(d, p.Checkpoint, path+".checkpoint", new(checkpoint))
	if f := policyOf(d, p.FollowUp, path+".follow_up", new(followUp)); f.MaxPhases != nil {
		d.team("max_phases", path+".follow_up.config.max_phases", *f.MaxPhases)
	}
	if p.FollowUp != nil && d.Kind != "ManagerAgent" {
		d.placed(codeConflict, path+".follow_up", "kind: ManagerAgent", "follow_up is a policy of managers")
	}

	ends := policyOf(d, p.Termination, path+".termination", new(termination))
	d.termination(ends, path+".termination.config")
	repeats := policyOf(d, p.LoopPrevention, path+".loop_prevention", new(loops))
	d.loops(repeats, path+".loop_prevention.config")
	d.hitl(policyOf(d, p.HITL, path+".hitl", new(hitl)), path+".hitl.config")
}

const wordsDoNot = "words do not end a run: an answer does, or a terminal tool"

// policyOf reads the config of a policy.
func policyOf[T any](d *document, p *typed, path string, into *T) *T {
	if p != nil {
		d.read(p.Config, into, path+".config")
	}
	return into
}

func (d *document) termination(c *termination, path string) {
	given(d, "limits.rounds", path+".max_iterations", c.MaxIterations)
	d.all("terminal_tools", path+".terminal_tools", c.Terminal)
	if c.RequireTerminal != nil && *c.RequireTerminal {
		d.placed(codeRefused, path+".require_terminal_tool",
			"say in system_prompt that the run ends with the tool, or set the gateway's tool_choice",
			"a run can also end by an answer")
	}
	d.reportedIf(c.CheckCompletion != nil, path+".check_completion", wordsDoNot)

	switch c.OnMax {
	case "return_partial":
		d.set("limits.at_limit", path+".on_max_iterations", "answer")
	case "error":
		d.reported(path+".on_max_iterations",
			"a limit is never reported as success: the model is asked for an answer, and the status is 4")
	}
}

func (d *document) loops(c *loops, path string) {
	given(d, "limits.repeats", path+".repetition_threshold", c.Threshold)
	if c.Enabled != nil && !*c.Enabled {
		d.placed(codeRefused, path+".enabled", "leave it out",
			"repetition is always looked for, or a run might not end")
	}
	d.reportedIf(c.hasOthers(), path, "only repetition_threshold counts: the window is twice as long, "+
		"calls count with their results, and the model is warned before the run ends")
}

// hasOthers reports whether c has keys without an effect.
func (c *loops) hasOthers() bool {
	return c.ActionWindow != nil || c.Observations != nil || c.CheckCompletion != nil || c.OnStagnation != ""
}

func (d *document) hitl(c *hitl, path string) {
	switch {
	case c.Enabled != nil && !*c.Enabled:
		d.set("approve.else", path+".enabled", "allow")
	case c.Scope == "all":
		d.set("approve.else", path+".scope", "ask")
	}
	if c.WriteTools != nil {
		d.set("approve.ask", path+".write_tools", c.WriteTools)
	}
}
