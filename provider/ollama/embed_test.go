package ollama_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/pawl-go/pawl/provider/ollama"
	"github.com/pawl-go/pawl/store"
)

func ExampleNewEmbedder() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"embeddings":[[0.1,0.2],[0.3,0.4]]}`)
	}))
	defer server.Close()
	e := ollama.NewEmbedder("nomic-embed-text", 0, &ollama.Options{BaseURL: server.URL})
	vectors, err := store.Embed(context.Background(), e, store.ForDocument, "a cat", "a dog")
	fmt.Println(vectors, err)
	// Output:
	// [{ollama:nomic-embed-text [0.1 0.2]} {ollama:nomic-embed-text [0.3 0.4]}] <nil>
}
