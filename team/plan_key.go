package team

// PlanKey names the value of a run that is a plan: a JSON object, with what is to be done in its
// member "phases" or "steps". A run that begins with it has it in its system text, after the
// instructions, under the heading STRATEGIC PLAN, and so have the runs that agents make inside its
// calls (Agent.Tool). A run takes one from the Result that it is resumed from:
//
//	agent.Resume(ctx, &pawl.Result{Values: pawl.Values{PlanKey: plan}}, llm.User(task))
//
// A value that is no JSON object is an error before anything is sent.
const PlanKey = "strategic_plan"
