package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/smtp"
	"net/textproto"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// open returns the channel of an e-mail.
func (m *Email) open(getenv func(string) string) (c Channel, _ *SlackApp, err error) {
	if err := m.check(); err != nil {
		return c, nil, err
	}
	if len(m.Command) > 0 {
		c.Send = m.pipe
		return c, nil, nil
	}

	host, _, err := net.SplitHostPort(m.SMTP)
	if err != nil {
		return c, nil, &SettingError{"email.smtp", "want HOST:PORT, such as smtp.example.com:587"}
	}
	var login smtp.Auth
	if m.User != "" {
		password, err := secret(getenv, "email.password_env", m.PasswordEnv)
		if err != nil {
			return c, nil, err
		}
		login = smtp.PlainAuth("", m.User, password, host)
	}
	c.Send = func(ctx context.Context, e *Event) error { return m.mail(ctx, host, login, e) }
	return c, nil, nil
}

// isMailbox reports whether an address can stand in a header: it has no line end and no list.
func isMailbox(address string) bool {
	return strings.Contains(address, "@") && !strings.ContainsAny(address, "\r\n,;<> ")
}

// check returns a mistake of the addresses, and of the way.
func (m *Email) check() error {
	wrong := func(address string) bool { return !isMailbox(address) }
	switch {
	case len(m.To) == 0 || slices.ContainsFunc(m.To, wrong):
		return &SettingError{"email.to", "want addresses, such as ops@example.com"}
	case !isMailbox(m.From):
		return &SettingError{"email.from", "want an address, such as pawl@example.com"}
	case (m.SMTP == "") == (len(m.Command) == 0):
		return &SettingError{"email", "want one of smtp: HOST:PORT and command: [PROGRAM]"}
	case (m.User == "") != (m.PasswordEnv == ""):
		return &SettingError{"email.user", "a login needs user and password_env"}
	}
	return nil
}

// pipe passes the message to a program.
func (m *Email) pipe(ctx context.Context, e *Event) error {
	cmd := exec.CommandContext(ctx, m.Command[0], m.Command[1:]...)
	cmd.Stdin = bytes.NewReader(m.message(e, time.Now()))
	cmd.WaitDelay = time.Second // a program that it has started may keep the output open
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay): // the status is 0
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s was killed: %w", m.Command[0], ErrUnknown)
	}
	return fmt.Errorf("%s: %w: %s", m.Command[0], err, shortened(strings.TrimSpace(string(out))))
}

// mail sends the message to the mail server. An error before the server has the message means that
// nothing was sent.
func (m *Email) mail(ctx context.Context, host string, login smtp.Auth, e *Event) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", m.SMTP)
	if err != nil {
		return fmt.Errorf("the mail server cannot be reached: %w", err)
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		conn.SetDeadline(deadline)
	}
	c, err := smtp.NewClient(conn, host)
	if err != nil {
		return err
	}
	if err := m.prepare(c, host, login); err != nil {
		return err
	}

	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write(m.message(e, time.Now())); err != nil {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	// The server accepts the message with its answer to the end of it.
	err = w.Close()
	var refused *textproto.Error
	switch {
	case errors.As(err, &refused):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	c.Quit() // the message is accepted already
	return nil
}

// prepare encrypts the connection, logs in, and names the sender and the receivers.
func (m *Email) prepare(c *smtp.Client, host string, login smtp.Auth) error {
	encrypts, _ := c.Extension("STARTTLS")
	ip := net.ParseIP(host)
	local := host == "localhost" || ip != nil && ip.IsLoopback()
	switch {
	case encrypts:
		if err := c.StartTLS(&tls.Config{ServerName: host}); err != nil {
			return err
		}
	case !local:
		return fmt.Errorf("the mail server %s does not offer TLS, so nothing is sent", host)
	}

	if login != nil {
		if err := c.Auth(login); err != nil {
			return err
		}
	}
	if err := c.Mail(m.From); err != nil {
		return err
	}
	for _, to := range m.To {
		if err := c.Rcpt(to); err != nil {
			return err
		}
	}
	return nil
}

// message returns the message with its headers. All attempts have one Message-ID, so that mail
// programs show a repeated message once.
func (m *Email) message(e *Event, now time.Time) []byte {
	var out bytes.Buffer
	_, domain, _ := strings.Cut(m.From, "@")
	subject := strings.Join(strings.Fields(e.Title()), " ") // a line end would begin a header
	for _, header := range [][2]string{
		{"From", m.From},
		{"To", strings.Join(m.To, ", ")},
		{"Subject", mime.QEncoding.Encode("utf-8", subject)},
		{"Date", now.Format(time.RFC1123Z)},
		{"Message-ID", "<" + e.ID + "@" + domain + ">"},
		{"MIME-Version", "1.0"},
		{"Content-Type", "text/plain; charset=utf-8"},
		{"Content-Transfer-Encoding", "quoted-printable"},
	} {
		fmt.Fprintf(&out, "%s: %s\r\n", header[0], header[1])
	}
	out.WriteString("\r\n")

	w := quotedprintable.NewWriter(&out)
	w.Write([]byte(strings.ReplaceAll(e.Body(), "\n", "\r\n"))) // a Buffer has no errors
	w.Close()
	out.WriteString("\r\n")
	return out.Bytes()
}
