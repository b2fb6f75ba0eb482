package notify

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
)

var errNoDesktop = errors.New("neither notify-send nor osascript is installed")

// openDesktop returns the channel of notifications on the desktop.
func openDesktop(func(string) string) (Channel, *SlackApp, error) {
	return Channel{Send: showOnDesktop}, nil, nil
}

// showOnDesktop shows an event on the desktop. The texts are arguments, which no shell reads.
func showOnDesktop(ctx context.Context, e *Event) error {
	cmd, err := desktopCommand(ctx, e)
	if err != nil {
		return err
	}
	err = cmd.Run()
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%s was killed: %w", cmd.Path, ErrUnknown)
	}
	return err
}

// desktopCommand returns the program that shows an event.
func desktopCommand(ctx context.Context, e *Event) (*exec.Cmd, error) {
	if path, err := exec.LookPath("notify-send"); err == nil {
		return exec.CommandContext(ctx, path, "--app-name=pawl", "--", e.Title(), e.Body()), nil
	}
	if path, err := exec.LookPath("osascript"); err == nil {
		const program = "on run a\ndisplay notification (item 2 of a) with title (item 1 of a)\nend run"
		return exec.CommandContext(ctx, path, "-e", program, e.Title(), e.Body()), nil
	}
	return nil, errNoDesktop
}
