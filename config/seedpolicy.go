package config

import "strings"

type seedTermination struct {
	MaxIterations   *int     `yaml:"max_iterations" min:"0"`
	RequireTerminal *bool    `yaml:"require_terminal_tool"`
	Terminal        []string `yaml:"terminal_tools"`
	CheckCompletion *bool    `yaml:"check_completion"`
	OnMax           string   `yaml:"on_max_iterations" enum:"error,return_partial"`
}

type seedLoops struct {
	Enabled         *bool  `yaml:"enabled"`
	ActionWindow    *int   `yaml:"action_window" min:"1"`
	Observations    *int   `yaml:"observation_window" min:"1"`
	Threshold       *int   `yaml:"repetition_threshold" min:"1" max:"50"`
	CheckCompletion *bool  `yaml:"check_completion_in_loop"`
	OnStagnation    string `yaml:"on_stagnation"`
}

type seedHITL struct {
	Enabled    *bool    `yaml:"enabled"`
	Scope      string   `yaml:"scope" enum:"writes,all"`
	WriteTools []string `yaml:"write_tools"`
}

type seedCompletion struct {
	Indicators []string `yaml:"indicators"`
	CheckFinal *bool    `yaml:"check_final_response"`
	Operations []string `yaml:"operation_types"`
	Validation *bool    `yaml:"check_response_validation"`
	Depth      *int     `yaml:"history_depth" min:"1"`
}

type seedCheckpoint struct {
	Enabled    *bool    `yaml:"enabled"`
	After      *int     `yaml:"checkpoint_after_iterations" min:"1"`
	Operations []string `yaml:"checkpoint_on_operations"`
	Tools      []string `yaml:"checkpoint_on_tools"`
}

type seedFollowUp struct {
	Enabled         *bool `yaml:"enabled"`
	MaxPhases       *int  `yaml:"max_phases" min:"1"`
	CheckCompletion *bool `yaml:"check_completion"`
	Stop            *bool `yaml:"stop_on_completion"`
}

// presetRounds are the rounds of the presets.
var presetRounds = map[string]int{"simple": 10, "with_hitl": 15, "with_checkpoints": 20}

// policies reads the preset, and what differs from it.
func (s *seedReading) policies() {
	const path = "spec.policies"
	p, a := s.doc.Spec.Policies, s.a
	if n, ok := presetRounds[p.Preset]; ok {
		a.Limits.Rounds = &n
		s.moved("limits.rounds", path+".$preset")
	}
	if p.Preset == "with_checkpoints" || p.Checkpoint != nil {
		s.reported(path, "checkpoints have no effect: --save keeps a run however it ends")
	}
	if p.Preset == "manager_with_followups" && s.doc.Kind != "ManagerAgent" {
		s.placed(CodeConflict, path+".$preset", "kind: ManagerAgent", "manager_with_followups is a preset of managers")
	}
	policyOf(s, p.Completion, path+".completion", new(seedCompletion))
	if p.Completion != nil {
		s.reported(path+".completion", "words do not end a run: an answer does, or a terminal tool")
	}
	policyOf(s, p.Checkpoint, path+".checkpoint", new(seedCheckpoint))
	if f := policyOf(s, p.FollowUp, path+".follow_up", new(seedFollowUp)); f.MaxPhases != nil {
		s.team().MaxPhases = f.MaxPhases
	}
	if p.FollowUp != nil && s.doc.Kind != "ManagerAgent" {
		s.placed(CodeConflict, path+".follow_up", "kind: ManagerAgent", "follow_up is a policy of managers")
	}
	s.termination(policyOf(s, p.Termination, path+".termination", new(seedTermination)), path+".termination.config")
	s.loops(policyOf(s, p.LoopPrevention, path+".loop_prevention", new(seedLoops)), path+".loop_prevention.config")
	s.hitl(policyOf(s, p.HITL, path+".hitl", new(seedHITL)), path+".hitl.config")
}

// policyOf reads the config of a policy.
func policyOf[T any](s *seedReading, p *seedTyped, path string, into *T) *T {
	if p != nil {
		p.Config.as(s.reading, into, path+".config")
	}
	return into
}

func (s *seedReading) termination(c *seedTermination, path string) {
	a := s.a
	if c.MaxIterations != nil {
		a.Limits.Rounds = c.MaxIterations
		s.moved("limits.rounds", path+".max_iterations")
	}
	for i, name := range c.Terminal {
		s.moved(index("terminal_tools", len(a.Terminal)), index(path+".terminal_tools", i))
		a.Terminal = append(a.Terminal, name)
	}
	if c.RequireTerminal != nil && *c.RequireTerminal {
		s.placed(CodeRefused, path+".require_terminal_tool", "say in system_prompt that the run ends with the tool, or set the gateway's tool_choice", "a run can also end by an answer")
	}
	if c.CheckCompletion != nil {
		s.reported(path+".check_completion", "words do not end a run: an answer does, or a terminal tool")
	}
	switch c.OnMax {
	case "return_partial":
		a.Limits.AtLimit = "answer"
	case "error":
		s.reported(path+".on_max_iterations", "a limit is never told as success: the model is asked for an answer, and the status is 4")
	}
}

func (s *seedReading) loops(c *seedLoops, path string) {
	if c.Threshold != nil {
		s.a.Limits.Repeats = c.Threshold
		s.moved("limits.repeats", path+".repetition_threshold")
	}
	if c.Enabled != nil && !*c.Enabled {
		s.placed(CodeRefused, path+".enabled", "leave it out", "circles are always looked for, or a run could go on for ever")
	}
	if c.ActionWindow != nil || c.Observations != nil || c.CheckCompletion != nil || c.OnStagnation != "" {
		s.reported(path, "only repetition_threshold counts: the window is twice as long, calls count with their results, and the model is told before the run ends")
	}
}

func (s *seedReading) hitl(c *seedHITL, path string) {
	a := s.a
	switch {
	case c.Enabled != nil && !*c.Enabled:
		a.Approve.Else = "allow"
	case c.Scope == "all":
		a.Approve.Else = "ask"
	}
	for i := range c.WriteTools {
		s.moved(index("approve.ask", i), index(path+".write_tools", i))
	}
	a.Approve.Ask = c.WriteTools
}

// outward reports whether a path of a worker leads out of the folder.
func outward(path string) bool {
	for part := range strings.SplitSeq(strings.ReplaceAll(path, `\`, "/"), "/") {
		if part == ".." {
			return true
		}
	}
	return false
}
