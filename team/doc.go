// Package team makes agents of agents: one leads, others work.
//
// A team is a pawl.Agent and is used as one: run, streamed, resumed, made durable, given to another
// agent as a tool, or to another team as a worker. There is no second loop and no second executor;
// only the model differs. The model of a team is a few lines of code that look at the transcript
// and return the next calls. A question to the lead is a call, too:
//
//	orchestrator  ─ make_plan ─▶ the lead, held to the form of a Plan run/1/0/orchestrator/0/model
//	              ─ clerk, scout ─▶ workers, by phase, together       run/2/0/clerk/0/model
//	              ─ sum_up ─▶ the lead, for the answer                run/3/0/orchestrator/0/model
//
// So a delegation is a call like any other. It is validated, approved, counted and recorded, and it
// has its key and its place in one budget. Several delegations in one step run together, a cancel
// reaches them, and after a crash the calls that have ended are not executed again. The plan is
// data in the transcript (the result of make_plan), an event (a notice with the code
// strategic_plan), and a value of the run (PlanKey), by which it is part of the system
// prompt of every worker.
//
// There are four ways to lead:
//
//	Strategic   the lead makes a plan of phases, the workers execute them, the lead sums up
//	Router      one worker gets the task: by rules, else the lead chooses
//	Script      the lead writes steps for the workers, direct (calls of their tools) or guided
//	            (a task in words)
//	Network     the lead's own model gives tasks to workers, as it calls its other tools
//
// Handoff is different: no agent leads. An agent gives the conversation to another agent, which
// answers from then on.
//
// The lead is an agent: its Name, Instructions, Model, Settings, Limits, Middleware and Output are
// the team's. Only the lead of a Network has tools of its own. Middleware that wraps models wraps
// the lead's requests; middleware that wraps calls wraps delegations: a rule that asks before calls
// of clerk asks before clerk gets work.
//
// A task that a worker gets twice in one turn is done once: the second call returns the result of
// the first. Nested teams end by the core's bound on nested calls, which is 3: a call that is
// nested deeper returns an error as its result.
package team
