package agentfile

// rules_file.go: files with approval rules alone.

import "github.com/pawl-go/pawl/policy"

// ReadRules reads a file with approval rules: what stands below approve in the file of an agent.
// Unknown keys and files without a rule are findings.
func ReadRules(name string) (*Approve, error) {
	text, err := readBounded(name)
	if err != nil {
		return nil, Findings{{Code: CodeUnreadable, File: name, Message: cause(err)}}
	}

	rules := new(Approve)
	d := ReadDocument(name, text, rules, nil)
	lists := len(rules.Deny) + len(rules.Ask) + len(rules.Allow)
	if d.Err() == nil && lists == 0 && rules.Else == "" {
		d.Report(CodeEmpty, "", "want the keys deny, ask, allow, else and within, as below approve in the file of an agent",
			"the file has no rule")
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	return rules, nil
}

// Policy returns the rules as a policy.
func (r *Approve) Policy() policy.Rules {
	return (&Agent{Approve: *r}).Rules()
}
