package assemble

import (
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/config"
	"github.com/pawl-go/pawl/store"
)

// EmbedFlags name the model that makes vectors.
type EmbedFlags struct {
	Embed    string `group:"store" placeholder:"PROVIDER:MODEL" help:"The embedding model, to search documents and found pages by meaning too: openai:text-embedding-3-small, gemini:gemini-embedding-001#768, ollama:nomic-embed-text. The same for adding and searching. Default: none, words only."`
	EmbedURL string `group:"store" name:"embed-url" placeholder:"URL" help:"Where the embedding model's API is. Default: its provider's own."`
}

// StoreFlags say where what is kept between runs is, and whose it is.
type StoreFlags struct {
	DB     string `group:"store" name:"db" placeholder:"FILE" help:"The database with what is kept between runs: a file, or a PostgreSQL database, postgres://USER@HOST/DATABASE (with its password in PGPASSWORD). Default: pawl/pawl.db where the user's data is (XDG_DATA_HOME, else ~/.local/share)."`
	Tenant string `group:"store" placeholder:"NAME" help:"Whose it is: the tenant. Default: none."`
	User   string `group:"store" placeholder:"NAME" help:"Whose it is: the user. Default: none."`
}

func (f *StoreFlags) store() config.Store {
	return config.Store{DB: f.DB, Tenant: f.Tenant, User: f.User}
}

// Scope returns the tenant and the user of the flags.
func (f *StoreFlags) Scope() store.Scope { return f.store().Scope() }

// Open opens the database. Close it.
func (f *StoreFlags) Open(sys *cli.System, create bool) (*config.Database, store.Store, error) {
	d := config.NewDatabase(f.store(), sys.Env, create)
	db, err := d.Open()
	if err != nil {
		return nil, nil, Misconfigured(err)
	}
	return d, db, nil
}

// SharedFlag widens a search of documents.
type SharedFlag struct {
	Shared bool `group:"store" help:"Search the documents that the tenant shares, too: those that were added with the same --tenant and without --user."`
}
