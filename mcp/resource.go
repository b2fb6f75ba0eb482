package mcp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Resource is data that MCP clients read by its URI, or all data of a kind. Its functions get the
// value of the variable in a URI. They return pawl.ErrNotFound for data that does not exist, or
// that the caller in ctx may not read.
type Resource struct {
	// URI is the address, or a template of RFC 6570 with a variable at its end, such as
	// pawl://runs/{id}.
	URI         string
	Name        string // of a program, for lists
	Description string // for people and models
	MIME        string // empty means unknown

	// Read returns the data. value is the variable of a template, and empty without one.
	Read func(ctx context.Context, value string) (llm.Media, error)
	// Version returns a text that changes with the data. It is called every second while a client
	// is subscribed. Nil means that clients cannot subscribe.
	Version func(ctx context.Context, value string) (string, error)
	// Values returns values that begin with prefix; others are ignored. Nil means that clients
	// cannot list the data.
	Values func(ctx context.Context, prefix string) ([]string, error)
}

// uriOf returns the URI for a value.
func (r *Resource) uriOf(value string) string {
	before, variable, _ := strings.Cut(r.URI, "{")
	value = strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
	if strings.HasPrefix(variable, "+") {
		value = strings.ReplaceAll(value, "%2F", "/")
	}
	return before + value
}

// value returns the value in a URI. It returns false for the URI of another resource.
func (r *Resource) value(uri string) (string, bool) {
	before, _, template := strings.Cut(r.URI, "{")
	escaped, ok := strings.CutPrefix(uri, before)
	value, err := url.PathUnescape(escaped)
	switch {
	case !ok || err != nil:
		return value, false
	case template:
		return value, true
	}
	return value, value == "" // a resource without a variable is one URI
}

// maxFile is the maximum size of a file that is offered.
const maxFile = 4 << 20

// Files returns files as resources with URIs below base, such as pawl://files. names are their
// paths, and patterns of path.Match. Files larger than 4 MiB are left out, and names that begin
// with a dot unless they are written so. The file system of an os.Root follows no link that leads
// out of it.
func Files(base string, files fs.FS, names ...string) Resource {
	r := Resource{URI: base + "/{+path}", Name: "file", Description: "A file."}
	r.Values = func(context.Context, string) (found []string, err error) {
		for _, name := range names {
			matches, err := fs.Glob(files, path.Clean(name))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			for _, match := range matches {
				hidden := strings.Contains("/"+match, "/.") && !strings.Contains("/"+name, "/.")
				if !hidden && isOffered(files, match) {
					found = append(found, match)
				}
			}
		}
		slices.Sort(found)
		return slices.Compact(found), nil
	}
	r.Read = func(ctx context.Context, name string) (llm.Media, error) {
		// What is not listed cannot be read, so that patterns and limits hold for both.
		if list, err := r.Values(ctx, name); err != nil || !slices.Contains(list, name) {
			return llm.Media{}, errors.Join(err, pawl.ErrNotFound)
		}
		data, err := fs.ReadFile(files, name)
		kind, _, _ := strings.Cut(mime.TypeByExtension(path.Ext(name)), ";")
		return llm.Media{MIME: kind, Data: data}, err
	}
	return r
}

// isOffered reports whether a name is a regular file that is small enough.
func isOffered(files fs.FS, name string) bool {
	info, err := fs.Stat(files, name)
	return err == nil && info.Mode().IsRegular() && info.Size() <= maxFile
}

// offer offers a resource.
func (h *host) offer(r Resource) {
	read := func(ctx context.Context, q *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		m, err := h.read(ctx, q.Params.URI)
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{h.contents(m)}}, err
	}
	if !strings.Contains(r.URI, "{") {
		h.sdk.AddResource(&sdk.Resource{URI: r.URI, Name: r.Name, Description: r.Description, MIMEType: r.MIME}, read)
		return
	}
	h.sdk.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: r.URI, Name: r.Name, Description: r.Description,
		MIMEType: r.MIME}, read)
}

// find returns the resource of a URI with the value in the URI, or an empty resource.
func (h *host) find(uri string) (r Resource, value string) {
	for _, r := range h.service.Resources {
		if value, ok := r.value(uri); ok {
			return r, value
		}
	}
	return r, ""
}

// read reads a resource for a client.
func (h *host) read(ctx context.Context, uri string) (llm.Media, error) {
	r, value := h.find(uri)
	if r.Read == nil {
		return llm.Media{}, sdk.ResourceNotFoundError(uri)
	}
	m, err := r.Read(ctx, value)
	m.URL, m.MIME = uri, cmp.Or(m.MIME, r.MIME)
	if errors.Is(err, pawl.ErrNotFound) {
		return m, sdk.ResourceNotFoundError(uri)
	}
	return m, h.service.Secrets.Error(err)
}

// contents returns data, as text if it is text.
func (h *host) contents(m llm.Media) *sdk.ResourceContents {
	// a nil Blob would be no content
	c := &sdk.ResourceContents{URI: m.URL, MIMEType: m.MIME, Blob: append([]byte{}, m.Data...)}
	if len(m.Data) > 0 && utf8.Valid(m.Data) && !bytes.ContainsRune(m.Data, 0) {
		c.Text = h.service.Secrets.String(string(m.Data))
		c.Blob = nil
	}
	return c
}

// values returns values for the client.
func (h *host) values(ctx context.Context, r Resource, prefix string) (values []string, err error) {
	if r.Values != nil {
		values, err = r.Values(ctx, prefix)
	}
	if errors.Is(err, pawl.ErrNotFound) {
		err = nil
	}
	return values, h.service.Secrets.Error(err)
}

// results is a middleware that adds the data of templates to the list of resources, and returns a
// task instead of the result of a call that takes long.
func (h *host) results(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		made := ""
		res, err := next(context.WithValue(ctx, madeKey{}, &made), method, r)
		if made != "" {
			res, _, err = h.task(ctx, made, "task", nil)
		}
		if list, ok := res.(*sdk.ListResourcesResult); ok && err == nil && list.NextCursor == "" {
			for _, t := range h.service.Resources {
				values, errList := h.values(ctx, t, "")
				err = cmp.Or(err, errList)
				for _, v := range values {
					list.Resources = append(list.Resources, &sdk.Resource{URI: t.uriOf(v), Name: v, MIMEType: t.MIME})
				}
			}
		}
		return res, err
	}
}

const maxWatches = 64 // for a session

// watch is a subscription of a session.
type watch struct {
	stop    context.CancelFunc
	changed atomic.Bool // since the last notification
}

// subscribe watches a resource until the session ends or unsubscribes.
func (h *host) subscribe(ctx context.Context, r *sdk.SubscribeRequest) error {
	t, value := h.find(r.Params.URI)
	version := ""
	err := pawl.ErrNotFound
	if t.Version != nil {
		version, err = t.Version(ctx, value)
	}
	if err != nil {
		return sdk.ResourceNotFoundError(r.Params.URI)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.watches[r.Session]
	switch {
	case all[r.Params.URI] != nil:
		return nil
	case len(all) >= maxWatches:
		return fmt.Errorf("a session can subscribe to at most %d resources", maxWatches)
	case all == nil:
		all = map[string]*watch{}
		h.watches[r.Session] = all
		go h.stopWatches(r.Session)
	}

	// The watch outlives the request.
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	w := &watch{stop: stop}
	all[r.Params.URI] = w
	go h.pollVersion(ctx, r.Params.URI, w, version, func() (string, error) { return t.Version(ctx, value) })
	return nil
}

// stopWatches ends the watches of a session when the session ends.
func (h *host) stopWatches(session *sdk.ServerSession) {
	_ = session.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.watches[session] {
		w.stop()
	}
	delete(h.watches, session)
}

// unsubscribe ends a watch.
func (h *host) unsubscribe(_ context.Context, r *sdk.UnsubscribeRequest) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w := h.watches[r.Session][r.Params.URI]; w != nil {
		w.stop()
		delete(h.watches[r.Session], r.Params.URI)
	}
	return nil
}

// pollVersion notifies a session of changes, at most once a second, until ctx ends.
func (h *host) pollVersion(ctx context.Context, uri string, w *watch, version string, current func() (string, error)) {
	for tick := time.Tick(time.Second); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		is, err := current()
		if err != nil {
			is = err.Error() // such as that the data was deleted
		}
		if is != version && ctx.Err() == nil {
			version = is
			w.changed.Store(true)
			_ = h.sdk.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: uri})
		}
	}
}

// onlyChanged is a middleware that notifies only sessions for which a resource changed: a URI may
// have other data for another user.
func (h *host) onlyChanged(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		if p, ok := r.GetParams().(*sdk.ResourceUpdatedNotificationParams); ok {
			h.mu.Lock()
			w := h.watches[r.GetSession()][p.URI]
			h.mu.Unlock()
			if w == nil || !w.changed.CompareAndSwap(true, false) {
				return nil, nil
			}
		}
		return next(ctx, method, r)
	}
}

// Prompt is a text for a client's model, which a person chooses. It is plain data.
type Prompt struct {
	// The name, for programs.
	Name string `yaml:"name" required:"true"`

	// The name for people. Default: none.
	Title string `yaml:"title"`

	// What the prompt is for.
	Description string `yaml:"description"`

	// Values that the person gives.
	Arguments []Argument `yaml:"arguments"`

	// The text. {NAME} stands for the argument NAME.
	Text string `yaml:"text" required:"true"`

	// URIs of resources that follow the text, such as pawl://files/AGENT/docs/style.md or
	// pawl://runs/{run}. Default: none.
	Resources []string `yaml:"resources"`
}

// Argument is an argument of a Prompt.
type Argument struct {
	// The name.
	Name string `yaml:"name" required:"true"`

	// What the argument is for.
	Description string `yaml:"description"`

	// Whether the prompt needs it. Default: false.
	Required bool `yaml:"required"`

	// Values that are proposed while the person types. Default: none.
	Values []string `yaml:"values"`
}

// offerPrompt offers a prompt.
func (h *host) offerPrompt(p Prompt) {
	def := &sdk.Prompt{Name: p.Name, Title: p.Title, Description: p.Description}
	for _, a := range p.Arguments {
		arg := &sdk.PromptArgument{Name: a.Name, Description: a.Description, Required: a.Required}
		def.Arguments = append(def.Arguments, arg)
	}
	h.sdk.AddPrompt(def, func(ctx context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		var args []string
		for _, a := range p.Arguments {
			if a.Required && r.Params.Arguments[a.Name] == "" {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the prompt needs the argument " + a.Name}
			}
			args = append(args, "{"+a.Name+"}", r.Params.Arguments[a.Name])
		}
		fill := strings.NewReplacer(args...)
		text := &sdk.PromptMessage{Role: "user", Content: &sdk.TextContent{Text: fill.Replace(p.Text)}}
		out := &sdk.GetPromptResult{Description: p.Description, Messages: []*sdk.PromptMessage{text}}
		for _, uri := range p.Resources {
			m, err := h.read(ctx, fill.Replace(uri))
			if err != nil {
				return nil, err
			}
			out.Messages = append(out.Messages, &sdk.PromptMessage{Role: "user", Content: h.content(m)})
		}
		return out, nil
	})
}

// content converts a part of a prompt or a result. Nil means that MCP has no such content.
func (h *host) content(part llm.Part) sdk.Content {
	switch p := part.(type) {
	case llm.Text:
		return &sdk.TextContent{Text: p.Text}
	case llm.Media:
		kind, _, _ := strings.Cut(p.MIME, "/")
		switch {
		case p.URL != "" && len(p.Data) == 0:
			return &sdk.ResourceLink{URI: p.URL, Name: "media", MIMEType: p.MIME}
		case kind == "image":
			return &sdk.ImageContent{MIMEType: p.MIME, Data: p.Data}
		case kind == "audio":
			return &sdk.AudioContent{MIMEType: p.MIME, Data: p.Data}
		}
		p.URL = cmp.Or(p.URL, "pawl:result")
		return &sdk.EmbeddedResource{Resource: h.contents(p)}
	}
	return nil
}

// maxValues is the maximum number of values in a completion, by the protocol.
const maxValues = 100

// complete returns values of an argument of a prompt, or of the variable of a resource.
func (h *host) complete(ctx context.Context, r *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
	ref := r.Params.Ref
	arg := r.Params.Argument
	var values []string
	var err error
	for _, p := range slices.Backward(h.service.Prompts) {
		for _, a := range p.Arguments {
			if p.Name == ref.Name && a.Name == arg.Name {
				values = slices.Clone(a.Values)
			}
		}
	}
	for _, t := range h.service.Resources {
		if t.URI == ref.URI {
			values, err = h.values(ctx, t, arg.Value)
		}
	}
	values = slices.DeleteFunc(values, func(v string) bool { return !strings.HasPrefix(v, arg.Value) })
	n := min(len(values), maxValues)
	return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{HasMore: n < len(values),
		Values: append([]string{}, values[:n]...)}}, err
}
