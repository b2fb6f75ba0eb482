package webpage

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"codeberg.org/readeck/go-readability/v2"
	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"

	"github.com/pawl-go/pawl/internal/mediatype"
)

// maxElements limits the work that a page can cause.
const maxElements = 100_000

// Page is a Response converted to text.
type Page struct {
	Title string // empty means that it has no title, or is not a page
	Text  string // Markdown of a page, other text unchanged; empty if the body is not text
	Image bool   // the body is a whole image, by its bytes
}

// Read converts a Response to text. For an HTML page it returns the main content if it can be
// recognized, otherwise everything.
func Read(r *Response) Page {
	kind := r.Type
	switch {
	case kind == "text/html", kind == "application/xhtml+xml":
		return Markdown(r.Body, r.contentType(), r.URL)
	case textual(kind):
		return Page{Text: Decode(r.Body, r.contentType())}
	case strings.HasPrefix(kind, "image/") && mediatype.Detect(r.Body) == kind:
		return Page{Image: !r.Truncated}
	}
	return Page{}
}

// Source returns the body as text, for any content type. It returns "" if the body is not text.
func Source(r *Response) string {
	if !textual(r.Type) && r.Type != "text/html" && r.Type != "application/xhtml+xml" {
		return ""
	}
	return Decode(r.Body, r.contentType())
}

func (r *Response) contentType() string {
	if r.Charset == "" {
		return r.Type
	}
	return r.Type + "; charset=" + r.Charset
}

func textual(kind string) bool {
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") ||
		slices.Contains(texts, kind)
}

var texts = []string{
	"application/json", "application/xml", "application/javascript", "application/ecmascript", "application/x-ndjson", "application/jsonl", "application/yaml",
	"application/x-yaml", "application/toml", "application/sql", "application/x-sh", "application/graphql", "application/x-www-form-urlencoded",
}

// Decode converts text to UTF-8. The charset comes from the content type, from the first bytes, or
// is guessed.
func Decode(b []byte, contentType string) string {
	encoding, name, certain := charset.DetermineEncoding(b, contentType)
	if !certain && utf8.Valid(b) || name == "utf-8" {
		return strings.ToValidUTF8(strings.TrimPrefix(string(b), "\uFEFF"), "\uFFFD")
	}
	out, err := encoding.NewDecoder().Bytes(b)
	if err != nil {
		return strings.ToValidUTF8(string(b), "\uFFFD")
	}
	return strings.TrimPrefix(string(out), "\uFEFF")
}

// Markdown converts an HTML page to Markdown: its main content if it can be recognized, otherwise
// everything. Links become absolute with the page's address, which may be empty.
func Markdown(page []byte, contentType, address string) (p Page) {
	defer func() {
		if recover() != nil { // if a library panics, the page still has its words
			p = Page{Text: words(Decode(page, contentType))}
		}
	}()
	return read(page, contentType, address)
}

func read(page []byte, contentType, address string) Page {
	doc, err := html.Parse(strings.NewReader(Decode(page, contentType)))
	if err != nil { // nested too deeply: the words are still available
		return Page{Text: words(Decode(page, contentType))}
	}

	base, _ := url.Parse(address)
	whole := Page{Title: title(doc)}
	p := readability.NewParser()
	p.MaxElemsToParse = maxElements
	article, err := p.ParseDocument(doc, base)
	if err == nil && article.Node != nil {
		if t := strings.TrimSpace(article.Title()); t != "" {
			whole.Title = t
		}
		// An article of a line or two is rather a notice, such as one about cookies, than the
		// content.
		if text := markdown(article.Node, base); len(text) >= 250 {
			whole.Text = text
			return whole
		}
	}

	whole.Text = markdown(doc, base)
	if whole.Text == "" {
		whole.Text = words(Decode(page, contentType))
	}
	return whole
}

var toMarkdown = converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(),
	table.NewTablePlugin()))

func markdown(n *html.Node, base *url.URL) string {
	var opts []converter.ConvertOptionFunc
	if base != nil && base.Host != "" {
		opts = append(opts, converter.WithDomain(base.String()))
	}
	b, err := toMarkdown.ConvertNode(n, opts...)
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(b))
}

func title(doc *html.Node) string {
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "title" && n.FirstChild != nil {
			return strings.Join(strings.Fields(n.FirstChild.Data), " ")
		}
	}
	return ""
}

// words returns the text of a page without markup, for pages that cannot be parsed as trees.
func words(page string) string {
	var b strings.Builder
	skip := ""
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return strings.TrimSpace(b.String())

		case html.StartTagToken:
			tag, _ := z.TagName()
			name := string(tag)
			if skip == "" && (name == "script" || name == "style") {
				skip = name
			}
		case html.EndTagToken:
			// Only the end of the same element: a script may contain "</style>".
			if name, _ := z.TagName(); string(name) == skip {
				skip = ""
			}

		case html.TextToken:
			if text := strings.Join(strings.Fields(string(z.Text())), " "); skip == "" && text != "" {
				b.WriteString(text)
				b.WriteByte('\n')
			}
		}
	}
}
