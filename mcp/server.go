package mcp

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/webaddress"
)

// Server describes how to reach an MCP server and which of its features are used. It is plain data
// for configurations. Either Command or URL is set.
type Server struct {
	// Name is the local name: letters, digits, _ and -, beginning with a letter. In YAML it is the
	// key of the entry.
	Name string `json:"name,omitempty" yaml:"-"`

	// A program that speaks MCP on standard input and output.
	Command string `json:"command,omitempty" yaml:"command"`

	// Its arguments.
	Args []string `json:"args,omitempty" yaml:"args"`

	// Working directory. Default: the current directory or, for a server in a file, the folder of
	// the file.
	Dir string `json:"dir,omitempty" yaml:"dir"`

	// Variables in addition to PATH, HOME and similar ones: NAME copies one, NAME=value sets one.
	Env []string `json:"env,omitempty" yaml:"env"`

	// Address of the server, instead of command.
	URL string `json:"url,omitempty" yaml:"url"`

	// For url: http (streamable) or sse. Default: http.
	Transport string `json:"transport,omitempty" yaml:"transport" enum:"http,sse"`

	// Sent with each request to url.
	Headers map[string]string `json:"headers,omitempty" yaml:"headers"`

	// Hosts that may be reached although they are not public, in the form of http_allow. An IP
	// address or localhost in url is allowed without an entry.
	Allow []string `json:"allow,omitempty" yaml:"allow"`

	// How to obtain a token. Default: a server that requires a login is an error.
	OAuth *OAuth `json:"oauth,omitempty" yaml:"oauth"`

	// Trust its annotations: tools that it calls read-only need no approval.
	Trust bool `json:"trust,omitempty" yaml:"trust"`

	// Prefix of the names of its tools; - means none. Default: its name and an underscore.
	Prefix string `json:"prefix,omitempty" yaml:"prefix"`

	// Names or patterns (read_*) of the tools to use, in the server's spelling. Default: all.
	Include []string `json:"include,omitempty" yaml:"include"`

	// Tools not to use. Takes precedence over include.
	Exclude []string `json:"exclude,omitempty" yaml:"exclude"`

	// A call of its tools waits for no other call of its step, and none waits for it. Default:
	// Writes run in the order of the reply.
	Concurrent bool `json:"concurrent,omitempty" yaml:"concurrent"`

	// Offer its resources, as tools that list and read them.
	Resources bool `json:"resources,omitempty" yaml:"resources"`

	// Offer its prompts, as tools that list and read them.
	Prompts bool `json:"prompts,omitempty" yaml:"prompts"`

	// A run continues without it if it cannot be reached.
	Optional bool `json:"optional,omitempty" yaml:"optional"`

	// Limit for starting, and for listing. Default: 30.
	StartSeconds int `json:"start_seconds,omitempty" yaml:"start_seconds" min:"0"`

	// Limit for a call; -1 means no limit. Default: 60.
	CallSeconds int `json:"call_seconds,omitempty" yaml:"call_seconds"`
}

// OAuth describes how to obtain a token for a server. With ClientID and SecretEnv the program
// itself is the user (client credentials). Otherwise a person logs in (Options.Login) under
// ClientID, which is a name or the https address of a document that describes the client. If
// ClientID is empty, the client registers dynamically. With Identity the caller of each run is the
// user. Tokens are held in memory only.
type OAuth struct {
	// ID of the client, or the https address of a document that describes it.
	ClientID string `json:"client_id,omitempty" yaml:"client_id"`

	// The environment variable that holds the client's secret.
	SecretEnv string `json:"secret_env,omitempty" yaml:"secret_env"`

	// Address to which a person's login redirects; only in Go.
	Redirect string `json:"redirect,omitempty" yaml:"redirect"`

	// The identity provider that knows the callers of runs: the ID token of a caller is exchanged
	// for a token of the server, for a session of his own.
	Identity *Identity `json:"identity,omitempty" yaml:"identity"`
}

// Identity is an identity provider of a company, which decides for its users about MCP servers
// (enterprise-managed authorization). It exchanges the ID token of a user for a grant, and the
// server's authorization server exchanges the grant for a token. OAuth.ClientID is the client
// there.
type Identity struct {
	// Address of the identity provider, as in its metadata.
	Issuer string `json:"issuer" yaml:"issuer"`

	// Address of the authorization server of the MCP server, as in its metadata.
	Server string `json:"server" yaml:"server"`

	// ID of the client at the identity provider. Default: the client_id of oauth.
	ClientID string `json:"client_id,omitempty" yaml:"client_id"`

	// The environment variable that holds the client's secret at the identity provider.
	SecretEnv string `json:"secret_env,omitempty" yaml:"secret_env"`

	// The scopes to request. Default: the scopes of the server.
	Scopes []string `json:"scopes,omitempty" yaml:"scopes"`
}

var (
	serverName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,31}$`)
	toolPrefix = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,31}$`)
)

// Check returns what is wrong with s, or nil.
func (s *Server) Check() error {
	err := s.check()
	if err != nil {
		return fmt.Errorf("mcp server %q: %w", s.Name, err)
	}
	return nil
}

func (s *Server) check() error {
	switch {
	case !serverName.MatchString(s.Name):
		return errors.New("its name must be letters, digits, _ and -, begin with a letter and have 32 at most")
	case s.Command == "" && s.URL == "":
		return errors.New("it has neither command nor url")
	case s.Command != "" && s.URL != "":
		return errors.New("it has both command and url")
	}

	var err error
	if s.URL != "" {
		err = s.checkURL()
	} else {
		err = s.checkCommand()
	}
	if err != nil {
		return err
	}

	if p := s.NamePrefix(); p != "" && !toolPrefix.MatchString(p) {
		return fmt.Errorf("prefix %q: want letters, digits and underscores, at most 32", s.Prefix)
	}
	if s.StartSeconds < 0 {
		return errors.New("start_seconds is negative")
	}
	for _, p := range slices.Concat(s.Include, s.Exclude) {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return fmt.Errorf("include, exclude: %q is not a pattern", p)
		}
	}
	return nil
}

// checkCommand checks the fields of a server that is a program.
func (s *Server) checkCommand() error {
	overStdio := s.Transport == "" || s.Transport == "stdio"
	if !overStdio || s.OAuth != nil || len(s.Headers) > 0 {
		return errors.New("transport, headers and oauth are for a server with a url")
	}
	for _, e := range s.Env {
		name, _, _ := strings.Cut(e, "=")
		if name == "" || strings.ContainsAny(name, " \t\x00") {
			return fmt.Errorf("env: %q is not the name of a variable", e)
		}
	}
	return nil
}

// checkURL checks the fields of a server that has an address.
func (s *Server) checkURL() error {
	if len(s.Args) > 0 || len(s.Env) > 0 || s.Dir != "" {
		return errors.New("args, env and dir are for a server with a command")
	}
	switch s.Transport {
	case "", "http", "sse":
	default:
		return fmt.Errorf("there is no transport %q; there are http and sse", s.Transport)
	}

	u, ok := webaddress.Parse(s.URL)
	if !ok {
		return errors.New("url: want a whole address that begins with https:// or http:// and a host")
	}
	if u.User != nil {
		return errors.New("url: it has a name or a password in it; send them in a header")
	}

	if s.OAuth == nil {
		return nil
	}
	return s.OAuth.check()
}

func (a *OAuth) check() error {
	if a.SecretEnv != "" && a.ClientID == "" {
		return errors.New("oauth: secret_env needs client_id")
	}
	if a.Identity == nil {
		return nil
	}

	if a.ClientID == "" || a.Redirect != "" {
		return errors.New("oauth: identity needs client_id, and takes no redirect, because there is no login page")
	}
	for name, address := range map[string]string{"issuer": a.Identity.Issuer, "server": a.Identity.Server} {
		if _, ok := webaddress.Parse(address); !ok {
			return fmt.Errorf("oauth: identity: %s: want a whole address that begins with https:// and a host", name)
		}
	}
	return nil
}

// identity returns the program or address behind the name, for tools.lock: an entry is valid for
// this identity only.
func (s *Server) identity() string {
	if s.URL != "" {
		return s.URL
	}
	return strings.Join(append([]string{s.Command}, s.Args...), " ")
}

// NamePrefix returns the prefix of the model's names for its tools.
func (s *Server) NamePrefix() string {
	switch s.Prefix {
	case "":
		return strings.ReplaceAll(s.Name, "-", "_") + "_"
	case "-":
		return ""
	}
	return s.Prefix
}

// wanted reports whether the configuration selects the tool.
func (s *Server) wanted(name string) bool {
	match := func(patterns []string) bool {
		for _, p := range patterns {
			if ok, _ := path.Match(p, name); ok || p == name {
				return true
			}
		}
		return false
	}
	return !match(s.Exclude) && (len(s.Include) == 0 || match(s.Include))
}

// Parse parses a server as written on a command line: a URL, or a command with its arguments. The
// command is split at spaces, with the quotes of a shell and no other syntax. A name and an equals
// sign may precede it. Without a name, the server is named after the host or the program: npx -y
// @acme/server-files becomes files.
func Parse(text string) (Server, error) {
	var s Server
	text = strings.TrimSpace(text)
	if name, rest, ok := strings.Cut(text, "="); ok && serverName.MatchString(name) {
		s.Name = name
		text = strings.TrimSpace(rest)
	}

	if strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") {
		s.URL = text
		if u, err := url.Parse(text); err == nil && s.Name == "" {
			s.Name = nameFrom(u.Hostname())
		}
		return s, s.Check()
	}

	words, err := split(text)
	if err != nil {
		return s, fmt.Errorf("mcp server %q: %w", text, err)
	}
	if len(words) == 0 {
		return s, errors.New("mcp server: it has neither command nor url")
	}
	s.Command = words[0]
	s.Args = words[1:]
	if s.Name == "" {
		s.Name = nameFrom(program(words))
	}
	return s, s.Check()
}

// program returns the most specific word of a command line: the package or script if the program
// runs one.
func program(words []string) string {
	switch strings.TrimSuffix(path.Base(words[0]), ".exe") {
	case "npx", "uvx", "node", "bunx", "deno", "python", "python3", "uv", "bun":
		for _, w := range words[1:] {
			isFlag := strings.HasPrefix(w, "-")
			isVerb := slices.Contains([]string{"run", "x", "tool"}, w)
			if !isFlag && !isVerb {
				return w
			}
		}
	}
	return words[0]
}

var (
	npmVersion = regexp.MustCompile(`(.)@[^/@]*$`)
	plainWord  = regexp.MustCompile(`^(mcp-server-|server-|mcp-)|(-mcp-server|-server|-mcp)$`)
	notInName  = regexp.MustCompile(`[^A-Za-z0-9_]+`)
)

// nameFrom makes the name of a server from the name of a package, a script or a host.
func nameFrom(s string) string {
	s = npmVersion.ReplaceAllString(s, "$1")
	s = path.Base(strings.ReplaceAll(s, `\`, "/"))
	for _, ext := range []string{".js", ".mjs", ".cjs", ".ts", ".py", ".exe"} {
		s = strings.TrimSuffix(s, ext)
	}
	if short := plainWord.ReplaceAllString(s, ""); short != "" {
		s = short
	}
	s = strings.Trim(notInName.ReplaceAllString(s, "_"), "_")
	if s == "" || !letter(s[0]) {
		s = "mcp"
	}
	return s[:min(len(s), 24)]
}

// split splits a command line into words.
func split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	in := false      // a word has begun, even if it is empty so far
	quote := rune(0) // the open quote; 0 means none
	escaped := false // the next character stands for itself

	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			in = true
			escaped = true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			in = true
			quote = r
		case r == ' ' || r == '\t' || r == '\n':
			if in {
				words = append(words, word.String())
				word.Reset()
			}
			in = false
		default:
			in = true
			word.WriteRune(r)
		}
	}

	if quote != 0 || escaped {
		return nil, errors.New("a quotation is not closed")
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}

// startTime returns the limit for starting and listing.
func (s *Server) startTime() time.Duration {
	if s.StartSeconds == 0 {
		return 30 * time.Second
	}
	return time.Duration(s.StartSeconds) * time.Second
}

// callTime returns the limit for a call, in the form of pawl.Tool.Timeout.
func (s *Server) callTime() time.Duration { return time.Duration(s.CallSeconds) * time.Second }
