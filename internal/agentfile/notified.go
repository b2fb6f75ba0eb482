package agentfile

import (
	"errors"
	"strings"

	"github.com/pawl-go/pawl/internal/notify"
)

// notified opens the ways of the key notify. Only a server notifies people, so that the variables
// are not read otherwise.
func (b *builder) notified(out *Built) error {
	var all Findings
	for i := range b.agent.Notify {
		getenv := b.env
		if !b.opts.ForAll {
			getenv = func(string) string { return "https://unset.example" }
		}
		c, app, err := b.agent.Notify[i].Open(i, getenv)
		var wrong *notify.SettingError
		if errors.As(err, &wrong) {
			at := strings.TrimSuffix(index("notify", i)+"."+wrong.Key, ".")
			all = append(all, finding(CodeBadValue, at, "docs/notify.md has the form", "%s", wrong.Text))
			continue
		}
		out.Channels = append(out.Channels, c)
		if app != nil {
			out.Apps = append(out.Apps, app)
		}
	}
	return all.err()
}
