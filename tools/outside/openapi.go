package outside

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/webaddress"
	"github.com/pawl-go/pawl/tools/internal/webpage"
	"github.com/pawl-go/pawl/tools/internal/yamlvalue"
)

const (
	mostSpec = 32 << 20 // bytes of a document
	// tools of a document: the limit of providers, and more than a model can choose from
	mostTools       = 128
	mostDescription = 1000
)

// openapi creates the tools for a document.
func (m *maker) openapi(d *OpenAPI) ([]*pawl.Tool, error) {
	doc, err := m.document(d.Spec)
	if err != nil {
		return nil, err
	}
	s := &spec{maker: m, def: d, doc: doc, secret: map[string]bool{}, pages: map[string]*webpage.Fetcher{}}
	if err := s.begin(); err != nil {
		return nil, err
	}

	var tools []*pawl.Tool
	names := map[string]string{}
	chosen := 0
	for _, op := range s.operations() {
		if !op.chosen(d) {
			continue
		}
		chosen++
		if chosen > mostTools {
			continue // they are only counted, for the error
		}

		// One operation that cannot be expressed must not cost all others. LeftOut names it.
		t, err := s.tool(op)
		if first := names[op.name]; err == nil && first != "" {
			err = fmt.Errorf("%s has the same name, %s", first, op.name)
		}
		if err != nil {
			m.set.left = append(m.set.left, LeftOut{op.String(), err.Error()})
			continue
		}
		names[op.name] = op.String()
		tools = append(tools, t)
	}

	switch {
	case chosen > mostTools:
		return nil, fmt.Errorf("%d operations are selected; at most %d are allowed: select with include and exclude, "+
			"by names or as in \"GET /pets*\"", chosen, mostTools)
	case chosen == 0:
		return nil, fmt.Errorf("none of the %d operations is selected", len(s.operations()))
	}
	return tools, nil
}

// document reads a document, JSON or YAML.
func (m *maker) document(path string) (map[string]any, error) {
	if path == "" {
		return nil, errors.New("spec is empty: want the document's file")
	}
	if strings.Contains(path, "://") {
		return nil, errors.New("spec is an address: want a file, so that what the tools do does not change " +
			"behind your back; download it first")
	}

	f, err := os.Open(m.path(path))
	if err != nil {
		// The path is in the error of the caller already.
		if p, ok := errors.AsType[*os.PathError](err); ok {
			err = p.Err
		}
		return nil, err
	}
	defer f.Close()

	b, err := io.ReadAll(io.LimitReader(f, mostSpec+1))
	if err != nil {
		return nil, errors.New("it cannot be read")
	}
	if len(b) > mostSpec {
		return nil, fmt.Errorf("it has more than %d bytes", mostSpec)
	}
	return readDocument(b)
}

func readDocument(b []byte) (map[string]any, error) {
	v, err := readJSONOrYAML(b)
	if err != nil {
		return nil, err
	}
	doc, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("it is not an OpenAPI document: want an object with openapi, info and paths")
	}
	return doc, nil
}

// readJSONOrYAML decodes b. JSON is not read as YAML, which has other rules for numbers.
func readJSONOrYAML(b []byte) (v any, err error) {
	if json.Valid(b) {
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		err = d.Decode(&v)
		return v, err
	}
	var n yaml.Node
	if err := yaml.Unmarshal(b, &n); err != nil {
		return nil, worded(err)
	}
	return yamlvalue.Of(&n)
}

// spec is a document while tools are created from it.
type spec struct {
	*maker
	def     *OpenAPI
	doc     map[string]any
	old     bool    // 3.0, whose schemas are not JSON Schema
	headers []field // sent with each request
	own     identity
	// parameters that are credentials, such as "header X-Key"; the model is not asked for them
	secret map[string]bool
	ops    []*operation
	// by host, so that operations of one server share connections
	pages map[string]*webpage.Fetcher
}

func (s *spec) shared(own *url.URL) (*webpage.Fetcher, error) {
	host := ""
	if own != nil {
		host = own.Host
	}
	if s.pages[host] == nil {
		f, err := s.fetcher(own, s.def.Allow, s.def.Timeout)
		if err != nil {
			return nil, err
		}
		s.pages[host] = f
	}
	return s.pages[host], nil
}

// begin checks the version of the document, and reads the headers of the definition.
func (s *spec) begin() error {
	version, _ := s.doc["openapi"].(string)
	switch {
	case strings.HasPrefix(version, "3.0"):
		s.old = true
	case strings.HasPrefix(version, "3."):
	case s.doc["swagger"] != nil:
		return errors.New("it is of Swagger 2.0: convert it to OpenAPI 3 first")
	default:
		return fmt.Errorf("openapi is %q: want 3.0 or 3.1", version)
	}

	var err error
	// The headers belong to all operations, whose arguments differ.
	s.headers, s.own, err = s.maker.header(s.def.Headers, func(name string) error {
		return fmt.Errorf("{%s}: there are no arguments for all operations", name)
	})
	if err != nil {
		return err
	}
	s.findSecrets()
	return nil
}

// findSecrets lists the parameters that carry credentials. A model neither sees nor sets them.
func (s *spec) findSecrets() {
	for _, h := range s.headers {
		s.secret["header "+strings.ToLower(h.name)] = true
	}
	for _, name := range []string{"authorization", "proxy-authorization", "cookie"} {
		s.secret["header "+name] = true
	}
	for _, scheme := range object(object(s.doc["components"])["securitySchemes"]) {
		o := object(s.resolve(scheme))
		if text(o["type"]) == "apiKey" {
			name := text(o["name"])
			if text(o["in"]) == "header" {
				name = strings.ToLower(name)
			}
			s.secret[text(o["in"])+" "+name] = true
		}
	}
}

// operation is an operation of a document.
type operation struct {
	method, path string // GET, /pets/{id}
	name         string
	item, op     map[string]any
}

// String returns "GET /pets/{id}".
func (o *operation) String() string { return o.method + " " + o.path }

// operations returns all operations: paths sorted by name, methods in the order of httpMethods.
func (s *spec) operations() []*operation {
	if s.ops != nil {
		return s.ops
	}
	paths := object(s.doc["paths"])
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item := object(s.resolve(paths[path]))
		for _, method := range httpMethods {
			op := object(item[strings.ToLower(method)])
			if op == nil {
				continue
			}
			name := cmp.Or(text(op["operationId"]), strings.ToLower(method)+" "+path)
			s.ops = append(s.ops, &operation{method: method, path: path, name: s.def.Prefix + identifier(name),
				item: item, op: op})
		}
	}
	return s.ops
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9]+`)

// identifier converts s to a name that every provider accepts: "getPetById" stays, and "get
// /pets/{id}" becomes get_pets_id.
func identifier(s string) string {
	s = strings.Trim(notInNames.ReplaceAllString(s, "_"), "_")
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		s = "op_" + s
	}
	return s[:min(len(s), 64)]
}

// chosen reports whether include and exclude select the operation.
func (o *operation) chosen(d *OpenAPI) bool {
	named := func(patterns []string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			return glob(p, o.name) || glob(p, o.String()) || glob(p, text(o.op["operationId"]))
		})
	}
	return (len(d.Include) == 0 || named(d.Include)) && !named(d.Exclude)
}

// glob reports whether s matches a pattern in which * stands for any text.
func glob(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	rest, ok := strings.CutPrefix(s, parts[0])
	if !ok {
		return false
	}
	for _, p := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(rest, p)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

// tool creates the tool for an operation.
func (s *spec) tool(o *operation) (*pawl.Tool, error) {
	if !toolName.MatchString(o.name) {
		return nil, fmt.Errorf("%q is not a name for a tool: shorten the prefix", o.name)
	}

	r := &request{method: o.method, headers: slices.Clone(s.headers), own: s.own}
	base, trusted, err := s.base(o)
	if err != nil {
		return nil, err
	}
	r.origin, err = origin(base.String())
	if err != nil {
		return nil, err
	}

	b := &builder{
		spec:    s,
		request: r,
		schema:  newSchemas(s),
		where:   map[string]piece{},
		names:   map[string]bool{},
	}
	if err := b.build(o, base); err != nil {
		return nil, err
	}
	input, err := b.input()
	if err != nil {
		return nil, err
	}

	own := r.origin
	if !trusted { // a server named by the document alone opens no private network
		own = nil
	}
	// Operations of one server share a fetcher, and so its connections.
	r.page, err = s.shared(own)
	if err != nil {
		return nil, err
	}

	t := &pawl.Tool{
		Name:          o.name,
		Description:   o.description(),
		Input:         input,
		Effect:        effectOf(o.method),
		Concurrent:    s.def.Concurrent,
		Timeout:       r.page.Timeout + 5*time.Second,
		Run:           r.run,
		Address:       r.origin.String(),
		StatesSending: true,
	}
	return t, checked(t)
}

func (o *operation) description() string {
	parts := []string{}
	for _, name := range []string{"summary", "description"} {
		if s := strings.TrimSpace(text(o.op[name])); s != "" && !slices.Contains(parts, s) {
			parts = append(parts, s)
		}
	}
	if len(parts) == 0 {
		parts = append(parts, o.String())
	}
	if o.op["deprecated"] == true {
		parts = append(parts, "Deprecated: use another tool if one does the same.")
	}
	return clip(strings.Join(parts, "\n\n"), mostDescription)
}

// base returns the address of the operation's server. The bool reports whether the definition names
// it, rather than the document.
func (s *spec) base(o *operation) (*url.URL, bool, error) {
	address := s.def.BaseURL
	trusted := true
	if address == "" {
		trusted = false
		for _, of := range []map[string]any{s.doc, o.item, o.op} { // the innermost takes precedence
			if servers, _ := of["servers"].([]any); len(servers) > 0 {
				address = server(object(servers[0]))
			}
		}
	}
	u, ok := webaddress.Parse(strings.TrimRight(address, "/"))
	if !ok {
		return nil, false, fmt.Errorf("its server is %q, which is not a complete address: set base_url",
			clip(address, 100))
	}
	// A document may name a server for one operation. The credentials in the headers are not for
	// it.
	if own := s.home(); !trusted && len(s.headers) > 0 && own != u.Host {
		return nil, false, fmt.Errorf("its server is %s, and headers are for the document's server, %q: "+
			"set base_url, or define it without headers", u.Host, own)
	}
	u.RawQuery = ""
	u.Fragment = ""
	return u, trusted, nil
}

// home returns the host of the document's first server. The headers of the definition are only for
// this host: an operation with another server does not get them.
func (s *spec) home() string {
	servers, _ := s.doc["servers"].([]any)
	if len(servers) == 0 {
		return ""
	}
	u, err := url.Parse(server(object(servers[0])))
	if err != nil {
		return ""
	}
	return u.Host
}

// server returns the address of a server with the default values of its variables.
func server(o map[string]any) string {
	address := text(o["url"])
	variables := object(o["variables"])
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		address = strings.ReplaceAll(address, "{"+name+"}", text(object(variables[name])["default"]))
	}
	return address
}

// resolve follows references within the document. It returns nil if the target does not exist or
// the references form a cycle.
func (s *spec) resolve(v any) any {
	for range 16 {
		ref, ok := object(v)["$ref"].(string)
		if !ok {
			return v
		}
		v = s.target(ref)
		if v == nil {
			return nil
		}
	}
	return nil
}

// target returns the target of a reference within the document.
func (s *spec) target(ref string) any {
	path, ok := strings.CutPrefix(ref, "#")
	switch {
	case !ok:
		return nil
	case path == "":
		return s.doc
	}
	p, err := parsePointer(unescaped(path))
	if err != nil {
		return nil
	}
	v, err := p.find(s.doc)
	if err != nil {
		return nil
	}
	return v
}

func object(v any) map[string]any { m, _ := v.(map[string]any); return m }

func text(v any) string { s, _ := v.(string); return s }
