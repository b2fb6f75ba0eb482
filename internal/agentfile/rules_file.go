package agentfile

// rules_file.go: files with approval rules alone.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-go/pawl/policy"
)

// ReadRules reads a file with approval rules: what stands below approve in the file of an agent.
// Unknown keys and files without a rule are errors.
func ReadRules(name string) (*Approve, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	const want = "want the keys deny, ask, allow, else and within, as below approve in the file of an agent"
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	rules := new(Approve)
	err = d.Decode(rules)
	var fault *yaml.TypeError
	switch {
	case errors.As(err, &fault):
		text := strings.ReplaceAll(strings.Join(fault.Errors, "; "), " in type agentfile.Approve", "")
		return nil, fmt.Errorf("%s: %s; %s", name, text, want)
	case err != nil && !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s: %w; %s", name, err, want)
	case len(rules.Deny)+len(rules.Ask)+len(rules.Allow) == 0 && rules.Else == "":
		return nil, fmt.Errorf("%s: the file has no rule; %s", name, want)
	}
	switch rules.Else {
	case "", "allow", "ask", "deny":
		return rules, nil
	}
	return nil, fmt.Errorf("%s: else: %q; want allow, ask or deny", name, rules.Else)
}

// Policy returns the rules as a policy.
func (r *Approve) Policy() policy.Rules {
	return (&Agent{Approve: *r}).Rules()
}
