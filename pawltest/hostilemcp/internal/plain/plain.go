// Package plain is the control of the kit: a client as a careful programmer writes it by hand, on
// the official SDK. It connects once, lists the tools, and calls them. An error of a call is a
// result for the model.
package plain

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// Client is one connection to a server.
type Client struct {
	URL        string   // the address; empty for a process
	Command    string   // the program of a process
	Env        []string // its environment, in addition to this program's
	ID, Secret string   // credentials; empty means none

	session *mcp.ClientSession
}

// limit is the time for connecting, for a list and for a call.
const limit = 8 * time.Second

// Connect connects to the server and reports whether it has the tool.
func (c *Client) Connect(ctx context.Context, tool string) error {
	transport, err := c.transport()
	if err != nil {
		return err
	}
	start, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "plain", Version: "1"}, nil)
	c.session, err = client.Connect(start, transport, nil)
	if err != nil {
		return err
	}

	list, err := c.session.ListTools(start, nil)
	if err != nil {
		return err
	}
	for _, t := range list.Tools {
		if t.Name == tool {
			return nil
		}
	}
	return fmt.Errorf("the server has no tool %s", tool)
}

func (c *Client) transport() (mcp.Transport, error) {
	if c.URL == "" {
		cmd := exec.Command(c.Command)
		cmd.Env = append(os.Environ(), c.Env...)
		return &mcp.CommandTransport{Command: cmd, TerminateDuration: time.Second}, nil
	}

	t := &mcp.StreamableClientTransport{Endpoint: c.URL}
	if c.ID == "" {
		return t, nil
	}
	var err error
	t.OAuthHandler, err = extauth.NewClientCredentialsHandler(&extauth.ClientCredentialsHandlerConfig{
		Credentials: &oauthex.ClientCredentials{
			ClientID:         c.ID,
			ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: c.Secret},
		},
	})
	return t, err
}

// Call calls a tool and returns the text of its result. An error is a text as well.
func (c *Client) Call(ctx context.Context, tool string, args map[string]any) string {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	res, err := c.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return "The call failed and may have happened: " + err.Error()
	}
	var text strings.Builder
	for _, content := range res.Content {
		if t, ok := content.(*mcp.TextContent); ok {
			text.WriteString(t.Text)
		}
	}
	return text.String()
}

// Close ends the connection.
func (c *Client) Close() {
	if c.session != nil {
		_ = c.session.Close() // a broken connection has an error
	}
}
