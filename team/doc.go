// Package team makes agents of agents: one leads, others work.
//
// A team is a pawl.Agent, and is used as one: run, streamed, resumed, made durable, given to another agent as a tool, or to another team as a worker. There is no
// second loop and no second executor. What differs is the model. That of a team is a few lines of code which look at the transcript and say what is called next;
// what is to be thought about is asked for by a call, too:
//
//	orchestrator   ── make_plan ──▶ the lead, held to the form of a Plan      run/1/0/orchestrator/0/model
//	               ── clerk, scout ──▶ workers, phase by phase, together      run/2/0/clerk/0/model
//	               ── sum_up ──▶ the lead, for the answer                     run/3/0/orchestrator/0/model
//
// So a delegation is a call like any other. It is checked, approved, counted and recorded; it has its place in one budget, its slots and its key; several in one step run
// together; cancelling reaches it; and after a crash the calls that have ended are not made again. The plan is data in the transcript (the result of make_plan), an event
// (a notice with the code strategic_plan), and a value of the run (PlanKey), by which it stands in the system text of every worker.
//
// There are four ways to lead:
//
//	Strategic   the lead makes a plan of phases, the workers carry them out, the lead sums up
//	Router      one worker gets the task: by rules, else the lead says which
//	Script      the lead writes a script of steps for the workers, direct (calls of their tools) or guided (a task in words)
//	Network     the lead's own model gives tasks to workers, as it calls its other tools
//
// The lead is an agent: its Name, Instructions, Model, Settings, Limits, Middleware and Output are the team's; tools of its own it has in a Network alone. Of its Middleware, what wraps models is around its own
// requests, and what wraps calls is around delegations: a rule that asks before calls of clerk asks before clerk is given work.
//
// The same task is given to the same worker once in a turn: a second call is answered with what the first one gave. Teams inside teams end, by the bound that the core
// has for calls inside calls, 3 deep: the call that is too deep has an error for a result.
package team
