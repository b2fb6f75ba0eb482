package notify

import (
	"fmt"
	"strings"
)

// Setting is an entry of the key notify of an agent's file. It has one of webhook, slack, email and
// desktop.
type Setting struct {
	// The events: waits (a call waits for an answer), failed and ended. Default: waits and
	// failed.
	On []string `yaml:"on" enum:"waits,failed,ended"`

	// A signed request to an address of yours.
	Webhook *Webhook `yaml:"webhook"`

	// A message in a channel of Slack.
	Slack *Slack `yaml:"slack"`

	// An e-mail, by SMTP or by a command.
	Email *Email `yaml:"email"`

	// A notification on the desktop of this machine, by notify-send or osascript.
	Desktop bool `yaml:"desktop"`
}

// Webhook is a signed request.
type Webhook struct {
	// The address. It receives a POST with the event as JSON.
	URL string `yaml:"url" required:"true"`

	// The environment variable with the key of the signature, which follows Standard Webhooks.
	SecretEnv string `yaml:"secret_env" required:"true"`
}

// Slack is a message in a channel of Slack.
type Slack struct {
	// The environment variable with the address of an incoming webhook of Slack, which is a secret.
	WebhookEnv string `yaml:"webhook_env" required:"true"`

	// The environment variable with the signing secret of the Slack app. With it and approvers, a
	// question has buttons, whose requests come to /hooks/slack. Default: no buttons.
	SigningEnv string `yaml:"signing_env"`

	// The member IDs of the people whose buttons count, such as U024BE7LH.
	Approvers []string `yaml:"approvers"`
}

// Email is a message by mail.
type Email struct {
	// The addresses that receive it.
	To []string `yaml:"to" required:"true"`

	// The address that sends it.
	From string `yaml:"from" required:"true"`

	// The mail server, as HOST:PORT. It must offer TLS, except on this machine.
	SMTP string `yaml:"smtp"`

	// The user of the mail server. Default: no login.
	User string `yaml:"user"`

	// The environment variable with the password of user.
	PasswordEnv string `yaml:"password_env"`

	// A program that takes the message on standard input, in place of smtp: [sendmail, -t, -i].
	Command []string `yaml:"command"`
}

// SettingError is a mistake in a Setting.
type SettingError struct {
	Key  string // the key, such as slack.webhook_env
	Text string
}

// Error returns "key: text".
func (e *SettingError) Error() string { return e.Key + ": " + e.Text }

// Open returns the channel of the setting with this number, and the Slack app that answers its
// questions; nil means that there is none. getenv returns environment variables. The error is a
// *SettingError.
func (s *Setting) Open(number int, getenv func(string) string) (c Channel, app *SlackApp, err error) {
	ways := []struct {
		name string
		set  bool
		open func(func(string) string) (Channel, *SlackApp, error)
	}{
		{"webhook", s.Webhook != nil, s.Webhook.open},
		{"slack", s.Slack != nil, s.Slack.open},
		{"email", s.Email != nil, s.Email.open},
		{"desktop", s.Desktop, openDesktop},
	}
	for _, way := range ways {
		switch {
		case !way.set:
			continue
		case c.Send != nil:
			return c, nil, &SettingError{way.name, "one entry has one way; give each its own entry"}
		}
		if c, app, err = way.open(getenv); err != nil {
			return c, nil, err
		}
		c.Name = fmt.Sprintf("%d %s", number, way.name)
	}
	if c.Send == nil {
		return c, nil, &SettingError{"", "the way is missing: webhook, slack, email or desktop"}
	}

	c.Kinds = []Kind{Waits, Failed}
	if len(s.On) > 0 {
		c.Kinds = nil
		for _, kind := range s.On {
			c.Kinds = append(c.Kinds, Kind(kind))
		}
	}
	return c, app, nil
}

// secret returns the value of a variable that a key names.
func secret(getenv func(string) string, key, variable string) (string, error) {
	value := strings.TrimSpace(getenv(variable))
	if value == "" {
		return "", &SettingError{key, "the variable " + variable + " is not set"}
	}
	return value, nil
}
